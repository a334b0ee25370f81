"""Serving: a drafter in an engine's own process, what it answered and what it counted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from eyas.decode.acceptance import Acceptance
from eyas.errors import ProbeError
from eyas.probe.environment import Environment, recipe_of
from eyas.probe.run import Interpreter, Limits, ask

STEPS = 3
LIMITS = Limits(seconds=600, memory=6 * 2**30)
_SCRIPT = Path(__file__).with_name("vllm_serve.py").resolve()


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What is served: a target, with a drafter or alone, over prompts given as token ids."""

    target: Path
    draft: Path | None
    prompts: Sequence[Sequence[int]]
    max_new: int
    method: str | None = "eagle3"
    states: Path | None = None  # where what goes through the drafter is written
    memory: int | None = None  # glibc fills new memory with the complement of this byte

    def plain(self) -> dict[str, Any]:
        """The job as its JSON has it."""
        return {
            "target": str(self.target),
            "draft": None if self.draft is None else str(self.draft),
            "method": self.method,
            "steps": STEPS,
            "prompts": [list(ids) for ids in self.prompts],
            "max_new": self.max_new,
            "states": None if self.states is None else str(self.states),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Answered:
    """What an engine did: where it raised, or its answers and its rounds, prompt by prompt."""

    raised: str | None  # "load" or "first request"
    error: str | None
    tokens: tuple[tuple[int, ...], ...]
    records: tuple[Acceptance, ...]
    counted: Acceptance | None  # of its own counters, over all prompts


def served_by_vllm(environment: Environment, service: Service) -> Answered:
    """What vLLM did with `service`; raises ProbeError where its process came to no end."""
    recipe = replace(recipe_of("vllm"), script=str(_SCRIPT))
    variables = dict(recipe.variables(environment.directory, environment.version))
    openmp = environment.directory / "lib" / "libiomp5.so"
    if openmp.is_file():  # ten times as fast as the one that torch brings
        variables["LD_PRELOAD"] = str(openmp)
    if service.memory is not None:
        variables["MALLOC_PERTURB_"] = str(service.memory)
    interpreter = Interpreter(recipe=recipe, python=environment.python, variables=variables)
    (record,) = ask(interpreter, [service], LIMITS)
    if isinstance(record, ProbeError):
        raise record
    if record["status"] != "ok":
        error = f"{record['error']['type']}: {record['error']['message']}"
        return Answered(raised=record["stage"], error=error, tokens=(), records=(), counted=None)
    counted = None
    if service.draft is not None:
        assert record["drafted"] == STEPS * record["rounds"]
        counted = Acceptance(
            steps=STEPS, rounds=record["rounds"], accepted_at=tuple(record["accepted_at"])
        )
        assert record["accepted"] == counted.accepted
    return Answered(
        raised=None,
        error=None,
        tokens=tuple(tuple(answer) for answer in record["tokens"]),
        records=tuple(Acceptance.of(STEPS, rounds) for rounds in record["accepted_by_round"]),
        counted=counted,
    )

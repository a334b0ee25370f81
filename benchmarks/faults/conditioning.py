"""What the drafter is conditioned on: which states of the target, and how they reach it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from benchmarks.faults.draft import FUSION, Draft
from benchmarks.faults.kind import Draw, Kind, Part, Sign, anywhere, choose
from benchmarks.faults.setting import Setting

_UPSTREAM = frozenset({Part.BOUNDARIES, Part.FUSION, Part.HEAD, Part.EMBEDDING, Part.ROWS})
_STATES = 3


def launched_as_eagle(draft: Draft, draw: Draw) -> dict[str, Any]:
    """SGLang is told the algorithm of EAGLE-1/2: one state, and fc never runs."""
    name = choose(draw, ("EAGLE", "NEXTN"))
    draft.launch.append(f"speculative_algorithm={name}")
    return {"speculative_algorithm": name}


def launched_by_method_eagle(draft: Draft, draw: Draw) -> dict[str, Any]:
    """vLLM is told the method of EAGLE-1/2."""
    draft.launch.append("method=eagle")
    return {"method": "eagle"}


def states_switched_off(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config says that no states are captured."""
    draft.config.setdefault("eagle_config", {})["use_aux_hidden_state"] = False
    return {"use_aux_hidden_state": False}


def ids_off_by_a_convention(draft: Draft, draw: Draw) -> dict[str, Any]:
    """All layer ids are one or two too high or too low."""
    last = draft.facts()["num_hidden_layers"] - 1  # whose output some engines refuse to capture
    shifts = [s for s in (-2, -1, 1, 2) if min(draft.ids) + s >= 0 and max(draft.ids) + s < last]
    shift = choose(draw, shifts)
    draft.ids = [i + shift for i in draft.ids]
    return {"shift": shift, "ids": draft.ids}


def ids_of_another_recipe(draft: Draft, draw: Draw) -> dict[str, Any]:
    """Other layers than those that the drafter was trained on."""
    depth = draft.facts()["num_hidden_layers"]
    least = max(2, depth // 5)
    while True:
        ids = sorted(int(i) for i in draw.choice(depth - 1, _STATES, replace=False))
        if sum(abs(a - b) for a, b in zip(ids, draft.ids, strict=True)) >= least:
            break
    draft.ids = ids
    return {"ids": ids}


def ids_absent(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config names no layers, so that the engine takes its default."""
    draft.ids = None
    return {}


def ids_taken_by_the_old_runner(draft: Draft, draw: Draw) -> dict[str, Any]:
    """vLLM's V1 runner takes a list of outputs for one of inputs."""
    draft.setting = replace(draft.setting, runner="v1")
    return {"runner": "v1"}


def states_in_another_order(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The blocks of fc's columns stand in another order than the states that they are given."""
    order = choose(draw, ((0, 2, 1), (1, 0, 2), (1, 2, 0), (2, 0, 1), (2, 1, 0)))
    blocks = np.split(draft.floats(FUSION), _STATES, axis=1)
    draft.put(FUSION, np.concatenate([blocks[i] for i in order], axis=1))
    return {"order": order}


def one_state_too_many(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The list names a fourth layer, and fc takes three states."""
    depth = draft.facts()["num_hidden_layers"]
    free = [i for i in range(1, depth - 1) if i not in draft.ids]
    draft.ids = sorted([*draft.ids, choose(draw, free)])
    return {"ids": draft.ids}


def _sglang(setting: Setting) -> bool:
    return setting.engine == "sglang"


def _taken_for_eagle(setting: Setting) -> bool:
    return setting.engine == "vllm" and setting.nested  # it raises over a flat config


def _switched(setting: Setting) -> bool:
    if setting.engine == "sglang":
        return setting.since("0.5.12") and setting.form in ("specforge", "modelopt", "torchspec")
    # the V2 runner of 0.32.0 captures states all the same, which then do not fit
    return setting.form == "specforge" and setting.version == "0.33.0"


def _named(setting: Setting) -> bool:
    return setting.names_boundaries


def _elsewhere(setting: Setting) -> bool:
    return setting.names_boundaries and not setting.default_boundaries


def _runner(setting: Setting) -> bool:
    return setting.runner == "v2" and setting.form in ("specforge", "modelopt")


KINDS = (
    Kind(
        name="launched-as-eagle",
        stands_for="K6",
        reports=("sglang#21272",),
        part=Part.FUSION,
        sign=Sign.FILES,
        plant=launched_as_eagle,
        shows=_sglang,
        silences=_UPSTREAM,
    ),
    Kind(
        name="launched-by-method-eagle",
        stands_for="K6",
        reports=("sglang#21272",),
        part=Part.FUSION,
        sign=Sign.FILES,
        plant=launched_by_method_eagle,
        shows=_taken_for_eagle,
        silences=_UPSTREAM,
    ),
    Kind(
        name="states-switched-off",
        stands_for="K10",
        reports=("vllm#40656",),
        part=Part.FUSION,
        sign=Sign.FILES,
        plant=states_switched_off,
        shows=_switched,
        silences=frozenset({Part.BOUNDARIES}),
    ),
    Kind(
        name="ids-off-by-a-convention",
        stands_for="K8",
        reports=("sglang#25454", "vllm#40727"),
        part=Part.BOUNDARIES,
        sign=Sign.REPLAY,
        plant=ids_off_by_a_convention,
        shows=_named,
    ),
    Kind(
        name="ids-of-another-recipe",
        stands_for="K7",
        reports=("vllm#50170", "tokenspeed#526"),
        part=Part.BOUNDARIES,
        sign=Sign.REPLAY,
        plant=ids_of_another_recipe,
        shows=_named,
    ),
    Kind(
        name="ids-absent",
        stands_for="K7",
        reports=("vllm#50170",),
        part=Part.BOUNDARIES,
        sign=Sign.REPLAY,
        plant=ids_absent,
        shows=_elsewhere,
    ),
    Kind(
        name="ids-taken-by-the-old-runner",
        stands_for="K8",
        reports=("vllm#40727",),
        part=Part.BOUNDARIES,
        sign=Sign.FILES,
        plant=ids_taken_by_the_old_runner,
        shows=_runner,
    ),
    Kind(
        name="states-in-another-order",
        stands_for="K10",
        reports=("BaldEagle#14",),
        part=Part.BOUNDARIES,
        sign=Sign.REPLAY,
        plant=states_in_another_order,
        shows=anywhere,
    ),
    Kind(
        name="one-state-too-many",
        stands_for="K9",
        reports=("sglang#32334", "speculators#705"),
        part=Part.BOUNDARIES,
        sign=Sign.FILES,
        plant=one_state_too_many,
        shows=_named,
        silences=frozenset({Part.EVERYTHING}),
        refuses=True,
    ),
)

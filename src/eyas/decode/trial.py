"""Trial: every prompt answered under every arm, each answer kept as soon as it is there."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from eyas.decode.arms import ALONE, AS_TRAINED, Arm, Build
from eyas.decode.evaluation import ArmResult, Evaluation, Run
from eyas.decode.generation import Generation
from eyas.decode.greedy import generate
from eyas.decode.outcomes import Outcome, Outcomes, prompt_digest
from eyas.decode.replay import replay
from eyas.errors import EngineError, UnsupportedError
from eyas.model.drafter import Drafter
from eyas.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class NamedPrompt:
    """A prompt of the evaluation as token ids."""

    id: str
    category: str
    ids: tuple[int, ...]

    @property
    def digest(self) -> str:
        """What its outcomes are found by."""
        return prompt_digest(self.ids)


Watch = Callable[[str, int], Callable[[], None]]


@dataclass(slots=True, kw_only=True)
class Trial:
    """What all answers share. `watch(what, pieces)` announces work and returns its counter."""

    target: Target
    prompts: Sequence[NamedPrompt]
    steps: int
    max_new: int
    outcomes: Outcomes
    watch: Watch

    def run(self, arms: Sequence[Arm], *, baseline: bool, seed: int) -> Evaluation:
        """Answer every prompt under every arm, and with `baseline` by the target alone as well.

        The target alone answers each prompt right before the drafter as trained does, so that
        both meet the same load of the machine. What engines would have accepted is replayed on the
        answer of the drafter as trained, which comes first: nothing is timed of it.
        """
        plain: list[Generation] = []
        results = []
        for arm in arms:
            paired = plain if baseline and arm.label == AS_TRAINED else None
            results.append(self._arm(arm, paired))
        return Evaluation(
            steps=self.steps,
            max_new=self.max_new,
            seed=seed,
            arms=tuple(results),
            plain=tuple(plain) if baseline else None,
        )

    def _arm(self, arm: Arm, plain: list[Generation] | None) -> ArmResult:
        runs: list[Run] = []
        refusal = arm.refusal
        try:
            for build in arm.builds:
                outcomes = tuple(self._answers(arm, build, plain))
                runs.append(Run(fill=build.fill, outcomes=outcomes))
        except (UnsupportedError, EngineError) as error:
            if arm.engine is None:  # the drafter itself cannot be run: there is nothing to compare
                raise
            runs, refusal = [], f"cannot be run: {error.message}"
        return ArmResult(label=arm.label, engine=arm.engine, runs=tuple(runs), refusal=refusal)

    def _answers(self, arm: Arm, build: Build, plain: list[Generation] | None) -> Iterator[Outcome]:
        fill = None if build.fill is None else str(build.fill)
        drafter: Drafter | None = None
        advance = self.watch(
            arm.label if fill is None else f"{arm.label}, {fill}", len(self.prompts)
        )
        for prompt in self.prompts:
            if plain is not None:
                plain.append(self._alone(prompt).generation)
            outcome = self._held(prompt, arm.label, fill)
            if outcome is None:
                drafter = drafter or build.drafter()
                if arm.engine is None:
                    outcome = self._answer(prompt, arm.label, fill, drafter)
                else:
                    outcome = self._replay(prompt, arm.label, fill, drafter)
            advance()
            yield outcome

    def _alone(self, prompt: NamedPrompt) -> Outcome:
        return self._held(prompt, ALONE, None) or self._answer(prompt, ALONE, None, None)

    def _held(self, prompt: NamedPrompt, arm: str, fill: str | None) -> Outcome | None:
        """The outcome of the same tokens, under the name that they have in this file of prompts."""
        held = self.outcomes.get(arm, fill, prompt.digest)
        return held and replace(held, id=prompt.id, category=prompt.category)

    def _answer(
        self, prompt: NamedPrompt, arm: str, fill: str | None, drafter: Drafter | None
    ) -> Outcome:
        generation = generate(
            self.target,
            prompt.ids,
            max_new=self.max_new,
            drafter=drafter,
            steps=0 if drafter is None else self.steps,
        )
        # the file holds no gaps either
        return self._keep(prompt, arm, fill, replace(generation, gaps=None))

    def _replay(self, prompt: NamedPrompt, arm: str, fill: str | None, drafter: Drafter) -> Outcome:
        answered = self.outcomes.get(AS_TRAINED, None, prompt.digest)
        assert answered is not None  # `run` takes the arms in order
        tokens = answered.generation.tokens
        acceptance = replay(self.target, drafter, prompt.ids, tokens, steps=self.steps)
        generation = Generation(tokens=tokens, seconds=0.0, gaps=None, acceptance=acceptance)
        return self._keep(prompt, arm, fill, generation)

    def _keep(
        self, prompt: NamedPrompt, arm: str, fill: str | None, generation: Generation
    ) -> Outcome:
        outcome = Outcome(
            arm=arm,
            fill=fill,
            prompt=prompt.digest,
            id=prompt.id,
            category=prompt.category,
            generation=generation,
        )
        self.outcomes.add(outcome)
        return outcome

"""Answers to a set of prompts with one drafter, or none, and what they add up to."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from eyas.decode.acceptance import Acceptance, informative, macro_mean, tau_of
from eyas.decode.comparison import Comparison
from eyas.decode.generation import Generation
from eyas.decode.greedy import generate
from eyas.model.drafter import Drafter
from eyas.model.target import Target


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenisedPrompt:
    """A prompt through the target's chat template."""

    category: str
    ids: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """One greedy answer to each prompt."""

    prompts: tuple[TokenisedPrompt, ...]
    generations: tuple[Generation, ...]

    @property
    def acceptance(self) -> Acceptance:
        """All rounds together."""
        return Acceptance.total(
            [g.acceptance for g in self.generations if g.acceptance is not None]
        )

    @property
    def tau_by_category(self) -> dict[str, float]:
        """tau over all rounds of each category; a category without a round is left out."""
        pairs = zip(self.prompts, self.generations, strict=True)
        records = informative((prompt.category, answer.acceptance) for prompt, answer in pairs)
        return {category: tau_of(found) for category, found in records.items()}

    @property
    def tau(self) -> float:
        """The macro mean over the categories."""
        return macro_mean(self.tau_by_category.values())

    def compared_with(self, plain: Answers) -> Comparison:
        """Where these answers depart from the target's own."""
        return Comparison.of(plain.generations, self.generations)


def answer_all(
    target: Target,
    prompts: Sequence[TokenisedPrompt],
    *,
    max_new: int,
    drafter: Drafter | None = None,
    steps: int = 0,
    stop_at_eos: bool = True,
    advance: Callable[[], None] = lambda: None,
) -> Answers:
    """Answer every prompt greedily; `advance` is called after each."""
    generations = []
    for prompt in prompts:
        generations.append(
            generate(
                target,
                prompt.ids,
                max_new=max_new,
                drafter=drafter,
                steps=steps,
                stop_at_eos=stop_at_eos,
            )
        )
        advance()
    return Answers(prompts=tuple(prompts), generations=tuple(generations))


def one_of_each(prompts: Sequence[TokenisedPrompt]) -> tuple[TokenisedPrompt, ...]:
    """The first prompt of every category."""
    first: dict[str, TokenisedPrompt] = {}
    for prompt in prompts:
        first.setdefault(prompt.category, prompt)
    return tuple(first.values())

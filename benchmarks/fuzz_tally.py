"""Tally: how many trials of the fuzzer came how far, kept between runs."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field, fields
from pathlib import Path

from benchmarks.fuzz_trial import STAGES


@dataclass(slots=True, kw_only=True)
class Tally:
    """What is known of the trials from seed `first` up to `next`."""

    first: int
    count: int
    next: int
    stages: list[int] = field(default_factory=lambda: [0] * (len(STAGES) + 1))
    failures: Counter[str] = field(default_factory=Counter)
    seconds: float = 0.0

    @classmethod
    def load(cls, path: Path) -> Tally:
        """The tally that `save` wrote."""
        found = cls(**json.loads(path.read_text(encoding="utf-8")))
        found.failures = Counter(found.failures)
        return found

    def save(self, path: Path) -> None:
        """Writes it as a whole."""
        draft = path.with_suffix(".partial")
        draft.write_text(json.dumps(self._document(), indent=1), encoding="utf-8")
        draft.replace(path)

    def _document(self) -> dict[str, object]:
        return {part.name: getattr(self, part.name) for part in fields(self)}

    @property
    def done(self) -> int:
        """How many trials were made."""
        return self.next - self.first

    def line(self) -> str:
        """How many trials came to each stage, the speed, and how many failed."""
        reached = [sum(self.stages[i:]) for i in range(1, len(STAGES) + 1)]
        shares = ", ".join(
            f"{stage} {number} ({number / max(1, self.done):.1%})"
            for stage, number in zip(STAGES, reached, strict=True)
        )
        speed = self.done / self.seconds if self.seconds else 0.0
        failed = sum(self.failures.values())
        return f"{self.done}/{self.count} trials, {speed:.0f}/s: {shares}; {failed} failures"

"""Plan: the names, the config and the rows under which a goal is met; nothing is written yet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from eyas.checkpoint import Format
from eyas.checkpoint.gguf import GgufValue
from eyas.checkpoint.imagined import imagined
from eyas.checkpoint.rows import Made, Rows
from eyas.convert.material import Drafter

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint


_LONGEST_LIST = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedTensor:
    """A tensor that will be written: its role, where its numbers come from, and its new name.

    `rows` are as they will be stored, `trained` as the drafter computes with them. A tensor that is
    made for its format alone has no role, and the two are the same.
    """

    role: str | None
    before: str
    after: str
    rows: Rows
    trained: Rows


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a conversion will write, and the drafter that it must then be.

    `changes` says what is done beyond names and keys, `copied` that the drafter's embedding has the
    target's numbers, so that an engine may use either.
    """

    source: str
    before: str  # the dialect that is read
    after: str  # the dialect that is written
    manner: str  # its names and keys, where it has several
    form: Format
    goal: str
    spec: Drafter
    tensors: tuple[PlannedTensor, ...]
    config: Mapping[str, Any]
    changes: tuple[str, ...]
    copied: bool = False

    @property
    def renamed(self) -> tuple[PlannedTensor, ...]:
        """The tensors that have another name afterwards."""
        stored = (t for t in self.tensors if not isinstance(t.trained, Made))
        return tuple(t for t in stored if t.before != t.after)

    def imagined(self) -> Checkpoint:
        """The checkpoint that it would write, without its weights."""
        return imagined(self.config, {t.after: t.rows for t in self.tensors}, self.form)

    def json(self) -> str:
        """The plan for a program: one object, with a line's end."""
        import json

        return json.dumps(self.summary(), indent=2, allow_nan=False) + "\n"

    def summary(self) -> dict[str, Any]:
        """What `json` spells."""
        return {
            "source": self.source,
            "from": self.before,
            "to": self.after,
            "manner": self.manner,
            "goal": self.goal,
            "changes": list(self.changes),
            "tensors": [
                {"role": t.role, "before": t.before, "after": t.after} | _header(t.rows)
                for t in self.tensors
            ],
            "config": {key: _shown(value) for key, value in self.config.items()},
        }

    def text(self) -> str:
        """The plan for a reader."""
        from eyas.checks.fold import fold

        names = [t.before for t in self.tensors]
        untouched = "" if self.changes else ", no byte changed"
        lines = [
            f"{self.source}: {self.before} → {self.after} ({self.manner}), for {self.goal}",
            f"  {len(names)} tensors ({', '.join(fold(names, among=names))}),"
            f" {len(self.renamed)} of them renamed{untouched}",
            *(f"  {change}" for change in self.changes),
            *(f"    {t.before} → {t.after}" for t in self.renamed),
            "  config.json" if self.form is Format.SAFETENSORS else "  keys",
            *(f"    {key}: {_shown(value)}" for key, value in self.config.items()),
        ]
        return "\n".join(lines) + "\n"


def _shown(value: Any) -> Any:
    """A value of the config; a tokenizer's list, which has a hundred thousand, by its length."""
    plain = value.value if isinstance(value, GgufValue) else value
    long = isinstance(plain, list) and len(plain) > _LONGEST_LIST
    return f"{len(plain)} entries" if long else plain


def _header(rows: Rows) -> dict[str, Any]:
    return {"dtype": rows.dtype, "shape": list(rows.shape)}

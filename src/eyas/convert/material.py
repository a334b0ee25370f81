"""Material: a drafter between two dialects, as what it computes and its matrices by role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from shlex import quote
from typing import Any

from eyas.checkpoint import SINGLE_FILES, Format
from eyas.checkpoint.gguf_rope import FACTORS
from eyas.checkpoint.rows import Rows
from eyas.checks import Trained
from eyas.checks.unscaled import FLOATS, MAPS, unscaled
from eyas.dialects.contents import contents
from eyas.errors import ConversionError
from eyas.spec import DFlashSpec, Eagle3Spec, PEagleSpec, Recognised

Drafter = Eagle3Spec | PEagleSpec | DFlashSpec


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One matrix, norm or map of the drafter: its rows, and where they come from in words."""

    rows: Rows
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Material:
    """A drafter as trained, apart from any way of writing it down.

    `parts` are by role. `changes` says in words what was done to them: what is more than a name.
    """

    spec: Drafter
    parts: Mapping[str, Part]
    changes: tuple[str, ...] = ()

    @property
    def facts(self) -> Eagle3Spec | DFlashSpec:
        """The facts that every kind has, such as its vocabularies: P-EAGLE's are its drafter's."""
        return self.spec.drafter if isinstance(self.spec, PEagleSpec) else self.spec

    def changed(
        self, what: str, *, facts: Mapping[str, Any] | None = None, parts: Mapping[str, Part | None]
    ) -> Material:
        """With other `facts`, by name, and with `parts` in place of those of their roles.

        A part is None where it is left out. `what` says it in words.
        """
        merged = {**self.parts, **parts}
        changed: Drafter = replace(self.facts, **(facts or {}))
        if isinstance(self.spec, PEagleSpec):
            assert isinstance(changed, Eagle3Spec)  # as its drafter is
            changed = replace(self.spec, drafter=changed)
        return replace(
            self,
            spec=changed,
            parts={role: part for role, part in merged.items() if part is not None},
            changes=(*self.changes, what),
        )


def material_of(trained: Trained) -> Material:
    """The drafter of `trained`, none of whose tensors and keys is left out.

    Raises ConversionError where one is not understood, so that it could not be carried over.
    """
    spec = _require_understood(trained)
    checkpoint = trained.checkpoint
    facts = spec.drafter if isinstance(spec, PEagleSpec) else spec
    found = contents(checkpoint, trained.roles, facts.attention)
    split = sorted({content.tensor for content in found.values() if content.part})
    said = [f"{name} is split into its parts" for name in split]
    if checkpoint.format is Format.PICKLE:
        said.append("the weights were a pickle, read as weights only: nothing of it was run")
    return Material(
        spec=spec,
        parts={role: Part(rows=c.rows, origin=c.tensor) for role, c in found.items()},
        changes=tuple(said),
    )


def _require_understood(trained: Trained) -> Drafter:
    from eyas import dialects

    spec, checkpoint = trained.spec, trained.checkpoint
    location = checkpoint.location
    inspect = f"eyas inspect {quote(location)}"
    if isinstance(spec, Recognised):
        raise ConversionError(
            f"{location} is {spec.name}, which is known by name alone", hint=inspect
        )
    if checkpoint.rival is not None and not location.endswith(SINGLE_FILES):
        raise ConversionError(
            f"{location} also holds {checkpoint.rival}, and which of its weight files are the"
            " drafter is not said",
            hint=f"name the file: {quote(f'{location}/{checkpoint.files[0]}')}",
        )
    unread = dialects.unread_keys(checkpoint)
    if unread:
        raise ConversionError(
            f"{unread[0]}, and convert does not know what it does to the drafter, so it would be"
            " lost",
            hint="remove the key, if the drafter was trained without what it says",
        )
    plain = unscaled(trained)
    if plain and checkpoint.format is Format.GGUF:
        raise ConversionError(
            f"{checkpoint.place(plain[0])} is quantised as {checkpoint.tensors[plain[0]].dtype},"
            " whose numbers no other format has",
            hint="convert the drafter that it was made from",
        )
    if plain:
        raise ConversionError(
            f"{checkpoint.place(plain[0])} holds {checkpoint.tensors[plain[0]].dtype} numbers, and"
            " nothing says how they are scaled",
            hint="export the drafter in bfloat16",
        )
    strangers = [name for name in checkpoint.tensors if name not in trained.roles]
    facts = spec.drafter if isinstance(spec, PEagleSpec) else spec
    if strangers == [FACTORS] and FACTORS not in facts.rope.value.scaling.values():
        strangers = []  # they are those of a RoPE that the keys tell
    if strangers:
        raise ConversionError(
            f"{checkpoint.place(strangers[0])} has no known part in the drafter,"
            " so it cannot be said where it should go",
            hint=inspect,
        )
    twice = [role for role, count in Counter(trained.roles.values()).items() if count > 1]
    if twice:
        raise ConversionError(f"{location} has more than one tensor for {twice[0]}", hint=inspect)
    return spec


def is_weight(role: str, part: Part) -> bool:
    """Whether `part` is multiplied with: no vocabulary map."""
    return role not in MAPS and part.rows.dtype in FLOATS

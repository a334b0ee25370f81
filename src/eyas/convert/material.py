"""Material: a drafter between two dialects, as what it computes and its matrices by role."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace

from eyas.checkpoint import SINGLE_FILES, Format
from eyas.checkpoint.rows import Rows
from eyas.checks import Trained
from eyas.checks.unscaled import FLOATS, MAPS, unscaled
from eyas.dialects.contents import contents
from eyas.errors import ConversionError
from eyas.spec import Eagle3Spec, Recognised


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

    spec: Eagle3Spec
    parts: Mapping[str, Part]
    changes: tuple[str, ...] = ()

    def changed(
        self, what: str, *, spec: Eagle3Spec | None = None, parts: Mapping[str, Part | None]
    ) -> Material:
        """With `parts` in place of those of their roles, None for one that is left out.

        `what` says it in words.
        """
        merged = {**self.parts, **parts}
        return replace(
            self,
            spec=spec or self.spec,
            parts={role: part for role, part in merged.items() if part is not None},
            changes=(*self.changes, what),
        )


def material_of(trained: Trained) -> Material:
    """The drafter of `trained`, none of whose tensors and keys is left out.

    Raises ConversionError where one is not understood, so that it could not be carried over.
    """
    spec = _require_understood(trained)
    checkpoint = trained.checkpoint
    found = contents(checkpoint, trained.roles, spec.attention)
    split = sorted({content.tensor for content in found.values() if content.part})
    said = [f"{name} is split into its parts" for name in split]
    if checkpoint.format is Format.PICKLE:
        said.append("the weights were a pickle, read as weights only: nothing of it was run")
    return Material(
        spec=spec,
        parts={role: Part(rows=c.rows, origin=c.tensor) for role, c in found.items()},
        changes=tuple(said),
    )


def _require_understood(trained: Trained) -> Eagle3Spec:
    from eyas import dialects

    spec, checkpoint = trained.spec, trained.checkpoint
    location = checkpoint.location
    inspect = f"eyas inspect {location}"
    if not isinstance(spec, Eagle3Spec):
        why = "is known by name alone" if isinstance(spec, Recognised) else "convert does not cover"
        raise ConversionError(f"{location} is {spec.name}, which {why}", hint=inspect)
    if checkpoint.rival is not None and not location.endswith(SINGLE_FILES):
        raise ConversionError(
            f"{location} also holds {checkpoint.rival}, and which of its weight files are the"
            " drafter is not said",
            hint=f"name the file: {location}/{checkpoint.files[0]}",
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

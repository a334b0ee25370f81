"""Plan: the names and the config under which an engine computes what was trained."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eyas.checkpoint import Format
from eyas.checkpoint.header import TORCH_NAMES
from eyas.checks import Trained, as_trained
from eyas.checks.unscaled import unscaled
from eyas.convert.objection import Objection, refusal
from eyas.convert.recheck import objections
from eyas.convert.writers import WRITERS, Writer
from eyas.errors import ConversionError
from eyas.spec import Eagle3Spec, Mha, Recognised

if TYPE_CHECKING:
    from eyas.checkpoint import Checkpoint, TargetFacts, TensorBytes
    from eyas.engines import EngineRef


@dataclass(frozen=True, slots=True, kw_only=True)
class Rename:
    """A tensor's name before and after, and its role in the drafter's arithmetic."""

    before: str
    after: str
    role: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a conversion will write; nothing is written yet."""

    source: str
    before: str  # the dialect that is read
    after: str  # the dialect that is written
    manner: str  # its names and keys, where it has several
    engine: str
    renames: tuple[Rename, ...]
    config: Mapping[str, Any]

    def text(self) -> str:
        """The plan for a reader."""
        from eyas.checks.fold import fold

        old = fold((r.before for r in self.renames), among=[r.before for r in self.renames])
        changed = [r for r in self.renames if r.before != r.after]
        lines = [
            f"{self.source}: {self.before} → {self.after} ({self.manner}), for {self.engine}",
            f"  {len(self.renames)} tensors ({', '.join(old)}), {len(changed)} of them renamed,"
            " no byte changed",
        ]
        lines += [f"    {r.before} → {r.after}" for r in changed]
        lines.append("  config.json")
        lines += [f"    {key}: {value}" for key, value in self.config.items()]
        return "\n".join(lines) + "\n"


def plan(checkpoint: Checkpoint, ref: EngineRef, *, target: TargetFacts | None = None) -> Plan:
    """The first way of writing `checkpoint` in which `ref` computes what was trained.

    Every writer is tried, those of its own dialect first, on a sparse copy that the engine's
    contract reads. Raises EngineError for an engine or version that eyas does not know, and
    ConversionError with the engine's objections when there is no such way.
    """
    from eyas.engines import require_covered

    require_covered(ref)
    trained = as_trained(checkpoint, target=target)
    spec = convertible(trained)
    against: list[list[Objection]] = []
    unwritten: list[ConversionError] = []
    for writer in sorted(WRITERS, key=lambda w: w.dialect != trained.dialect):
        try:
            candidate = _candidate(trained, spec, writer, ref)
        except ConversionError as error:
            unwritten.append(error)
            continue
        found = _tried(trained, candidate, ref)
        if not found:
            return candidate
        against.append(found)
    raise refusal(trained.checkpoint.location, against, unwritten, ref)


def convertible(trained: Trained) -> Eagle3Spec:
    """The spec of a drafter whose tensors and keys are all understood, or ConversionError."""
    from eyas import dialects

    spec, location = trained.spec, trained.checkpoint.location
    if not isinstance(spec, Eagle3Spec):
        why = "is known by name alone" if isinstance(spec, Recognised) else "convert does not cover"
        raise ConversionError(
            f"{location} is {spec.name}, which {why}", hint=f"eyas inspect {location}"
        )
    if trained.checkpoint.format is not Format.SAFETENSORS:
        raise ConversionError(
            f"{location} is a {trained.checkpoint.format} file, whose q and k have their rows in"
            " another order, and convert changes no byte",
            hint="convert the safetensors that it was made from",
        )
    if not isinstance(spec.attention, Mha):
        raise ConversionError(
            f"{location} has multi-head latent attention, which convert does not cover",
            hint=f"eyas inspect {location}",
        )
    rival = trained.checkpoint.rival
    if rival is not None and not location.endswith(".safetensors"):
        raise ConversionError(
            f"{location} also holds {rival}, and which of its weight files are the drafter is not"
            " said",
            hint=f"name the file: {location}/{trained.checkpoint.files[0]}",
        )
    unread = dialects.unread_keys(trained.checkpoint)
    if unread:
        raise ConversionError(
            f"{unread[0]}, and convert does not know what it does to the drafter, so it would be"
            " lost",
            hint="remove the key, if the drafter was trained without what it says",
        )
    plain = unscaled(trained)
    if plain:
        raise ConversionError(
            f"{trained.checkpoint.place(plain[0])} holds"
            f" {trained.checkpoint.tensors[plain[0]].dtype} numbers, and nothing says how they are"
            " scaled",
            hint="export the drafter in bfloat16",
        )
    strangers = [name for name in trained.checkpoint.tensors if name not in trained.roles]
    if strangers:
        raise ConversionError(
            f"{trained.checkpoint.place(strangers[0])} has no known part in the drafter,"
            " so it cannot be said where it should go",
            hint=f"eyas inspect {location}",
        )
    twice = [role for role, count in Counter(trained.roles.values()).items() if count > 1]
    if twice:
        raise ConversionError(
            f"{location} has more than one tensor for {twice[0]}", hint=f"eyas inspect {location}"
        )
    return spec


def tensors_of(checkpoint: Checkpoint, renames: Iterable[Rename]) -> dict[str, TensorBytes]:
    """The tensors of `checkpoint` under their new names, read when they are written."""
    from eyas.checkpoint import TensorBytes

    return {
        rename.after: TensorBytes(
            dtype=checkpoint.tensors[rename.before].dtype,
            shape=checkpoint.tensors[rename.before].shape,
            data=checkpoint.span(rename.before) or partial(checkpoint.chunks, rename.before),
        )
        for rename in renames
    }


def _candidate(trained: Trained, spec: Eagle3Spec, writer: Writer, ref: EngineRef) -> Plan:
    """The plan that `writer` makes; raises ConversionError where it cannot express the drafter."""
    roles = {name: trained.roles[name] for name in trained.checkpoint.tensors}
    config, names = writer(spec, tuple(roles.values()), _dtype(trained.checkpoint))
    return Plan(
        source=trained.checkpoint.location,
        before=trained.dialect,
        after=writer.dialect,
        manner=writer.manner,
        engine=str(ref),
        renames=tuple(
            Rename(before=name, after=names[role], role=role) for name, role in roles.items()
        ),
        config=config,
    )


def _dtype(checkpoint: Checkpoint) -> str | None:
    """torch's name of the type that all weights share, or None."""
    kinds = {t.dtype for t in checkpoint.tensors.values() if t.dtype in TORCH_NAMES}
    return TORCH_NAMES[kinds.pop()] if len(kinds) == 1 else None


def _tried(trained: Trained, candidate: Plan, ref: EngineRef) -> list[Objection]:
    """The objections to `candidate`, from a copy that has the integers but holes for weights."""
    from eyas.checkpoint import open_checkpoint, write_checkpoint

    tensors = {
        name: tensor if tensor.dtype.startswith(("I", "U", "BOOL")) else replace(tensor, data=None)
        for name, tensor in tensors_of(trained.checkpoint, candidate.renames).items()
    }
    with tempfile.TemporaryDirectory(prefix="eyas-") as directory:
        trial = write_checkpoint(Path(directory) / "trial", candidate.config, tensors)
        return objections(trained, open_checkpoint(trial), ref)

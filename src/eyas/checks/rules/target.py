"""T7: whether the drafter and the target fit each other."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

from eyas.checkpoint.header import TORCH_NAMES
from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.convention import other_reading
from eyas.checks.rules.fact import spoken, with_source
from eyas.checks.rules.positions import beyond_limit, positions_of
from eyas.checks.rules.rule import NO_TARGET, TrainedRule, ViewRule
from eyas.checks.view import Trained, View
from eyas.errors import TargetError
from eyas.spec import (
    Eagle3Spec,
    Fact,
    Fused,
    Origin,
    Rope,
    boundaries_of,
    declared,
    inferred,
)

if TYPE_CHECKING:
    from eyas.checkpoint import TargetFacts


LONGEST = "longest sequence"  # what engines' launch keys call it


def unstated(target: TargetFacts | None, key: str) -> str:
    """The reason that a check cannot run: no target was named, or its config has no `key`."""
    return NO_TARGET if target is None else f"the config of {target.location} states no {key}"


class WidthMismatch(TrainedRule):
    """The target's states have another width than fc was trained for.

    What it checks
        target_hidden_size of the drafter against hidden_size of the target.

    Why it matters
        fc cannot be applied: engines raise, or, where the width happens to equal the drafter's,
        skip it in silence.

    How to fix it
        Name the target that the drafter was trained for.

    Example
        A drafter of Llama-3.1-8B (4096) under Llama-3.3-70B (8192).
    """

    code = "T701"
    name = "width-mismatch"
    effect = "fc cannot be applied to the target's states"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec):
            return
        if target is None or target.hidden_size is None:
            yield self.skip(unstated(target, "hidden_size"))
        elif spec.target_hidden_size.value != target.hidden_size:
            width = spec.target_hidden_size
            yield self.finding(
                place=width.key,
                message=f"the drafter takes states of width {width.value},"
                f" the target's are {target.hidden_size} wide",
                expected=f"a target of width {width.value} ({width.key})",
                found=f"hidden_size {target.hidden_size} ({target.location})",
                advice=f"eyas inspect {trained.draft}",
            )


class BoundaryOutside(TrainedRule):
    """A captured boundary that the target does not have.

    What it checks
        Whether every boundary that the drafter was trained on lies in the target: 0 (embeddings)
        to L (after the last of L layers); and whether the default boundaries exist at all.

    Why it matters
        The engine captures one state too few: an error at the first request, or in the worst case
        a fusion that is skipped.

    How to fix it
        Name the target that the drafter was trained for, or correct the layer ids.

    Example
        Boundary 59 for a target of 32 layers.
    """

    code = "T703"
    name = "boundary-outside"
    effect = "a state that fc needs does not exist"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec) or not isinstance(spec.conditioning, Fused):
            return
        if target is None or target.num_layers is None:
            yield self.skip(unstated(target, "num_hidden_layers"))
            return
        boundaries = spec.conditioning.boundaries
        if other_reading(trained) is not None:
            return  # B602 tells it
        try:
            boundaries_of(boundaries.value, target.num_layers)
        except TargetError as error:
            yield self.finding(
                place=boundaries.key,
                message=error.message,
                expected=f"boundaries within 0 to {target.num_layers}",
                found=with_source(boundaries),
                advice=f"eyas inspect {trained.draft}",
            )


class PositionsBelowTarget(ViewRule):
    """A drafter with fewer positions than the target serves.

    What it checks
        max_position_embeddings of the drafter against the target's, where the launch does not say
        how long sequences may become: engines then serve up to the target's limit.

    Why it matters
        SGLang raises at the start from 0.5.1 on, unless an environment variable lets it raise the
        drafter's limit to the target's. vLLM raises the limit by itself. Either way the drafter
        was never trained beyond its own, and acceptance falls where training ended.

    How to fix it
        Launch with the context that is needed (context_length, max_model_len), or start SGLang
        with SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1 and measure acceptance; or train the
        drafter on longer sequences.

    Example
        A drafter with 2048 positions under Llama-3.1-8B, which serves 131072.
    """

    code = "T704"
    name = "positions-below-target"
    severity = Severity.WARNING
    effect = "acceptance can collapse beyond the drafter's limit"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        spec, target = view.trained.spec, view.trained.target
        if not isinstance(spec, Eagle3Spec) or target is None or view.served.context is not None:
            return
        limit, served = positions_of(view, spec), target.max_position_embeddings
        if limit.value is None or served is None or limit.value >= served:
            return
        yield self.finding(
            view,
            place=limit.key,
            message=f"the drafter has {limit.value} positions, and {view.engine} serves the target"
            f" up to {served}",
            expected=f"at least {served} ({target.location} :: max_position_embeddings)",
            found=with_source(limit),
            **beyond_limit(view, f"{_context_option(view)}={limit.value}"),
        )


class RopeUnlikeTarget(TrainedRule):
    """Another rotary embedding than the target's.

    What it checks
        Where both configs state one: theta, kind and scaling of the drafter's rotary embedding
        against the target's.

    Why it matters
        Most trainers take the target's, so that a difference is often a value that was lost on the
        way: a converter that drops rope_scaling, or theta left at 10000. Some mean it: ModelOpt
        trains plainly and exports yarn. The files cannot tell the two apart.

    How to fix it
        Ask the trainer, or measure acceptance with both.

    Example
        A drafter of Llama-3.1-8B with theta 500000 and no llama3 scaling.
    """

    code = "T705"
    name = "rope-unlike-target"
    severity = Severity.WARNING
    effect = (
        "if the drafter was trained with the target's: other distances (2.387 instead of 2.497)"
    )

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec) or target is None or target.rope is None:
            return
        rope = spec.rope
        if rope.origin is Origin.ASSUMED or _alike(rope.value, target.rope):  # N506 tells the first
            return
        yield self.finding(
            place=rope.key,
            message=f"the drafter rotates with {spoken(rope.value)}; the target with"
            f" {spoken(target.rope)}",
            expected=f"{spoken(target.rope)} ({target.location})",
            found=with_source(rope),
            advice="ask the trainer, or measure acceptance with both",
        )


class TypeUnlikeTarget(TrainedRule):
    """Weights of another number type than the target computes with.

    What it checks
        The type that the drafter's config states (torch_dtype, dtype), else the one that its
        matrices are stored in, against the target's.

    Why it matters
        An engine that takes each type from its own config multiplies states of one type with
        matrices of another and raises; one that converts can overflow: a drafter trained in
        bfloat16 had 0 of 1100 tokens accepted in float16.

    How to fix it
        Launch both with one --dtype, the one that the drafter was trained in.

    Example
        A float16 drafter under a bfloat16 target.
    """

    code = "T706"
    name = "type-unlike-target"
    severity = Severity.WARNING
    effect = "an error where the two meet, or an overflow (0 of 1100 accepted seen)"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        target = trained.target
        if not isinstance(trained.spec, Eagle3Spec) or target is None or target.dtype is None:
            return
        kind = number_type(trained)
        wanted = target.dtype.removeprefix("torch.")
        if kind is None or kind.value == wanted or wanted not in TORCH_NAMES.values():
            return
        yield self.finding(
            place=kind.key,
            message=f"the drafter is in {kind.value}, the target in {wanted}",
            expected=f"{wanted} ({target.location})",
            found=f"{kind.value} ({kind.key})",
            advice=f"launch both with --dtype {kind.value}, or export the drafter in {wanted}",
        )


def number_type(trained: Trained) -> Fact[str] | None:
    """torch's name of the drafter's number type: as stated, else as its matrices are stored."""
    config, file = trained.checkpoint.config, trained.checkpoint.config_file
    for section in ("", "transformer_layer_config"):
        table = config.get(section) if section else config
        for key in ("dtype", "torch_dtype"):
            value = table.get(key) if isinstance(table, Mapping) else None
            if isinstance(value, str):
                place = f"{section}.{key}" if section else key
                return declared(value.removeprefix("torch."), f"{file} :: {place}")
    for name, role in trained.roles.items():
        stored = TORCH_NAMES.get(trained.checkpoint.tensors[name].dtype)
        if role.endswith("_proj.weight") and stored is not None:
            return inferred(stored, trained.checkpoint.place(name))
    return None


def _context_option(view: View) -> str:
    """The launch option of the engine that bounds the length of sequences."""
    from eyas.engines.catalogue import engine_named

    engine = engine_named(view.served.engine)
    keys = () if engine is None else engine.launch_keys
    return next((key.name for key in keys if key.meaning == LONGEST), "the longest sequence")


def _alike(one: Rope, other: Rope) -> bool:
    """Whether two rotary embeddings turn alike; numbers that are null say nothing."""
    if (one.theta, one.kind) != (other.theta, other.kind):
        return False
    stated = [{k: v for k, v in rope.scaling.items() if v is not None} for rope in (one, other)]
    return one.kind == "default" or stated[0] == stated[1]


RULES = (
    WidthMismatch(),
    BoundaryOutside(),
    PositionsBelowTarget(),
    RopeUnlikeTarget(),
    TypeUnlikeTarget(),
)

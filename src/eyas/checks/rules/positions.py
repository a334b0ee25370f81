"""N5: how far the drafter sees, and with which distances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, ClassVar, TypedDict

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.fact import LAUNCH, FactRule, cited, remedy, with_source
from eyas.checks.rules.rule import TrainedRule, ViewRule
from eyas.checks.view import Trained, View
from eyas.spec import Eagle3Spec, Fact, LongContext, Origin, declared


class RopeDiffers(FactRule):
    """Another rotary embedding.

    What it checks
        Theta, kind and scaling of the rotary embedding, normalised from the spellings of
        transformers 4 and 5.

    Why it matters
        Attention sees other distances. A head trained at theta 1e4 and declared 1e6 was measured at
        2.387 instead of 2.497; the loss grows with the context.

    How to fix it
        Write rope_theta (and rope_scaling) into the config in the spelling that the engine reads.

    Example
        A config with rope_parameters alone, read by code that knows rope_theta alone.
    """

    code = "N503"
    name = "rope-differs"
    facts = ("rope",)
    words = ("rope",)
    saying = "{engine} rotates with {served}; the drafter was trained with {trained}"
    effect = "attention sees other distances (2.387 instead of 2.497 seen), worse with context"


class PositionsDiffer(FactRule):
    """Another limit of positions.

    What it checks
        max_position_embeddings, as trained and as served, and the longest sequence of the launch
        (context_length, max_model_len) where it is given.

    Why it matters
        Beyond the smaller limit acceptance can collapse, with no sign below it. SGLang raises at
        the start, from 0.5.1 on, where sequences may become longer than the drafter's limit.

    How to fix it
        Write the limit that the drafter is served with.

    Example
        Drafters with 2048 positions under a target that serves 128k.
    """

    code = "N505"
    name = "positions-differ"
    severity: ClassVar[Severity] = Severity.WARNING
    facts = ("max_position_embeddings",)
    words = ("max_position",)
    effect = "acceptance can collapse beyond the smaller limit"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        spec, context = view.trained.spec, view.served.context
        if not isinstance(spec, Eagle3Spec):
            return
        beyond = view.served.long_context
        extended = beyond is not None and beyond.value is LongContext.EXTENDED
        if not extended or spec.max_position_embeddings.value is not None:
            yield from super()._look(view)
        if context is None:
            return
        limit = positions_of(view, spec)
        if limit.value is not None and limit.value < context.value:
            yield self.finding(
                view,
                place=limit.key,
                message=f"{view.engine} is launched for sequences of {context.value} tokens; the"
                f" drafter has {limit.value} positions",
                expected=f"at most {with_source(limit)}",
                found=with_source(context),
                **beyond_limit(view, f"{context.key.removeprefix(LAUNCH)}={limit.value}"),
            )

    def difference(self, view: View, path: str, before: Fact[Any], after: Fact[Any]) -> Finding:
        """The finding of two limits, or of one that only the engine has."""
        if before.value is not None:
            return super().difference(view, path, before, after)
        return self.finding(
            view,
            place=before.key,
            message=f"no {path} is stated, and {view.engine} takes {after.value}",
            expected="the limit that the drafter was trained with",
            found=with_source(after),
            effect=beyond_limit(view, "")["effect"],
            advice=f"write the {path} that it was trained with into"
            f" {view.trained.checkpoint.config_file}",
            source=cited(view, *self.words),
        )


class RopeAssumed(TrainedRule):
    """A rotary embedding that the files do not state.

    What it checks
        Whether the drafter's config states rope_theta, in any spelling.

    Why it matters
        Without it every reader takes 10000. Trainers that forgot to write it trained with the
        target's, and such a drafter is served with other distances (2.387 instead of 2.497 seen);
        EAGLE's own trainer means 10000. The files cannot tell the two apart.

    How to fix it
        Ask the trainer, or measure acceptance with both; then write rope_theta into the config.

    Example
        A config without rope_theta under a target with theta 500000.
    """

    code = "N506"
    name = "rope-assumed"
    severity: ClassVar[Severity] = Severity.WARNING
    effect = "if it was trained with another theta: other distances (2.387 instead of 2.497 seen)"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, target = trained.spec, trained.target
        if not isinstance(spec, Eagle3Spec) or spec.rope.origin is not Origin.ASSUMED:
            return
        theta = None if target is None else target.rope_theta
        if theta == spec.rope.value.theta:
            return
        beside = "" if target is None or theta is None else f"; the target's is {theta:g}"
        yield self.finding(
            place=spec.rope.key,
            message="no rope_theta is stated, so it is taken for"
            f" {spec.rope.value.theta:g}{beside}",
            expected="rope_theta as trained",
            found=with_source(spec.rope) + beside,
            advice="write the trained rope_theta into the config; measure where it is not known",
        )


class WindowIgnored(ViewRule):
    """A sliding window that the drafter was trained with, and the engine does not apply.

    What it checks
        Whether the config gives a layer of the drafter a sliding window (layer_types with
        sliding_attention), and the engine computes full attention.

    Why it matters
        Up to the window both are the same. Beyond it every position sees tokens that it never saw
        in training: tau fell from 2.3 to 1.08 at 20,000 tokens.

    How to fix it
        Serve the drafter on an engine that reads layer_types, or keep sequences within the window.

    Example
        speculators 0.9 trains with a window of 2048 by default; SGLang does not read layer_types.
    """

    code = "N508"
    name = "window-ignored"
    severity: ClassVar[Severity] = Severity.WARNING
    effect = "acceptance falls beyond the window (2.3 to 1.08 at 20,000 tokens seen)"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        window, slides, context = window_of(view.trained), view.served.slides, view.served.context
        if window is None or slides is None or slides.value:
            return
        if context is not None and context.value <= window.value:
            return
        yield self.finding(
            view,
            severity=None if context is None else Severity.ERROR,
            place=window.key,
            message=f"{view.engine} computes full attention; the drafter was trained with a window"
            f" of {window.value} tokens",
            expected=with_source(window),
            found=f"full attention ({slides.key} is not read)",
            advice=view.elsewhere,
            source=cited(view, "layer_types"),
        )


def positions_of(view: View, trained: Eagle3Spec) -> Fact[int | None]:
    """The drafter's limit: as trained, else the engine's default, where one has a value.

    An engine that gives the drafter the target's limit takes nothing from its default.
    """
    served, beyond = view.served.spec, view.served.long_context
    stated = trained.max_position_embeddings
    if stated.value is not None or not isinstance(served, Eagle3Spec):
        return stated
    extended = beyond is not None and beyond.value is LongContext.EXTENDED
    return stated if extended else served.max_position_embeddings


class _Beyond(TypedDict):
    severity: Severity | None
    effect: str | None
    advice: str
    source: str | None


def beyond_limit(view: View, within: str) -> _Beyond:
    """What comes of sequences beyond the drafter's positions, and what to launch with instead.

    `within` is the launch option that keeps to them. An engine that raises unless its environment
    says otherwise is a warning, since no file and no command line shows the environment; it is an
    error where the launch says that it does not.
    """
    beyond, source = view.served.long_context, cited(view, "max_position")
    if beyond is None or beyond.value is not LongContext.REFUSED:
        advice = f"launch with {within}, or measure acceptance beyond that"
        return _Beyond(severity=None, effect=None, advice=advice, source=source)
    allowed = remedy(view, beyond).removeprefix("launch with ")
    return _Beyond(
        severity=Severity.ERROR if beyond.origin is Origin.DECLARED else None,
        effect=f"a target that serves more makes {view.engine} raise at the start, unless {allowed}"
        " is set; with it, acceptance can collapse beyond the drafter's limit",
        advice=f"launch with {within}; or with {allowed}, and measure acceptance beyond that",
        source=source,
    )


def window_of(trained: Trained) -> Fact[int] | None:
    """The sliding window of one of the drafter's layers, None where all attend fully."""
    config, file = trained.checkpoint.config, trained.checkpoint.config_file
    nested = config.get("transformer_layer_config")
    table, prefix = (nested, "transformer_layer_config.") if nested else (config, "")
    if not isinstance(table, Mapping) or not isinstance(trained.spec, Eagle3Spec):
        return None
    kinds, window = table.get("layer_types"), table.get("sliding_window")
    if not isinstance(kinds, list) or not isinstance(window, int) or isinstance(window, bool):
        return None
    slides = "sliding_attention" in kinds[: trained.spec.num_layers.value]
    return declared(window, f"{file} :: {prefix}sliding_window") if slides else None


RULES = (RopeDiffers(), PositionsDiffer(), RopeAssumed(), WindowIgnored())

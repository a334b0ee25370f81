"""N5: the numbers of the decoder layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.fact import LAUNCH, FactRule, with_source
from eyas.checks.rules.rule import TrainedRule
from eyas.checks.view import Trained, View
from eyas.spec import Eagle3Spec, Origin


class ResidualIgnored(FactRule):
    """Residual taken from the other side of hidden_norm.

    What it checks
        Whether the engine takes the residual of the first decoder layer before or after
        hidden_norm, as the drafter was trained (norm_before_residual).

    Why it matters
        Every draft step computes something else than was trained. On a weak head, forgetting the
        flag cost 1.137 instead of 1.303; strong heads lose more.

    How to fix it
        No change of names or weights can express it. Serve the drafter on an engine that reads
        norm_before_residual, or train it with the value that this engine computes.

    Example
        A speculators drafter with "norm_before_residual": true on SGLang, which always takes the
        un-normed state.
    """

    code = "N501"
    name = "residual-ignored"
    written = False
    facts = ("norm_before_residual",)
    words = ("norm_before_residual",)
    saying = (
        "{engine} computes norm_before_residual = {served}, the drafter was trained with {trained}"
    )
    effect = "every draft step is computed otherwise (a weak head fell from 1.303 to 1.137)"


class FeedbackDiffers(FactRule):
    """Another state fed back into the next draft step.

    What it checks
        Whether the state that one draft step hands to the next is taken before or after the final
        norm, as trained (norm_output, EAGLE-3.1).

    Why it matters
        The first draft token is right, all later ones are computed from a state of another scale:
        acceptance falls from position 2 on.

    How to fix it
        Write norm_output into the config where the engine reads it, or serve on one that does.

    Example
        speculators 0.9 trains post-norm feedback by default; llama.cpp ignores the flag.
    """

    code = "N502"
    name = "feedback-differs"
    facts = ("feedback",)
    words = ("norm_output",)
    saying = "{engine} feeds the {served} state back, the drafter was trained on the {trained} one"
    effect = "draft tokens after the first are computed from a state of another scale"


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


class LayerArithmeticDiffers(FactRule):
    """Another epsilon, activation, bias or norm inside the layer.

    What it checks
        rms_norm_eps, the activation, the bias of q, k and v, the norms of q and k, and which norm
        the layers after the first call before attention.

    Why it matters
        A bias or a norm that is left out changes every attention score; an epsilon matters only
        where states are tiny.

    How to fix it
        Serve the drafter on an engine that computes this part.

    Example
        A drafter of the Qwen3 kind has q_norm and k_norm; a Llama class has no place for them.
    """

    code = "N504"
    name = "layer-arithmetic-differs"
    written = False
    facts = ("rms_norm_eps", "activation", "attention.bias", "attention.qk_norm", "later_norm")
    both = ("later_norm",)  # None where there is one layer, and the number of layers has its rule
    words = ("q_norm", "attention_bias", "runs before attention")
    effect = "every draft step is computed otherwise than trained"


class PositionsDiffer(FactRule):
    """Another limit of positions.

    What it checks
        max_position_embeddings, as trained and as served, and the longest sequence of the launch
        (context_length, max_model_len) where it is given.

    Why it matters
        Beyond the smaller limit acceptance can collapse, with no sign below it.

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
        yield from super()._look(view)
        spec, context = view.trained.spec, view.served.context
        if not isinstance(spec, Eagle3Spec) or context is None:
            return
        limit = spec.max_position_embeddings
        if limit.value is not None and limit.value < context.value:
            yield self.finding(
                view,
                place=limit.key,
                message=f"{view.engine} is launched for sequences of {context.value} tokens; the"
                f" drafter has {limit.value} positions",
                expected=f"at most {with_source(limit)}",
                found=with_source(context),
                advice=f"launch with {context.key.removeprefix(LAUNCH)}={limit.value}, or measure"
                " acceptance beyond that",
                source=None,
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


RULES = (
    ResidualIgnored(),
    FeedbackDiffers(),
    RopeDiffers(),
    LayerArithmeticDiffers(),
    PositionsDiffer(),
    RopeAssumed(),
)

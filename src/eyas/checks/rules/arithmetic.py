"""N5: the numbers of the decoder layer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.fact import FactRule
from eyas.checks.rules.rule import TrainedRule
from eyas.checks.view import Trained
from eyas.spec import Eagle3Spec, Feedback, Mla, Origin


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


class FeedbackMeaning(TrainedRule):
    """norm_output in a config whose writer may have meant another thing by it.

    What it checks
        Whether a flat config has norm_output true and bears the marks of SpecForge: one layer
        called midlayer, and no norm_before_residual, which other writers of the flag state.

    Why it matters
        To engines norm_output true feeds the normed state into the next draft step. In SpecForge
        0.2.0 it says what the head sees, and the state that is fed back is never normed
        (SpecForge's change 879 of 2026-09 corrects it): such a drafter is served with another
        feedback from the second draft token on.

    How to fix it
        If it was trained with SpecForge 0.2.0 or older, set norm_output false.

    Example
        SpecForge's recipe qwen3-30B-A3B-eagle3.1.
    """

    code = "N507"
    name = "feedback-meaning"
    severity: ClassVar[Severity] = Severity.WARNING
    effect = "if SpecForge 0.2.0 trained it: later draft tokens see a state of another scale"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec, config = trained.spec, trained.checkpoint.config
        if not isinstance(spec, Eagle3Spec) or isinstance(spec.attention, Mla):
            return
        flag = spec.feedback
        by_specforge = "norm_before_residual" not in config and any(
            name.startswith("midlayer.") for name in trained.checkpoint.tensors
        )
        declared = flag.origin is Origin.DECLARED and flag.value is Feedback.POST_NORM
        if trained.dialect != "specforge" or not declared or not by_specforge:
            return
        yield self.finding(
            place=flag.key,
            message="norm_output is true, which engines take for a normed feedback; SpecForge 0.2.0"
            " trains an un-normed one under this flag",
            expected="norm_output as engines read it",
            found=f"true ({flag.key}), in a checkpoint that looks like SpecForge's",
            advice="set norm_output false, if SpecForge 0.2.0 or older trained the drafter",
        )


RULES = (
    ResidualIgnored(),
    FeedbackDiffers(),
    LayerArithmeticDiffers(),
    FeedbackMeaning(),
)

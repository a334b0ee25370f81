"""F3: whether fc runs, and over what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import ClassVar

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.fact import FactRule, cited, remedy, with_source
from eyas.checks.rules.rule import TrainedRule, ViewRule
from eyas.checks.view import Trained, View
from eyas.spec import Eagle3Spec, Fused, LastState, Unfused


class FusionBypassed(ViewRule):
    """fc never runs: the drafter gets one state of the target instead of several.

    What it checks
        Whether the engine, under this launch, hands the drafter the concatenation of the captured
        states, and runs fc over it.

    Why it matters
        Engines run fc only where the width of the state differs from the embedding's. With one
        state of the drafter's own width the test is false and fusion is skipped in silence:
        acceptance was exactly 1.00 with a 7168-wide drafter (Kimi-K2.5), 1.12 with a small one.

    How to fix it
        Launch with the EAGLE-3 algorithm, and leave use_aux_hidden_state true.

    Example
        sglang with --speculative-algorithm EAGLE and an EAGLE-3 drafter of the target's width.
    """

    code = "F301"
    name = "fusion-bypassed"
    effect = "fc is dead weight; acceptance collapses (1.00 to 1.2 seen)"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        trained, served = view.trained.spec, view.served.spec
        if not isinstance(trained, Eagle3Spec) or not isinstance(served, Eagle3Spec):
            return
        before, after = trained.conditioning, served.conditioning
        if not isinstance(before, Fused) or not isinstance(after, LastState | Unfused):
            return
        if isinstance(after, LastState):
            gets = f"one state of the target instead of {before.count.value}"
        else:
            gets = "the captured states as they are"
        yield self.finding(
            view,
            place=after.reason.key,
            message=f"{view.engine} never runs fc: the drafter gets {gets}",
            expected=f"fc over {before.count.value} states ({before.count.key})",
            found=with_source(after.reason),
            advice=remedy(view, after.reason),
            source=cited(view, "one state", "last state", "fc runs"),
        )


class FusionAdded(ViewRule):
    """Captured states although the drafter was trained on the last one.

    What it checks
        Whether a drafter that was trained on the target's last state alone is served with captured
        states, fused or as they are.

    Why it matters
        The drafter sees an input that it never saw.

    How to fix it
        Write use_aux_hidden_state false into eagle_config, where the engine reads it.

    Example
        vLLM's V2 runner did not honour use_aux_hidden_state for a time.
    """

    code = "F302"
    name = "fusion-added"
    effect = "the drafter sees an input that it was not trained on"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        trained, served = view.trained.spec, view.served.spec
        if not isinstance(trained, Eagle3Spec) or not isinstance(served, Eagle3Spec):
            return
        before, after = trained.conditioning, served.conditioning
        if not isinstance(before, LastState) or isinstance(after, LastState):
            return
        fused = isinstance(after, Fused)
        cause = after.count if isinstance(after, Fused) else after.reason
        gets = f"fuses {cause.value} states" if fused else "hands over captured states"
        yield self.finding(
            view,
            place=before.reason.key,
            message=f"{view.engine} {gets}; the drafter was trained on the last one alone",
            expected=with_source(before.reason),
            found=with_source(cause),
            advice=remedy(view, cause),
            source=cited(view, "use_aux_hidden_state"),
        )


class FusionInputsDiffer(FactRule):
    """Another number of states in the fusion.

    What it checks
        How many captured states the engine sizes fc for.

    Why it matters
        fc has another width than its input: an error at load or at the first request, or a matrix
        that is cut.

    How to fix it
        Write num_aux_hidden_states, or as many layer ids as states, where the engine reads them.

    Example
        Four ids at the top level of the config, and an engine that counts those in eagle_config.
    """

    code = "F303"
    name = "fusion-inputs-differ"
    facts = ("conditioning.count",)
    words = ("num_aux",)
    saying = "{engine} fuses {served} states; the drafter was trained on {trained}"
    effect = "fc has another width than its input"


class FusionNormDiffers(FactRule):
    """A norm before fc that one side has and the other has not.

    What it checks
        input_norm over the concatenated states (norm_before_fc) and fc_norm over each of them.

    Why it matters
        fc gets states of another scale than it was trained on.

    How to fix it
        Write norm_before_fc or fc_norm into the config where the engine reads it.

    Example
        A drafter with input_norm.weight on SGLang 0.5.16, which drops the tensor.
    """

    code = "F304"
    name = "fusion-norm-differs"
    facts = ("conditioning.input_norm", "conditioning.fc_norm")
    words = ("norm_before_fc", "fc_norm")
    saying = "{engine} computes {what} = {served} before fc; trained with {trained}"
    effect = "fc gets states of another scale than it was trained on"


class FusionBiasDiffers(FactRule):
    """The bias of fc, left out or added.

    What it checks
        Whether fc has a bias, as trained and as served.

    Why it matters
        A constant is missing from every fused state.

    How to fix it
        Set "bias" in the config, for an engine that reads it; vLLM never does.

    Example
        A drafter with fc.bias on vLLM, which drops it.
    """

    code = "F305"
    name = "fusion-bias-differs"
    written = False
    facts = ("conditioning.bias",)
    words = ("fc.bias",)
    saying = "{engine} runs fc with bias = {served}; trained with {trained}"
    effect = "a constant is missing from every fused state"


class TwoFusionNorms(TrainedRule):
    """Both norms before fc at once.

    What it checks
        Whether the drafter has a norm over the concatenated states and one for each state.

    Why it matters
        The trainers know the two as alternatives; engines that read both apply both, one after
        the other. Which of them the drafter was trained with the files do not say.

    How to fix it
        Keep the one that was trained: set norm_before_fc or fc_norm to false.

    Example
        A config with "norm_before_fc": true and "fc_norm": true.
    """

    code = "F307"
    name = "two-fusion-norms"
    severity: ClassVar[Severity] = Severity.WARNING
    effect = "fc may see states that were normed once more than trained"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        spec = trained.spec
        if not isinstance(spec, Eagle3Spec) or not isinstance(spec.conditioning, Fused):
            return
        whole, each = spec.conditioning.input_norm, spec.conditioning.fc_norm
        if whole.value and each.value:
            yield self.finding(
                place=each.key,
                message="the drafter has a norm over the states together and one for each of them;"
                " trainers know them as alternatives",
                expected="one of norm_before_fc and fc_norm",
                found=f"both ({whole.key} and {each.key})",
                advice="keep the norm that was trained: set norm_before_fc or fc_norm to false",
            )


RULES = (
    FusionBypassed(),
    FusionAdded(),
    FusionInputsDiffer(),
    FusionNormDiffers(),
    FusionBiasDiffers(),
    TwoFusionNorms(),
)

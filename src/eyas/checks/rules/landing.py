"""L2: which tensors fill which parameters, and what is left over on either side."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.fold import Folder, fold
from eyas.checks.rules.fact import cited
from eyas.checks.rules.loss import Loss, dropped_layers, effect_of, gaps, lost_with_role
from eyas.checks.rules.rule import TrainedRule, ViewRule
from eyas.checks.unscaled import unscaled
from eyas.checks.view import Trained, View
from eyas.spec import Landing


class TensorLost(ViewRule):
    """A tensor of the drafter that fills no parameter.

    What it checks
        Whether each tensor that the drafter computes with lands in the engine's model.

    Why it matters
        The parameter that it was meant for keeps what construction left there, and most loaders
        skip an unknown name without a log line. lm_head lost gave 1.00.

    How to fix it
        Convert the drafter: names change, bytes do not.

    Example
        q_norm.weight on a Llama class, which has no such parameter.
    """

    code = "L201"
    name = "tensor-lost"
    effect = "what the tensor holds is missing from every draft step"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        landing = view.served.landing
        if landing is None:
            return
        layered = {name for loss in dropped_layers(view, landing) for name in loss.tensors}
        for loss in lost_with_role(view, landing):
            if loss.tensors[0] not in layered:
                yield _lost(self, view, landing, loss)


class LayerDropped(ViewRule):
    """A decoder layer of which no tensor lands.

    What it checks
        Whether an engine reads none of the tensors of a layer: a sign that it knows the layer by
        another name.

    Why it matters
        The layer computes with what its memory held. Public reports: acceptance 1.00 to 1.2, no
        error anywhere.

    How to fix it
        Convert the drafter: names change, bytes do not.

    Example
        layers.0.* on SGLang before 0.5.12, whose layer is called midlayer.
    """

    code = "L202"
    name = "layer-dropped"
    effect = "the layer computes with what its memory held"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        landing = view.served.landing
        if landing is None:
            return
        for loss in dropped_layers(view, landing):
            yield _lost(self, view, landing, loss)


class ParameterUnfilled(ViewRule):
    """A parameter that no tensor of the checkpoint fills.

    What it checks
        Whether the engine's model has parameters, or rows of them, that keep what construction
        left there, and for which the checkpoint has no tensor at all.

    Why it matters
        Engines do not check that a drafter is complete: uninitialised memory is served as weights.
        lm_head missing gave 1.00.

    How to fix it
        Take the tensor from the training run, or correct the config that asks for it.

    Example
        num_hidden_layers 12, copied from the target, in a drafter of one layer.
    """

    code = "L203"
    name = "parameter-unfilled"
    effect = "parameters hold what construction left there; acceptance collapses (1.00 seen)"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        landing = view.served.landing
        if landing is None:
            return
        names = [p.name for p in landing.parameters if any(s.role for s in p.segments)]
        folder = Folder(names)
        for group in gaps(view, landing):
            pattern = ", ".join(folder.fold(g.parameter for g in group))
            rows = group[0].rows if len(group) == 1 else ""
            held = " and ".join(sorted({str(g.initialisation) for g in group}))
            count = len({g.parameter for g in group})
            subject = f"{count} parameters" if count > 1 else f"{pattern}{rows}"
            yield self.finding(
                view,
                place=f"{view.engine} :: {pattern}",
                message=f"{view.engine} fills {subject} from no tensor of the checkpoint",
                expected=f"a tensor for {pattern}{rows}",
                found=f"none; what is served there is {held}",
                effect=effect_of([g.initialisation for g in group]) or self.effect,
                advice=f"eyas landing {view.draft} --engine {view.reference}",
                source=cited(view, "every parameter was filled", "completeness"),
            )


class WeightsUnscaled(TrainedRule):
    """A matrix of integers or 8-bit floats, and nothing that scales it.

    What it checks
        Whether every matrix and norm is stored as BF16, F16, F32 or F64 numbers, or the config has
        a quantization_config that says how they are scaled.

    Why it matters
        Without a quantization_config engines copy int8 and fp8 numbers as they are: weights up to
        hundreds of times too large, and no log line.

    How to fix it
        Export the drafter in bfloat16, or restore its quantization_config and scales.

    Example
        q_proj.weight as I8 in a drafter whose config names no quantisation.
    """

    code = "L208"
    name = "weights-unscaled"
    effect = "the matrix is computed with as plain numbers, many times too large"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        checkpoint = trained.checkpoint
        for kind, names in _by_type(trained).items():
            pattern = ", ".join(fold(names, among=list(checkpoint.tensors)))
            yield self.finding(
                place=f"{checkpoint.place(names[0]).partition(' :: ')[0]} :: {pattern}",
                message=f"{pattern} {'holds' if len(names) == 1 else 'hold'} {kind} numbers, and"
                " nothing says how they are scaled",
                expected="BF16, F16, F32 or F64 numbers, or a quantization_config",
                found=f"{kind}, and no quantization_config",
                advice="export the drafter in bfloat16",
            )


def _by_type(trained: Trained) -> dict[str, list[str]]:
    kinds: dict[str, list[str]] = {}
    for name in unscaled(trained):
        kinds.setdefault(trained.checkpoint.tensors[name].dtype, []).append(name)
    return kinds


class SurplusLost(ViewRule):
    """A tensor that no dialect knows, and that the engine drops.

    What it checks
        Tensors without a known part in the drafter's arithmetic that land nowhere.

    Why it matters
        Mostly left over from training and harmless; but a part that eyas does not know would be
        lost the same way.

    How to fix it
        Nothing, if the tensor belongs to training alone.

    Example
        verifier_lm_head.weight in a drafter of an older speculators.
    """

    code = "L206"
    name = "surplus-lost"
    severity = Severity.WARNING
    effect = "none, if the tensor belongs to training alone"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        landing = view.served.landing
        if landing is None:
            return
        names = [t.name for t in landing.lost if t.name not in view.trained.roles]
        for pattern in fold(names, among=[t.name for t in landing.tensors]):
            yield self.finding(
                view,
                place=f"{view.draft} :: {pattern}",
                message=f"{view.engine} drops {pattern}, whose part in the drafter is unknown",
                expected="a tensor that the drafter's dialect knows",
                found=f"{pattern}, in no parameter",
                advice=f"eyas inspect {view.draft}",
                source=cited(view, "is skipped without"),
            )


def _lost(rule: ViewRule, view: View, landing: Landing, loss: Loss) -> Finding:
    """The finding that the tensors of `loss` land nowhere."""
    tensors = ", ".join(fold(loss.tensors, among=[t.name for t in landing.tensors]))
    homes = fold((g.parameter for g in loss.gaps), among=[p.name for p in landing.parameters])
    expected = f"tensors for {', '.join(homes)}" if homes else "a parameter to hold it"
    count = len(loss.tensors)
    reason = loss.reason if count == 1 else ""
    silent = "" if landing.log else ", and the engine logs nothing"
    first = view.trained.checkpoint.place(loss.tensors[0])
    return rule.finding(
        view,
        place=f"{first.partition(' :: ')[0]} :: {tensors}",
        message=f"{view.engine} reads none of the {count} tensors of {loss.what}"
        if count > 1
        else f"{view.engine} does not read {tensors}",
        expected=expected,
        found=f"{tensors}, which fills no parameter{f' ({reason})' if reason else silent}",
        effect=effect_of([g.initialisation for g in loss.gaps]) or None,
        advice=view.remedy(view.elsewhere, likely=bool(loss.gaps)),
        source=cited(view, "decoder layer is", "is skipped without"),
    )


RULES = (
    TensorLost(),
    LayerDropped(),
    ParameterUnfilled(),
    SurplusLost(),
    WeightsUnscaled(),
)

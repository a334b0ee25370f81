"""C1: whether the config and the tensors of a drafter speak of the same drafter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eyas.checkpoint import Format
from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.fold import fold
from eyas.checks.quantised import left_plain
from eyas.checks.rules.rule import TrainedRule
from eyas.checks.shapes import Shape, shapes_asked
from eyas.checks.unscaled import FLOATS
from eyas.checks.view import Trained
from eyas.spec import Eagle3Spec

SCALES = ("_scale", "_scale_inv", "_scale_2")  # what follows ``weight`` in the name of a scale
FUSED = (("q_proj", "k_proj", "v_proj"), ("gate_proj", "up_proj"))


class ShapesContradict(TrainedRule):
    """A tensor of another shape than the config asks for.

    What it checks
        Each matrix and norm against the sizes of the config: heads times head_dim, twice the width
        into the first layer's attention, as many states as fc fuses, one row of the head for each
        draft id.

    Why it matters
        Engines raise, or cut and pad the matrix without a word. head_dim left to be inferred, and a
        vocab_size that is really the draft's, are the usual causes.

    How to fix it
        Correct the size in the config; the tensors were trained.

    Example
        draft_vocab_size 32000 over an lm_head.weight of 128256 rows.
    """

    code = "C104"
    name = "shapes-contradict"
    effect = "engines raise at load, or compute with a part of the matrix"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        if not isinstance(trained.spec, Eagle3Spec):
            return
        asked, checkpoint = shapes_asked(trained.spec), trained.checkpoint
        wrong: dict[tuple[Shape, Shape], list[str]] = {}
        for name, role in trained.roles.items():
            shape = checkpoint.tensors[name].shape
            if role in asked and asked[role] != shape:
                wrong.setdefault((shape, asked[role]), []).append(name)
        for (shape, expected), names in wrong.items():
            pattern = ", ".join(fold(names, among=list(checkpoint.tensors)))
            yield self.finding(
                place=f"{checkpoint.place(names[0]).partition(' :: ')[0]} :: {pattern}",
                message=f"{pattern} {'is' if len(names) == 1 else 'are'} {_sizes(shape)}, and the"
                f" config asks for {_sizes(expected)}",
                expected=_sizes(expected),
                found=_sizes(shape),
                advice=f"correct the size in {checkpoint.config_file}; look at:"
                f" eyas inspect {trained.draft}",
            )


class QuantisationContradicts(TrainedRule):
    """A quantization_config that the tensors do not bear out.

    What it checks
        With a quantization_config: that each matrix of a decoder layer is stored quantised and has
        a scale, or is named in its ignore list; and that matrices which engines fuse (q, k and v;
        gate and up) are treated alike.

    Why it matters
        The engine builds quantised parameters and finds plain numbers, or none under the name that
        it looks for: a KeyError, or parameters that stay at what construction left. A config
        copied from a quantised target, and an ignore list of unfused names, gave 1.00.

    How to fix it
        Remove the quantization_config of a drafter that is stored in bfloat16; name all parts of a
        fused matrix in its ignore list.

    Example
        The target's fp8 quantization_config in the config of a bfloat16 drafter.
    """

    code = "C105"
    name = "quantisation-contradicts"
    effect = "quantised parameters find no tensor that fits; acceptance 1.00 seen"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        table = trained.checkpoint.config.get("quantization_config")
        if not isinstance(table, Mapping):
            return
        matrices = [
            name
            for name, role in trained.roles.items()
            if role.startswith("layers.") and role.endswith("_proj.weight")
        ]
        plain = [name for name in matrices if self._is_plain(trained, name)]
        listed = {name: left_plain(table, name.removesuffix(".weight")) for name in matrices}
        unlisted = [name for name in plain if not listed[name]]
        unscaled = [n for n in matrices if n not in plain and not _has_scale(trained, n)]
        apart = [
            name
            for name in matrices
            for others in (_fused_with(name),)
            if others and len({listed[o] for o in others if o in listed}) > 1
        ]
        key = f"{trained.checkpoint.config_file} :: quantization_config"
        for names, found, advice in (
            (
                unlisted,
                "stored as plain floats, and named in no ignore list",
                "remove quantization_config, if the whole drafter is in plain floats",
            ),
            (unscaled, "stored quantised, without a scale", "export the drafter with its scales"),
            (
                apart,
                "fused by engines, and only in part named in the ignore list",
                "name all parts of a fused matrix in the ignore list, or none",
            ),
        ):
            if names:
                pattern = ", ".join(fold(names, among=list(trained.checkpoint.tensors)))
                yield self.finding(
                    place=key,
                    message=f"quantization_config ({_method(table)}) does not fit the tensors:"
                    f" {pattern} {'is' if len(names) == 1 else 'are'} {found}",
                    expected="quantised matrices with their scales, or names in the ignore list",
                    found=f"{pattern}, {found}",
                    advice=advice,
                )

    def _is_plain(self, trained: Trained, name: str) -> bool:
        return trained.checkpoint.tensors[name].dtype in FLOATS


class WeightsPickled(TrainedRule):
    """Weights in a pickle, which is a program.

    What it checks
        Whether the weights are safetensors, or what torch.save writes (pytorch_model.bin).

    Why it matters
        A pickle can run any command on the machine of whoever loads it. Engines load it with
        weights_only, as eyas reads it, and then it changes no token; older versions and other tools
        run it. A scanner refuses it, and each load reads the whole file.

    How to fix it
        Convert the drafter: what is written is safetensors, with the same bytes in each tensor.

    Example
        A drafter that was saved with torch.save(model.state_dict(), "pytorch_model.bin").
    """

    code = "C106"
    name = "weights-pickled"
    severity = Severity.INFO
    effect = "no token differs; a tool that loads it without weights_only runs what it holds"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        checkpoint = trained.checkpoint
        if checkpoint.format is not Format.PICKLE:
            return
        yield self.finding(
            place=f"{checkpoint.files[0]} :: data.pkl",
            message="the weights are a pickle, read as weights only: nothing of it was run; eyas"
            " convert writes them as safetensors",
            expected="safetensors",
            found=f"a pickle ({', '.join(checkpoint.files[:3])})",
            advice=f"eyas convert {trained.draft} OUT --to ENGINE",
        )


def _has_scale(trained: Trained, name: str) -> bool:
    return any(f"{name}{end}" in trained.checkpoint.tensors for end in SCALES)


def _fused_with(name: str) -> list[str]:
    """The names of all parts of the fused matrix that `name` is a part of."""
    for parts in FUSED:
        for part in parts:
            if f".{part}." in name:
                return [name.replace(f".{part}.", f".{other}.") for other in parts]
    return []


def _method(table: Mapping[str, Any]) -> str:
    method = table.get("quant_method")
    return method[:40] if isinstance(method, str) else "no quant_method"


def _sizes(shape: Shape) -> str:
    return " x ".join(map(str, shape)) or "a scalar"


RULES = (ShapesContradict(), QuantisationContradicts(), WeightsPickled())

"""L2: tensors that land, but cut, padded, or where they are not used as trained."""

from __future__ import annotations

from collections.abc import Iterator

from eyas.checks.finding import Finding, Skip
from eyas.checks.rules.fact import cited
from eyas.checks.rules.loss import BEFORE_FC, bypasses_fc, parts_of
from eyas.checks.rules.rule import ViewRule
from eyas.checks.view import View
from eyas.spec import FromTensor


class TensorCut(ViewRule):
    """A tensor of which only a part lands.

    What it checks
        Whether an engine cuts a tensor to the size that the config asks for.

    Why it matters
        SGLang and vLLM cut oversized q, k, v, o, gate, up and down matrices without a word.

    How to fix it
        Correct the sizes in the config (heads, head_dim, intermediate_size).

    Example
        num_attention_heads 2 in the config of a drafter with 4 heads.
    """

    code = "L204"
    name = "tensor-cut"
    effect = "a part of the matrix is missing from every draft step"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        landing = view.served.landing
        for tensor in () if landing is None else landing.tensors:
            if tensor.cut:
                yield self.finding(
                    view,
                    place=view.trained.checkpoint.place(tensor.name),
                    message=f"{view.engine} leaves out {tensor.cut} of the {tensor.elements}"
                    f" elements of {tensor.name}",
                    expected=f"all of {list(tensor.shape)} in {', '.join(tensor.parameters)}",
                    found=f"{tensor.elements - tensor.cut} elements",
                    advice=f"eyas landing {view.draft} --engine {view.reference}",
                    source=cited(view, "are cut", " cut "),
                )


class TensorMisplaced(ViewRule):
    """A tensor that lands, but where it is not used as trained.

    What it checks
        Whether the rows that a tensor fills are the matrix that it is in the drafter's arithmetic.

    Why it matters
        The load looks complete, and the engine computes with another matrix, or never calls it.

    How to fix it
        Look at the table of the landing, and convert.

    Example
        input_layernorm of a second layer on SGLang, which calls hidden_norm alone there.
    """

    code = "L205"
    name = "tensor-misplaced"
    effect = "the tensor is loaded, and not computed with as trained"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        landing = view.served.landing
        if landing is None:
            return
        bypassed = bypasses_fc(view)
        for parameter in landing.parameters:
            for segment in parameter.segments:
                source = segment.source
                if parameter.replaced is not None or not isinstance(source, FromTensor):
                    continue
                role = view.trained.roles.get(source.tensor)
                if role is None or segment.role in parts_of(role):
                    continue
                if bypassed and role.startswith(BEFORE_FC):
                    continue  # F301 tells it
                used = "is never called" if segment.role is None else f"is {segment.role}"
                yield self.finding(
                    view,
                    place=view.trained.checkpoint.place(source.tensor),
                    message=f"{view.engine} loads {source.tensor} into {parameter.name},"
                    f" which {used}",
                    expected=f"{source.tensor} as {role}",
                    found=f"rows {segment.start} to {segment.stop} of {parameter.name}",
                    advice=f"eyas landing {view.draft} --engine {view.reference}",
                    source=cited(view, "never does", "never call"),
                )


class TensorPadded(ViewRule):
    """A tensor that is too small, completed with zeros.

    What it checks
        Whether an engine fills up a matrix that is smaller than the config asks for.

    Why it matters
        The missing heads or units are zeros: they compute, and say nothing. SGLang does so for o,
        down, gate and up without a word.

    How to fix it
        Correct the sizes in the config (heads, head_dim, intermediate_size).

    Example
        o_proj.weight of 2 heads under a config with 4.
    """

    code = "L207"
    name = "tensor-padded"
    effect = "a part of the matrix is zeros in every draft step"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        landing = view.served.landing
        for parameter in () if landing is None else landing.parameters:
            for segment in parameter.segments:
                if not segment.zeros or not isinstance(segment.source, FromTensor):
                    continue
                tensor = segment.source.tensor
                yield self.finding(
                    view,
                    place=view.trained.checkpoint.place(tensor),
                    message=f"{view.engine} completes {tensor} with {segment.zeros} zeros",
                    expected=f"a tensor as large as {parameter.name}, {list(parameter.shape)}",
                    found=f"{segment.zeros} elements too few",
                    advice=f"eyas landing {view.draft} --engine {view.reference}",
                    source=cited(view, "with zeros"),
                )


RULES = (TensorCut(), TensorMisplaced(), TensorPadded())

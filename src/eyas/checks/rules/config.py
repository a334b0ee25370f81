"""C1: what the engine makes of the config before any weight is read."""

from __future__ import annotations

import re
from collections.abc import Iterator

from eyas.checks.finding import Finding, Skip
from eyas.checks.rules.fact import FactRule, source_of
from eyas.checks.rules.rule import ViewRule
from eyas.checks.view import View
from eyas.spec import Eagle3Spec, Mha, Mla, Stage

PLACE = re.compile(r"\S+\.json :: \S+")


class EngineRefuses(ViewRule):
    """The engine will not start, or raises at the first request.

    What it checks
        Whether this version of the engine gets through the config, the construction of the model,
        the loading of the weights and the first request.

    Why it matters
        Nothing is served. It is the loud kind of failure; the message names the stage.

    How to fix it
        Convert the drafter to what the engine reads.

    Example
        A speculators config keeps its model_type inside transformer_layer_config; SGLang asks
        transformers for the outer one and raises.
    """

    code = "C101"
    name = "engine-refuses"
    effect = "nothing is served"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        refusal = view.served.refusal
        if refusal is None:
            return
        named = PLACE.search(refusal.message)
        yield self.finding(
            view,
            place=named.group() if named else _file(view, refusal.stage),
            message=f"{view.engine} raises at {refusal.stage}: {refusal.message}",
            expected=None,
            found=refusal.claim.text,
            advice=refusal.hint or _advice(view, refusal.stage),
            source=source_of(view, refusal.claim),
        )


class SizesDiffer(FactRule):
    """Another size than the files have.

    What it checks
        Widths, numbers of layers and heads, and vocabulary sizes, as the two sides read them.

    Why it matters
        Engines cut or pad a matrix that is too large or too small, often without a word, and build
        layers that no tensor fills.

    How to fix it
        Correct the size in the config.

    Example
        num_hidden_layers copied from the target: 12 layers are built, 11 have no tensors.
    """

    code = "C102"
    name = "sizes-differ"
    facts = (
        "hidden_size",
        "target_hidden_size",
        "intermediate_size",
        "num_layers",
        "vocab_size",
        "draft_vocab_size",
        "attention.num_heads",
        "attention.num_kv_heads",
        "attention.head_dim",
        "attention.q_lora_rank",
        "attention.kv_lora_rank",
        "attention.qk_nope_head_dim",
        "attention.qk_rope_head_dim",
        "attention.v_head_dim",
    )
    words = ("num_hidden_layers",)
    saying = "{engine} builds the drafter with {what} {served}; its tensors have {trained}"
    effect = "matrices are cut, padded or left unfilled"


class AttentionKindDiffers(ViewRule):
    """Another kind of attention than trained.

    What it checks
        Whether both sides have multi-head attention, or both multi-head latent attention.

    Why it matters
        The tensors of one kind have no place in the other.

    How to fix it
        Name the class of the trained kind in `architectures`.

    Example
        An MLA drafter whose config names the Llama class.
    """

    code = "C103"
    name = "attention-kind-differs"
    effect = "the attention tensors have no place to land"

    def _look(self, view: View) -> Iterator[Finding | Skip]:
        trained, served = view.trained.spec, view.served.spec
        if not isinstance(trained, Eagle3Spec) or not isinstance(served, Eagle3Spec):
            return
        before, after = _kind(trained.attention), _kind(served.attention)
        if before == after:
            return
        yield self.finding(
            view,
            place="config.json :: architectures",
            message=f"{view.engine} builds {after}; the drafter was trained with {before}",
            expected=before,
            found=after,
            advice=f"eyas inspect {view.draft}",
            source=None,
        )


def _advice(view: View, stage: Stage) -> str:
    """What to type about a refusal at `stage`.

    What does not load contradicts itself; what stops before or after that is of another engine.
    """
    loads = stage not in (Stage.LOAD, Stage.FIRST_REQUEST)
    otherwise = view.elsewhere if loads else f"eyas inspect {view.draft}"
    return view.remedy(otherwise, likely=stage in (Stage.CONFIG, Stage.CONSTRUCT))


def _file(view: View, stage: Stage) -> str:
    """The file that a refusal without a key is about."""
    checkpoint = view.trained.checkpoint
    if stage is Stage.LOAD and checkpoint.files:
        return checkpoint.files[0]
    return checkpoint.config_file


def _kind(attention: Mha | Mla) -> str:
    return "multi-head attention" if isinstance(attention, Mha) else "multi-head latent attention"


RULES = (EngineRefuses(), SizesDiffer(), AttentionKindDiffers())

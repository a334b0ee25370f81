"""M8: what drafters that guess several tokens at once say of their method."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from eyas.checks.finding import Finding, Severity, Skip
from eyas.checks.rules.rule import TrainedRule
from eyas.checks.view import Trained
from eyas.spec import Fact, declared

# Where engines look for the id of the token in masked places, in their order (vLLM 0.32.0,
# vllm/v1/spec_decode/llm_base_proposer.py:357-381).
MASK_KEYS = (
    "dflash_config.mask_token_id",
    "mask_token_id",
    "dspark_noise_token_id",
    "pard_token",
    "ptd_token_id",
)
PARALLEL_MARKS = ("peagle", "dflash", "dspark")
READS_MASK = "vllm 0.32.0, vllm/v1/spec_decode/llm_base_proposer.py:357-381"
READS_HIDDEN = "vllm 0.32.0, vllm/model_executor/models/llama_eagle3.py:450-455"


class MaskTokenOutside(TrainedRule):
    """A mask token that the embedding has no row for.

    What it checks
        The id of the mask token (mask_token_id, pard_token, ptd_token_id) against the rows of the
        embedding: the drafter's own, or the target's.

    Why it matters
        The masked places are embedded by a row that does not exist: an index error, or a row that
        belongs to another shard and was never trained.

    How to fix it
        Train with a reserved row of the target's vocabulary, and write its id.

    Example
        mask_token_id 151669 over an embedding of 151669 rows.
    """

    code = "M801"
    name = "mask-token-outside"
    effect = "masked places are embedded by no row of the table"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        rows = _embedding_rows(trained)
        for key in MASK_KEYS:
            token = _whole(trained, key)
            if rows is None or token is None or token.value < rows.value:
                continue
            yield self.finding(
                place=token.key,
                message=f"the mask token is {token.value}, and the embedding has {rows.value} rows",
                expected=f"an id below {rows.value} ({rows.key})",
                found=f"{token.value} ({token.key})",
                advice="write the id of the row that was trained as the mask",
            )


class MaskTokenMissing(TrainedRule):
    """A drafter that guesses in parallel, without what stands in the masked places.

    What it checks
        For a drafter whose class or type is one of parallel drafting: that the config names its
        mask token; for P-EAGLE also that the checkpoint holds mask_hidden, the state that stands
        there.

    Why it matters
        vLLM raises without either; SGLang, which knows DFlash alone, then looks for a token whose
        text is <|MASK|>. SpecForge trains P-EAGLE with a token of the tokenizer and does
        not write its id.

    How to fix it
        Write mask_token_id (vLLM reads pard_token too) with the id of training; take mask_hidden
        from the training run.

    Example
        A PEagleDraftModel of SpecForge 0.2.0.
    """

    code = "M802"
    name = "mask-token-missing"
    effect = "vLLM raises: it does not know what stands in the masked places"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        mark = _parallel(trained)
        if mark is None:
            return
        checkpoint = trained.checkpoint
        if all(_whole(trained, key) is None for key in MASK_KEYS):
            yield self.finding(
                # SGLang finds DFlash's mask by a token's text, where no id is given.
                severity=None if "peagle" in mark.lower() else Severity.WARNING,
                place=f"{checkpoint.config_file} :: mask_token_id",
                message=f"{mark} drafts in parallel, and the config names no mask token",
                expected=f"one of {', '.join(MASK_KEYS)}",
                found="none of them",
                advice="write mask_token_id with the id that stood in masked places in training",
                source=READS_MASK,
            )
        if "peagle" in mark.lower() and not any("mask_hidden" in n for n in checkpoint.tensors):
            yield self.finding(
                place=checkpoint.place("mask_hidden"),
                message=f"{mark} has no mask_hidden, the state that stands in masked places",
                expected="a tensor mask_hidden, as wide as fc's input",
                found="no such tensor",
                advice="take mask_hidden from the training run",
                source=READS_HIDDEN,
            )


class BlockSizesDiffer(TrainedRule):
    """Two block sizes that contradict each other.

    What it checks
        block_size at the top level of the config against the one in dflash_config.

    Why it matters
        Readers differ in the one they take: SGLang prefers the nested one, others read the top
        level alone. A drafter trained on blocks of 8 was run with 16.

    How to fix it
        Write the block size of training in both places.

    Example
        block_size 16 beside dflash_config.block_size 8.
    """

    code = "M803"
    name = "block-sizes-differ"
    effect = "some engines draft blocks of a length that was not trained"

    def _look(self, trained: Trained) -> Iterator[Finding | Skip]:
        top = _whole(trained, "block_size")
        nested = _whole(trained, "dflash_config.block_size")
        if top is None or nested is None or top.value == nested.value:
            return
        yield self.finding(
            place=nested.key,
            message=f"block_size is {top.value} at the top level and {nested.value} in"
            " dflash_config",
            expected="one block size",
            found=f"{top.value} ({top.key}) and {nested.value} ({nested.key})",
            advice="write the block size of training in both places",
            source="sglang 0.5.23, sglang/srt/speculative/dflash_utils.py:608-617",
        )


def _whole(trained: Trained, key: str) -> Fact[int] | None:
    """The whole number at the dotted `key` of the config."""
    value: object = trained.checkpoint.config
    for part in key.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return declared(value, f"{trained.checkpoint.config_file} :: {key}")


def _embedding_rows(trained: Trained) -> Fact[int] | None:
    """The rows of the embedding that the drafter reads its tokens with."""
    for name, header in trained.checkpoint.tensors.items():
        if name.endswith("embed_tokens.weight") and header.shape:
            return declared(header.shape[0], trained.checkpoint.place(name))
    target = trained.target
    if target is not None and target.vocab_size is not None:
        return declared(target.vocab_size, f"{target.location} :: vocab_size")
    return _whole(trained, "transformer_layer_config.vocab_size") or _whole(trained, "vocab_size")


def _parallel(trained: Trained) -> str | None:
    """What the config calls the drafter, where that is a kind that guesses in parallel."""
    config = trained.checkpoint.config
    architectures = config.get("architectures")
    names = [
        config.get("speculators_model_type"),
        *(architectures if isinstance(architectures, list) else ()),
    ]
    for name in names:
        if isinstance(name, str) and any(mark in name.lower() for mark in PARALLEL_MARKS):
            return name
    return None


RULES = (MaskTokenOutside(), MaskTokenMissing(), BlockSizesDiffer())

"""DFlashSpec: the facts of a drafter that fills a block of masked tokens in one pass."""

from __future__ import annotations

from dataclasses import dataclass

from eyas.spec.attention import Mha, Mla
from eyas.spec.fact import Fact
from eyas.spec.rope import Rope
from eyas.spec.vocabulary import Ownership, VocabMap, VocabOrder


@dataclass(frozen=True, slots=True, kw_only=True)
class Markov:
    """DSpark's bias on the logits by the token before: a product of two matrices of `rank`."""

    rank: Fact[int]
    kind: Fact[str]  # vanilla, gated or rnn


@dataclass(frozen=True, slots=True, kw_only=True)
class Confidence:
    """DSpark's guess at how likely each token of the block is accepted."""

    with_markov: Fact[bool]  # whether it also sees the row that Markov has for the token before


@dataclass(frozen=True, slots=True, kw_only=True)
class DFlashSpec:
    """A DFlash drafter (arXiv 2602.06036), or a DSpark one (arXiv 2607.05147): with heads.

    A block is the last accepted token, the anchor, and mask tokens after it. hidden_norm(fc(·)) of
    the captured states gives every layer's attention further keys and values. `markov` and
    `confidence` are None where there is no such head.
    """

    hidden_size: Fact[int]
    target_hidden_size: Fact[int]
    intermediate_size: Fact[int]
    num_layers: Fact[int]
    attention: Mha | Mla
    boundaries: Fact[tuple[int, ...] | None]
    count: Fact[int | None]  # number of captured states: fc is [hidden, count * target hidden]
    sliding_layers: Fact[frozenset[int]]  # layers whose attention sees `sliding_window` tokens
    sliding_window: Fact[int | None]
    causal_layers: Fact[frozenset[int]]  # layers in which a token of the block sees no later one
    block_size: Fact[int | None]
    mask_token_id: Fact[int | None]
    sample_from_anchor: Fact[
        bool
    ]  # the anchor's own row drafts too: block_size tokens, not one less
    markov: Markov | None
    confidence: Confidence | None
    activation: Fact[str]
    rms_norm_eps: Fact[float]
    rope: Fact[Rope]
    max_position_embeddings: Fact[int | None]
    vocab_size: Fact[int]  # the target's
    draft_vocab_size: Fact[int]
    vocab_map: Fact[VocabMap]
    vocab_order: Fact[VocabOrder | None]
    embedding: Fact[Ownership]
    head: Fact[Ownership]
    target_name: Fact[str | None]

    @property
    def name(self) -> str:
        """What this kind of drafter is called."""
        return "DFlash" if self.markov is None and self.confidence is None else "DSpark"

    @property
    def unjudged(self) -> str:
        """Why engines are not checked with it."""
        return (
            f"eyas reads {self.name} drafters, and has no contract of how engines draft with them"
        )

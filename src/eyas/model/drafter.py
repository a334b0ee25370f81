"""An EAGLE-3 drafter (arXiv 2503.01840) as one plain module whose names are the tensors'.

Shape letters: see `eyas.model.target`; here V is the draft vocabulary and H the drafter's width.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eyas.errors import TargetError
from eyas.model.draft_cache import DraftCache
from eyas.model.draft_layer import DraftLayer, layers_of
from eyas.model.draft_shape import DraftShape
from eyas.model.rms_norm import RmsNorm
from eyas.model.rope import RopeTable
from eyas.spec import Eagle3Spec, Feedback, LastState, Ownership, VocabMap


class Drafter(nn.Module):
    """Decoder layers that draft from the target's captured states, then from its own.

    `embedding` and `head` are the target's matrices; they are used where the spec says that the
    drafter has none of its own, and are no part of the state dict.
    """

    d2t: Tensor

    def __init__(self, spec: Eagle3Spec, *, embedding: Tensor, head: Tensor) -> None:
        super().__init__()
        self.spec = spec
        self.shape = shape = DraftShape.of(spec)
        self._check_widths(embedding, head)
        if shape.captured:
            self.fc = nn.Linear(shape.captured_width, shape.hidden, bias=shape.fc_bias)
        if shape.input_norm:
            self.input_norm = RmsNorm(shape.captured_width, shape.rms_eps)
        if shape.fc_norm:
            self.fc_norm = nn.ModuleList(
                RmsNorm(shape.target_hidden, shape.rms_eps) for _ in range(shape.captured)
            )
        self.layers = nn.ModuleList(layers_of(shape))
        self.norm = RmsNorm(shape.hidden, shape.rms_eps)
        if shape.embedding is Ownership.OWN:
            self.embed_tokens = nn.Embedding(shape.vocab, shape.hidden)
        if shape.head is Ownership.OWN:
            self.lm_head = nn.Linear(shape.hidden, shape.draft_vocab, bias=False)
        if shape.vocab_map in (VocabMap.OFFSETS, VocabMap.ABSOLUTE):
            self.register_buffer("d2t", torch.zeros(shape.draft_vocab, dtype=torch.int64))
        self._shared = (embedding, head)
        self._rope = RopeTable(
            shape.rope,
            head_dim=self.decoder[0].self_attn.rotated,
            device=embedding.device,
            max_positions=shape.max_positions,
        )

    @property
    def decoder(self) -> list[DraftLayer]:
        """The decoder layers, first to last, by their own type."""
        return [layer for layer in self.layers if isinstance(layer, DraftLayer)]

    @property
    def embedding_VH(self) -> Tensor:
        """The embedding of target ids: the drafter's own, or the target's."""
        owned = self.shape.embedding is Ownership.OWN
        return self.embed_tokens.weight if owned else self._shared[0]

    @property
    def head_VH(self) -> Tensor:
        """The head's rows over the draft vocabulary."""
        if self.shape.head is Ownership.OWN:
            return self.lm_head.weight
        # engines that lend a whole matrix to a reduced vocabulary read its first rows
        tied = self.shape.head is Ownership.TIED
        lent = self.embedding_VH if tied else self._shared[1]
        return lent[: self.shape.draft_vocab]

    def fuse(self, captured_BTC: Tensor) -> Tensor:
        """The first hidden state, [B, T, H], of the target's captured states.

        Without captured boundaries (one last state, fc never run) the state is used as it is.
        """
        if not self.shape.captured:
            return captured_BTC
        # where a drafter has both norms, speculators, SGLang and vLLM take them in this order
        if self.shape.input_norm:
            captured_BTC = self.input_norm(captured_BTC)
        if self.shape.fc_norm:
            parts = captured_BTC.chunk(self.shape.captured, dim=-1)
            normed = [norm(part) for norm, part in zip(self.fc_norm, parts, strict=True)]
            captured_BTC = torch.cat(normed, dim=-1)
        fused: Tensor = self.fc(captured_BTC)
        return fused

    def embed(self, ids_BT: Tensor) -> Tensor:
        """Embeddings of target ids."""
        return F.embedding(ids_BT, self.embedding_VH)

    def rope_at(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """(cos, sin) at integer positions, in the drafter's dtype."""
        return self._rope.at(positions, self.norm.weight.dtype)

    def new_cache(self, batch: int, capacity: int) -> DraftCache:
        """An empty cache for drafting."""
        weight = self.norm.weight
        attentions = [layer.self_attn for layer in self.decoder]
        return DraftCache(attentions, batch, capacity, weight.dtype, weight.device)

    def step(self, ids_BT: Tensor, hidden_BTH: Tensor, cache: DraftCache) -> Tensor:
        """Append (token, hidden) pairs to the cache; the decoder's output, [B, T, H], pre-norm.

        A pair is the token at position i+1 with the state of position i: the fused captured
        states where the target has read position i, else the `feedback` of the last output.
        """
        new = ids_BT.shape[1]
        cache.require(new)
        positions = torch.arange(cache.length, cache.length + new, device=ids_BT.device)
        embedded, hidden = self.embed(ids_BT), hidden_BTH
        cos, sin = self.rope_at(positions[None])
        for index, layer in enumerate(self.decoder):
            x, residual = layer.entry(embedded, hidden)
            q, k, v = layer.self_attn.project(x, cos, sin)
            hidden = layer.leave(residual, cache.attend(index, q, k, v))
        cache.advance(new)
        return hidden

    def logits(self, output_BTH: Tensor) -> Tensor:
        """Logits over the draft vocabulary of a decoder output."""
        return F.linear(self.norm(output_BTH), self.head_VH)

    def feedback(self, output_BTH: Tensor) -> Tensor:
        """The state that a decoder output hands to the next draft step."""
        return self.norm(output_BTH) if self.shape.feedback is Feedback.POST_NORM else output_BTH

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Target ids of draft ids."""
        if self.shape.vocab_map is VocabMap.OFFSETS:
            return draft_ids + self.d2t[draft_ids]
        if self.shape.vocab_map is VocabMap.ABSOLUTE:
            return self.d2t[draft_ids]
        return draft_ids

    def _check_widths(self, embedding: Tensor, head: Tensor) -> None:
        shape = self.shape
        borrowed = {"embedding": (shape.embedding, embedding), "head": (shape.head, head)}
        for what, (ownership, matrix) in borrowed.items():
            if ownership is Ownership.TARGET and matrix.shape[1] != shape.hidden:
                raise TargetError(
                    f"the drafter is {shape.hidden} wide and has no {what} of its own, "
                    f"but the target's {what} is {matrix.shape[1]} wide"
                )
        if embedding.shape[1] != shape.target_hidden:
            raise TargetError(
                f"the drafter expects target states {shape.target_hidden} wide, "
                f"but the target is {embedding.shape[1]} wide"
            )
        alone = isinstance(self.spec.conditioning, LastState)
        if alone and shape.target_hidden != shape.hidden:
            raise TargetError(
                f"the drafter is {shape.hidden} wide and takes the target's last state as it is, "
                f"but the target is {shape.target_hidden} wide"
            )
        if embedding.shape[0] < shape.vocab:
            raise TargetError(
                f"the drafter expects a vocabulary of {shape.vocab}, "
                f"but the target has {embedding.shape[0]}"
            )

"""A compact Llama with a preallocated cache: the fast path for Llama, Qwen2 and Qwen3 targets.

Grouped-query attention folds the query heads of a group into the query rows
([B, kv, G*T, D]), so that keys and values are never repeated. Weights are read strictly by name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from eyas.errors import TargetError
from eyas.model.rope import RopeTable, rotate
from eyas.model.target import LoadedFacts, Reading, Target, TargetCache, TargetSizes
from eyas.spec import Rope

# Older checkpoints saved this table, which follows from the config.
DERIVED = "rotary_emb.inv_freq"


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaForm:
    """Where the members of the family differ: RoPE, a bias on q, k and v, and their norms."""

    rope: Rope
    qkv_bias: bool
    qk_norm: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LlamaLayer:
    """One decoder layer, with its projections fused."""

    input_norm_H: Tensor
    qkv: Tensor
    qkv_bias: Tensor | None
    q_norm_D: Tensor | None
    k_norm_D: Tensor | None
    out: Tensor
    mlp_norm_H: Tensor
    gate_up: Tensor
    down: Tensor


class StaticCache(TargetCache):
    """Preallocated keys and values, [layer][B, kv, S, D]; rolling back only moves the length.

    `starts_B` is the first real slot of every row when rows are padded on the left.
    """

    def __init__(
        self,
        shape: TargetSizes,
        layers: int,
        batch: int,
        capacity: int,
        dtype: torch.dtype,
        device: torch.device,
        starts_B: Tensor | None = None,
    ) -> None:
        size = (batch, shape.kv_heads, capacity, shape.head_dim)
        # zeros, not empty: a masked slot that held NaN would still poison the weighted sum
        self.keys = [torch.zeros(size, dtype=dtype, device=device) for _ in range(layers)]
        self.values = [torch.zeros(size, dtype=dtype, device=device) for _ in range(layers)]
        self.starts_B = starts_B
        self.capacity = capacity
        self.slots = 0

    @property
    def length(self) -> int:
        """How many slots hold a token (padding included)."""
        return self.slots

    def rollback(self, length: int) -> None:
        """Forget everything after the first `length` slots."""
        if not 0 <= length <= self.slots:
            raise TargetError(f"cannot roll a cache of {self.slots} tokens back to {length}")
        self.slots = length

    def keep_rows(self, rows: Tensor) -> None:
        """Drop every row of the batch that `rows` does not name.

        What is kept moves to the front of the tensors as they are, filled slots alone.
        """
        for store in (self.keys, self.values):
            for layer, held in enumerate(store):
                kept = held[:, :, : self.slots].index_select(0, rows)
                store[layer] = held[: len(rows)]
                store[layer][:, :, : self.slots] = kept
        if self.starts_B is not None:
            self.starts_B = self.starts_B.index_select(0, rows)


class LlamaTarget(Target):
    """A Llama-family target read from its weights, in one dtype on one device."""

    sizes: TargetSizes

    def __init__(
        self,
        facts: LoadedFacts,
        sizes: TargetSizes,
        weights: Mapping[str, Tensor],
        device: torch.device,
        *,
        tied: bool,
        form: LlamaForm | None = None,
    ) -> None:
        """`form` is that of a plain Llama unless given."""
        rope = Rope(theta=sizes.rope_theta, kind="default")
        form = form or LlamaForm(rope=rope, qkv_bias=False, qk_norm=False)
        self.facts = facts
        self.sizes = sizes
        self.device = device
        taken: set[str] = set()

        def take(name: str) -> Tensor:
            if name not in weights:
                raise TargetError(f"target `{facts.name}` has no tensor `{name}`")
            taken.add(name)
            return weights[name].to(device=device, dtype=facts.dtype)

        def layer(index: int) -> LlamaLayer:
            prefix = f"model.layers.{index}."
            attention, mlp = prefix + "self_attn.", prefix + "mlp."
            return LlamaLayer(
                input_norm_H=take(prefix + "input_layernorm.weight"),
                qkv=torch.cat([take(f"{attention}{part}_proj.weight") for part in "qkv"]),
                qkv_bias=torch.cat([take(f"{attention}{part}_proj.bias") for part in "qkv"])
                if form.qkv_bias
                else None,
                q_norm_D=take(attention + "q_norm.weight") if form.qk_norm else None,
                k_norm_D=take(attention + "k_norm.weight") if form.qk_norm else None,
                out=take(attention + "o_proj.weight"),
                mlp_norm_H=take(prefix + "post_attention_layernorm.weight"),
                gate_up=torch.cat([take(f"{mlp}{part}_proj.weight") for part in ("gate", "up")]),
                down=take(mlp + "down_proj.weight"),
            )

        self._embedding_VH = take("model.embed_tokens.weight")
        self._head_VH = self._embedding_VH if tied else take("lm_head.weight")
        if tied:
            taken.add("lm_head.weight")
        self._norm_H = take("model.norm.weight")
        self._layers = [layer(index) for index in range(facts.num_layers)]
        surplus = sorted(n for n in set(weights) - taken if not n.endswith(DERIVED))
        if surplus:
            raise TargetError(
                f"target `{facts.name}` has a tensor that its config does not explain: "
                f"`{surplus[0]}` (of {len(surplus)})"
            )
        self._rope = RopeTable(
            form.rope,
            head_dim=sizes.head_dim,
            device=device,
            max_positions=sizes.max_positions,
        )

    @property
    def embedding_VH(self) -> Tensor:
        """The input embedding table."""
        return self._embedding_VH

    @property
    def head_VH(self) -> Tensor:
        """The rows of the output head."""
        return self._head_VH

    @property
    def final_norm_H(self) -> Tensor:
        """The gain of the final norm."""
        return self._norm_H

    def new_cache(self, batch: int, capacity: int, starts_B: Tensor | None = None) -> StaticCache:
        """An empty cache; `starts_B` counts each row's padding slots on the left."""
        return StaticCache(
            self.sizes,
            self.facts.num_layers,
            batch,
            capacity,
            self.facts.dtype,
            self.device,
            starts_B,
        )

    def normed(self, final_BTH: Tensor) -> Tensor:
        """The final norm: what the head multiplies."""
        return self._norm(final_BTH, self._norm_H)

    def _norm(self, x: Tensor, weight_H: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), weight_H, self.sizes.rms_eps)

    @torch.inference_mode()
    def forward(
        self, ids_BT: Tensor, cache: TargetCache, boundaries: Sequence[int] = ()
    ) -> Reading:
        """Append `ids_BT` to the cache and read the new positions.

        Raises TargetError when the cache is another target's or full, and for a boundary that does
        not exist; the cache is then as it was.
        """
        if not isinstance(cache, StaticCache):
            raise TargetError("this cache was not made by this target's `new_cache`")
        new = ids_BT.shape[1]
        begin, end = cache.slots, cache.slots + new
        if end > cache.capacity:
            raise TargetError(f"the cache holds {cache.capacity} tokens; {end} were asked for")
        last = self.facts.num_layers
        unknown = [k for k in boundaries if not 0 <= k <= last]
        if unknown:
            raise TargetError(
                f"target `{self.facts.name}` has boundaries 0 to {last}, not {unknown[0]}"
            )
        slots_T = torch.arange(begin, end, device=self.device)
        if cache.starts_B is None:
            positions_BT = slots_T[None]
        else:
            positions_BT = (slots_T[None] - cache.starts_B[:, None]).clamp_min(0)
        cos, sin = self._rope.at(positions_BT, self.facts.dtype)
        mask = self._mask(slots_T, end, cache.starts_B)
        x = F.embedding(ids_BT, self._embedding_VH)
        captured: dict[int, Tensor] = {}
        for index, layer in enumerate(self._layers):
            if index in boundaries:
                captured[index] = x
            x = x + self._attend(layer, x, cos, sin, mask, cache, index, end)
            gate_up = F.linear(self._norm(x, layer.mlp_norm_H), layer.gate_up)
            gate, up = gate_up.chunk(2, dim=-1)
            x = x + F.linear(F.silu(gate) * up, layer.down)
        captured[last] = x
        cache.slots = end
        states = torch.cat([captured[k] for k in boundaries], dim=-1) if boundaries else None
        return Reading(final_BTH=x, captured_BTC=states)

    def _mask(self, slots_T: Tensor, end: int, starts_B: Tensor | None) -> Tensor | None:
        """Which slots a query may see, [B or 1, 1, G*T, S]; None when it may see all."""
        if len(slots_T) == 1 and starts_B is None:
            return None
        keys_S = torch.arange(end, device=self.device)
        allowed = (keys_S[None, :] <= slots_T[:, None])[None]
        if starts_B is not None:
            # a padding query sees itself: a row of nothing but -inf would give NaN
            itself = keys_S[None, None, :] == slots_T[None, :, None]
            allowed = (allowed & (keys_S[None, None, :] >= starts_B[:, None, None])) | itself
        bias = torch.zeros(allowed.shape, dtype=self.facts.dtype, device=self.device)
        bias.masked_fill_(~allowed, float("-inf"))
        group = self.sizes.heads // self.sizes.kv_heads
        return bias.repeat(1, group, 1)[:, None]

    def _attend(
        self,
        layer: LlamaLayer,
        x: Tensor,
        cos: Tensor,
        sin: Tensor,
        mask: Tensor | None,
        cache: StaticCache,
        index: int,
        end: int,
    ) -> Tensor:
        sizes = self.sizes
        batch, new, _ = x.shape
        qkv = F.linear(self._norm(x, layer.input_norm_H), layer.qkv, layer.qkv_bias)
        qkv = qkv.view(batch, new, sizes.heads + 2 * sizes.kv_heads, sizes.head_dim)
        rotated = sizes.heads + sizes.kv_heads
        both = qkv[:, :, :rotated]
        if layer.q_norm_D is not None and layer.k_norm_D is not None:
            normed_q = self._norm(both[:, :, : sizes.heads], layer.q_norm_D)
            normed_k = self._norm(both[:, :, sizes.heads :], layer.k_norm_D)
            both = torch.cat([normed_q, normed_k], dim=2)
        turned = rotate(both, cos[:, :, None], sin[:, :, None])
        q, k, v = turned[:, :, : sizes.heads], turned[:, :, sizes.heads :], qkv[:, :, rotated:]
        keys, values = cache.keys[index], cache.values[index]
        keys[:, :, end - new : end] = k.transpose(1, 2)
        values[:, :, end - new : end] = v.transpose(1, 2)
        group = sizes.heads // sizes.kv_heads
        q = q.reshape(batch, new, sizes.kv_heads, group, sizes.head_dim).permute(0, 2, 3, 1, 4)
        q = q.reshape(batch, sizes.kv_heads, group * new, sizes.head_dim)
        mixed = F.scaled_dot_product_attention(
            q, keys[:, :, :end], values[:, :, :end], attn_mask=mask
        )
        mixed = mixed.view(batch, sizes.kv_heads, group, new, sizes.head_dim)
        return F.linear(mixed.permute(0, 3, 1, 2, 4).reshape(batch, new, -1), layer.out)

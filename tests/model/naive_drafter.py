"""A drafter as formulas, written out number by number in float64.

It shares no code with the product: no cache, no batch, no mask, no split into halves. It keeps
lists of keys and values, one position after the other, and rotates by multiplying complex numbers.
Sources: EAGLE-3 (arXiv 2503.01840), DeepSeek-V2 (2405.04434, section 2.1, equations 9 to 19),
RoFormer (2104.09864), Llama 3's scaling as its release has it, YaRN (2309.00071).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor

from eyas.model.drafter import Drafter
from eyas.spec import Feedback, LastState, Mha, Mla, Ownership


class Naive:
    """A drafter as formulas; `append` adds one (token, state) pair and gives the output there."""

    def __init__(self, drafter: Drafter, embedding: Tensor, head: Tensor) -> None:
        self.spec, self.w = drafter.spec, {n: t.detach() for n, t in drafter.state_dict().items()}
        own = self.spec.embedding.value is Ownership.OWN
        self.embedding = self.w["embed_tokens.weight"] if own else embedding
        heads = {Ownership.TIED: self.embedding, Ownership.TARGET: head}
        self.head = self.w.get("lm_head.weight", heads.get(self.spec.head.value))
        self.seen: list[list[tuple[list[Tensor], list[Tensor]]]] = [
            [] for _ in range(self.spec.num_layers.value)
        ]

    def norm(self, x: Tensor, name: str) -> Tensor:
        return (
            self.w[f"{name}.weight"]
            * x
            / torch.sqrt((x * x).sum() / len(x) + self.spec.rms_norm_eps.value)
        )

    def fuse(self, captured: Tensor) -> Tensor:
        how = self.spec.conditioning
        if isinstance(how, LastState):
            return captured
        if how.input_norm.value:
            captured = self.norm(captured, "input_norm")
        if how.fc_norm.value:
            parts = captured.reshape(how.count.value, -1)
            captured = torch.cat([self.norm(x, f"fc_norm.{i}") for i, x in enumerate(parts)])
        fused = self.w["fc.weight"] @ captured
        return fused + self.w["fc.bias"] if how.bias.value else fused

    def append(self, token: int, state: Tensor) -> Tensor:
        hidden = state
        for index, seen in enumerate(self.seen):
            at = f"layers.{index}."
            if index == 0:
                normed = self.norm(hidden, at + "hidden_norm")
                x = torch.cat([self.norm(self.embedding[token], at + "input_layernorm"), normed])
                residual = normed if self.spec.norm_before_residual.value else hidden
            else:
                x, residual = self.norm(hidden, at + str(self.spec.later_norm.value)), hidden
            latent = isinstance(self.spec.attention, Mla)
            heads = self.latent_heads if latent else self.grouped_heads
            queries, keys, values = heads(at + "self_attn.", x, len(seen))
            seen.append((keys, values))
            mixed = torch.cat([self.mix(q, i, seen, len(queries)) for i, q in enumerate(queries)])
            hidden = residual + self.w[at + "self_attn.o_proj.weight"] @ mixed
            y = self.norm(hidden, at + "post_attention_layernorm")
            gate = self.activate(self.w[at + "mlp.gate_proj.weight"] @ y)
            up = self.w[at + "mlp.up_proj.weight"] @ y
            hidden = hidden + self.w[at + "mlp.down_proj.weight"] @ (gate * up)
        return hidden

    def activate(self, x: Tensor) -> Tensor:
        if self.spec.activation.value == "gelu":
            return x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))
        return x / (1 + torch.exp(-x))

    def mix(
        self, query: Tensor, index: int, seen: list[tuple[list[Tensor], list[Tensor]]], heads: int
    ) -> Tensor:
        group = heads // len(seen[0][0])
        scale = len(query) ** -0.5
        rope_of = self.spec.rope.value
        if isinstance(self.spec.attention, Mla) and "mscale_all_dim" in rope_of.scaling:
            strength: Any = rope_of.scaling["mscale_all_dim"]
            factor: Any = rope_of.scaling["factor"]
            scale *= (0.1 * strength * math.log(factor) + 1) ** 2
        scores = [float(query @ keys[index // group]) * scale for keys, _ in seen]
        powers = [math.exp(score - max(scores)) for score in scores]
        shares = [power / sum(powers) for power in powers]
        values = [values[index // group] for _, values in seen]
        return torch.stack([s * v for s, v in zip(shares, values, strict=True)]).sum(0)

    def grouped_heads(self, at: str, x: Tensor, position: int) -> Iterator[list[Tensor]]:
        how = self.spec.attention
        assert isinstance(how, Mha)
        for letter in "qkv":
            whole = self.w[f"{at}{letter}_proj.weight"] @ x
            if how.bias.value:
                whole = whole + self.w[f"{at}{letter}_proj.bias"]
            parts = list(whole.split(how.head_dim.value))
            if letter != "v":
                if how.qk_norm.value:
                    parts = [self.norm(part, f"{at}{letter}_norm") for part in parts]
                half = how.head_dim.value // 2
                pairs = [(j, j + half) for j in range(half)]
                parts = [self.turned(part, position, pairs) for part in parts]
            yield parts

    def latent_heads(
        self, at: str, x: Tensor, position: int
    ) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
        how = self.spec.attention
        assert isinstance(how, Mla)
        nope, rotary, rank = (
            how.qk_nope_head_dim.value,
            how.qk_rope_head_dim.value,
            how.kv_lora_rank.value,
        )
        pairs = [(2 * j, 2 * j + 1) for j in range(rotary // 2)]
        w_dkv, w_kr = self.w[at + "kv_a_proj_with_mqa.weight"].split([rank, rotary])
        c_q = self.norm(self.w[at + "q_a_proj.weight"] @ x, at + "q_a_layernorm")
        c_kv = self.norm(w_dkv @ x, at + "kv_a_layernorm")
        k_r = self.turned(w_kr @ x, position, pairs)
        queries, keys, values = [], [], []
        heads = how.num_heads.value
        for w_q in self.w[at + "q_b_proj.weight"].chunk(heads):
            q_c, q_r = w_q[:nope] @ c_q, w_q[nope:] @ c_q
            queries.append(torch.cat([q_c, self.turned(q_r, position, pairs)]))
        for w_kv in self.w[at + "kv_b_proj.weight"].chunk(heads):
            w_uk, w_uv = w_kv[:nope], w_kv[nope:]
            keys.append(torch.cat([w_uk @ c_kv, k_r]))
            values.append(w_uv @ c_kv)
        return queries, keys, values

    def turned(self, x: Tensor, position: int, pairs: list[tuple[int, int]]) -> Tensor:
        out = x.clone()
        for j, (first, second) in enumerate(pairs):
            frequency, amplitude = self.wave(j, len(x))
            angle = position * frequency
            unit = complex(amplitude * math.cos(angle), amplitude * math.sin(angle))
            product = complex(float(x[first]), float(x[second])) * unit
            out[first], out[second] = product.real, product.imag
        return out

    def wave(self, j: int, width: int) -> tuple[float, float]:
        """Frequency and amplitude of pair j of a head of `width`."""
        how = self.spec.rope.value
        scaling: dict[str, Any] = dict(how.scaling)
        plain = how.theta ** (-2 * j / width)
        length = scaling.get("original_max_position_embeddings", 0)
        if how.kind == "linear":
            return plain / scaling["factor"], 1.0
        if how.kind == "llama3":
            wavelength = 2 * math.pi / plain
            if wavelength < length / scaling["high_freq_factor"]:
                return plain, 1.0
            if wavelength > length / scaling["low_freq_factor"]:
                return plain / scaling["factor"], 1.0
            low, high = scaling["low_freq_factor"], scaling["high_freq_factor"]
            smooth = (length / wavelength - low) / (high - low)
            return (1 - smooth) * plain / scaling["factor"] + smooth * plain, 1.0
        if how.kind == "yarn":
            low, high = (
                width * math.log(length / (turns * 2 * math.pi)) / (2 * math.log(how.theta))
                for turns in (scaling["beta_fast"], 1)
            )
            if scaling.get("truncate", True):
                low, high = math.floor(low), math.ceil(high)
            low, high = max(low, 0), min(high, width - 1)
            share = min(max((j - low) / (high - low), 0.0), 1.0)
            frequency = share * plain / scaling["factor"] + (1 - share) * plain
            amplitude = 0.1 * math.log(scaling["factor"]) + 1
            if "mscale" in scaling:
                over, under = scaling["mscale"], scaling["mscale_all_dim"]
                log = 0.1 * math.log(scaling["factor"])
                amplitude = (over * log + 1) / (under * log + 1)
            return frequency, scaling.get("attention_factor", amplitude)
        return plain, 1.0

    def feedback(self, output: Tensor) -> Tensor:
        post = self.spec.feedback.value is Feedback.POST_NORM
        return self.norm(output, "norm") if post else output

    def logits(self, output: Tensor) -> Tensor:
        rows = self.spec.draft_vocab_size.value
        return self.head[:rows] @ self.norm(output, "norm")

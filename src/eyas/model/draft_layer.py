"""The drafter's decoder layers: attention, then a gated MLP, each added to the residual."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from eyas.errors import UnsupportedError
from eyas.model.draft_attention import DraftAttention, attention_of
from eyas.model.draft_shape import DraftShape
from eyas.model.rms_norm import RmsNorm
from eyas.spec import LaterNorm


class GatedMlp(nn.Module):
    """A gated MLP (arXiv 2002.05202); with `silu`, SwiGLU."""

    def __init__(self, shape: DraftShape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.up_proj = nn.Linear(shape.hidden, shape.intermediate, bias=False)
        self.down_proj = nn.Linear(shape.intermediate, shape.hidden, bias=False)
        self._activation = activation_named(shape.activation)

    def forward(self, x: Tensor) -> Tensor:
        """[..., H] to [..., H]."""
        out: Tensor = self.down_proj(self._activation(self.gate_proj(x)) * self.up_proj(x))
        return out


class DraftLayer(nn.Module, ABC):
    """A layer without its attention pattern: callers mix the values between `entry` and `leave`.

    Drafting mixes over a cache, training over the unrolled steps.
    """

    def __init__(self, shape: DraftShape, norms: Sequence[str], width: int) -> None:
        """`norms` are those before attention, whose input is `width` wide."""
        super().__init__()
        for norm in norms:
            self.add_module(norm, RmsNorm(shape.hidden, shape.rms_eps))
        self.self_attn: DraftAttention = attention_of(shape, width)
        self.post_attention_layernorm = RmsNorm(shape.hidden, shape.rms_eps)
        self.mlp = GatedMlp(shape)

    @abstractmethod
    def entry(self, embedded_BTH: Tensor, hidden_BTH: Tensor) -> tuple[Tensor, Tensor]:
        """The attention's input and the residual."""

    def leave(self, residual_BTH: Tensor, mixed: Tensor) -> Tensor:
        """The layer's output from the residual and the mixed values [B, heads, T, E]."""
        attended = residual_BTH + self.self_attn.o_proj(mixed.transpose(1, 2).flatten(2))
        out: Tensor = attended + self.mlp(self.post_attention_layernorm(attended))
        return out


class FirstLayer(DraftLayer):
    """The layer that reads [embedding, hidden], which makes a drafter an EAGLE-3 one."""

    input_layernorm: RmsNorm
    hidden_norm: RmsNorm

    def __init__(self, shape: DraftShape) -> None:
        super().__init__(shape, ("input_layernorm", "hidden_norm"), 2 * shape.hidden)
        self.norm_before_residual = shape.norm_before_residual

    def entry(self, embedded_BTH: Tensor, hidden_BTH: Tensor) -> tuple[Tensor, Tensor]:
        """The attention's input, [B, T, 2H] with the embedding first, and the residual."""
        normed = self.hidden_norm(hidden_BTH)
        x = torch.cat([self.input_layernorm(embedded_BTH), normed], dim=-1)
        return x, normed if self.norm_before_residual else hidden_BTH


class LaterLayer(DraftLayer):
    """Any further layer: a plain one, whose norm goes by the name that the spec gives it.

    The embedding enters nowhere, and the residual is the state before the norm whatever
    `norm_before_residual` says of the first layer.
    """

    def __init__(self, shape: DraftShape, norm: LaterNorm) -> None:
        super().__init__(shape, (norm.value,), shape.hidden)
        self._norm = norm

    def entry(self, embedded_BTH: Tensor, hidden_BTH: Tensor) -> tuple[Tensor, Tensor]:
        """The attention's input, [B, T, H], and the residual."""
        return self.get_submodule(self._norm.value)(hidden_BTH), hidden_BTH


def layers_of(shape: DraftShape) -> list[DraftLayer]:
    """The decoder layers, first to last."""
    layers: list[DraftLayer] = [FirstLayer(shape)]
    if shape.later_norm is not None:
        layers += [LaterLayer(shape, shape.later_norm) for _ in range(1, shape.layers)]
    return layers


def activation_named(name: str) -> Callable[[Tensor], Tensor]:
    """The function that transformers knows by `name`; UnsupportedError where it knows none."""
    if name == "silu":
        return F.silu
    from transformers.activations import ACT2FN

    try:
        activation: Callable[[Tensor], Tensor] = ACT2FN[name]
    except KeyError as error:
        raise UnsupportedError(
            f"a drafter with the activation `{name}` cannot be run yet"
        ) from error
    return activation

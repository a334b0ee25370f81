"""What stands in for vLLM's target and its kernels, so that a drafter's own code can be asked.

Imported by vllm_probe.py; needs torch and vLLM.
"""

from __future__ import annotations

from typing import Any

import torch


def leave_attention_out(drafter: Any) -> None:
    """Attention needs a cache and its metadata; what goes in has the shape of what comes out."""
    from vllm.model_executor.layers.attention_layer_base import AttentionLayerBase

    for module in drafter.modules():
        if isinstance(module, AttentionLayerBase):
            module.forward = _as_wide(module.num_heads * module.head_size)


def _as_wide(wide: int) -> Any:
    def forward(query: torch.Tensor, *_: Any, output_shape: Any = None, **__: Any) -> torch.Tensor:
        return query.new_zeros(output_shape or (len(query), wide))

    return forward


class _Plain:
    """Multiplication as torch does it: the kernels of a CPU want weights repacked, and sizes."""

    def apply(self, layer: Any, x: torch.Tensor, bias: Any = None) -> torch.Tensor:
        """x times the layer's weight."""
        return torch.nn.functional.linear(x, layer.weight, bias)

    def embedding(self, layer: Any, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids`."""
        return torch.nn.functional.embedding(ids, layer.weight)


def multiply_plainly(drafter: Any) -> None:
    """Multiplies by the drafter's weights as they were loaded."""
    for module in drafter.modules():
        if hasattr(module, "quant_method") and hasattr(module, "weight"):
            module.quant_method = _Plain()


class Target:
    """Makes an instance of a target's class that holds an embedding, a head and a depth."""

    @staticmethod
    def of(kind: Any, config: Any) -> Any:
        """An instance of class `kind`, with ``decoder`` and ``shared``, its matrices by name."""
        from vllm.model_executor.models.interfaces import EagleModelMixin

        text = config.model_config.hf_text_config
        layers = config.model_config.get_total_num_hidden_layers()
        vocab, hidden = text.vocab_size, config.model_config.get_hidden_size()

        class Decoder(torch.nn.Module, EagleModelMixin):  # type: ignore[misc]
            num_layers = layers

            def __len__(self) -> int:
                return layers

        decoder = Decoder()
        decoder.layers = range(layers)
        decoder.start_layer = 0
        decoder.config = text
        # One number, expanded: the target's matrices take no memory.
        matrices = {
            name: torch.nn.Parameter(torch.full((1, 1), -1.0).expand(vocab, hidden), False)
            for name in ("embed_tokens.weight", "lm_head.weight")
        }
        decoder.embed_tokens = _Matrix(matrices["embed_tokens.weight"])
        target = kind.__new__(kind)
        torch.nn.Module.__init__(target)
        target.config = config.model_config.hf_config
        inner = target
        if hasattr(kind, "get_language_model") and config.model_config.is_multimodal_model:
            inner = torch.nn.Module()
            inner.config = text
            target.language_model = inner
            target.__dict__["get_language_model"] = lambda: inner
        inner.model = decoder
        inner.lm_head = _Matrix(matrices["lm_head.weight"])
        target.__dict__["decoder"] = decoder
        target.__dict__["shared"] = matrices
        return target


class _Matrix(torch.nn.Module):
    """An embedding, or a head."""

    def __init__(self, weight: torch.nn.Parameter) -> None:
        super().__init__()
        self.weight = weight
        self.quant_method = _Plain()
        self.tp_size = 1

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        """The rows of `ids`."""
        return self.weight[ids]

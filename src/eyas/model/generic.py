"""Any causal language model of transformers, read at its boundaries through hooks."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from eyas.errors import TargetError, UnsupportedError
from eyas.model.generic_cache import GenericCache
from eyas.model.pretrained import read_pretrained
from eyas.model.target import LoadedFacts, Reading, Target, TargetCache, TargetSizes

PROBE_IDS = (1, 2, 3)
PROBE_TOLERANCE = 1e-5


class GenericTarget(Target):
    """A transformers model as a Target. Slower than the compact Llama, and good for all."""

    def __init__(self, facts: LoadedFacts, model: nn.Module) -> None:
        self.facts = facts
        self.sizes: TargetSizes | None = None
        self._model: Any = model
        self._decoder: Any = model.get_decoder()  # type: ignore[operator]
        self._layers: Sequence[nn.Module] = self._decoder.layers
        self._norm: nn.Module = self._decoder.norm
        parameters = inspect.signature(self._decoder.forward).parameters
        # transformers 5.24 renamed the argument, and warns of the older name
        self._cache_argument = "cache" if "cache" in parameters else "past_key_values"
        self.new_cache(1, 1)  # which refuses a state that cannot be rolled back, now and not later
        self._check_head()

    @property
    def embedding_VH(self) -> Tensor:
        """The input embedding table."""
        return self._weight(self._model.get_input_embeddings())

    @property
    def head_VH(self) -> Tensor:
        """The rows of the output head."""
        return self._weight(self._model.get_output_embeddings())

    @property
    def final_norm_H(self) -> Tensor:
        """The gain of the final norm, whichever way the model stores it.

        Raises UnsupportedError for a norm that is no RMSNorm.
        """
        weight = self._weight(self._norm)
        with torch.inference_mode():
            gain = self._norm(torch.ones_like(weight)[None, None])[0, 0].float()
        for stored in (weight, 1 + weight):  # Gemma stores the gain less one
            if torch.allclose(gain, stored.float(), atol=1e-2, rtol=1e-2):
                return stored
        raise UnsupportedError(f"the final norm of `{self.facts.architecture}` is no RMSNorm")

    def new_cache(self, batch: int, capacity: int) -> GenericCache:
        """An empty cache; the batch size is known at the first forward."""
        return GenericCache(self._model.config, capacity)

    def normed(self, final_BTH: Tensor) -> Tensor:
        """The final norm: what the head multiplies."""
        normed: Tensor = self._norm(final_BTH)
        return normed

    @torch.inference_mode()
    def forward(
        self, ids_BT: Tensor, cache: TargetCache, boundaries: Sequence[int] = ()
    ) -> Reading:
        """Append `ids_BT` to the cache and read the new positions.

        Raises TargetError for another target's cache or a full one, or a boundary that does not
        exist.
        """
        if not isinstance(cache, GenericCache):
            raise TargetError("this cache was not made by this target's `new_cache`")
        end = cache.length + ids_BT.shape[1]
        if end > cache.capacity:
            raise TargetError(f"the cache holds {cache.capacity} tokens; {end} were asked for")
        last = self.facts.num_layers
        unknown = [k for k in boundaries if not 0 <= k <= last]
        if unknown:
            raise TargetError(
                f"target `{self.facts.name}` has boundaries 0 to {last}, not {unknown[0]}"
            )
        with self._watched({*boundaries, last}) as seen:
            self._decoder(input_ids=ids_BT, use_cache=True, **{self._cache_argument: cache.held})
        states = torch.cat([seen[k] for k in boundaries], dim=-1) if boundaries else None
        return Reading(final_BTH=seen[last], captured_BTC=states)

    @contextmanager
    def _watched(self, boundaries: set[int]) -> Iterator[dict[int, Tensor]]:
        """Collect the states at `boundaries` of the forward passes inside."""
        seen: dict[int, Tensor] = {}
        hooks = []

        def entering(boundary: int) -> Any:
            def hook(_: nn.Module, args: tuple[Any, ...], named: dict[str, Any]) -> None:
                seen[boundary] = args[0] if args else named["hidden_states"]

            return hook

        def leaving(_: nn.Module, __: tuple[Any, ...], output: Any) -> None:
            seen[len(self._layers)] = output[0] if isinstance(output, tuple) else output

        try:
            for boundary in boundaries:
                if boundary < len(self._layers):
                    layer = self._layers[boundary]
                    hooks.append(
                        layer.register_forward_pre_hook(entering(boundary), with_kwargs=True)
                    )
                else:
                    hooks.append(self._layers[-1].register_forward_hook(leaving))
            yield seen
        finally:
            for hook in hooks:
                hook.remove()

    def _check_head(self) -> None:
        """Refuse a model whose logits are more than head · norm (soft caps, scaling)."""
        ids_1T = torch.tensor([PROBE_IDS], device=self.embedding_VH.device)
        last = self.facts.num_layers
        # logits and state of one pass: two passes differ by their kernels, most of all in bf16
        with torch.inference_mode(), self._watched({last}) as seen:
            expected = self._model(input_ids=ids_1T, use_cache=False).logits.float()
            found = self.logits(seen[last]).float()
        scale = float(expected.abs().max())
        if float((found - expected).abs().max()) > PROBE_TOLERANCE * scale:
            raise UnsupportedError(
                f"the logits of `{self.facts.architecture}` are not its head times its final norm "
                "(a soft cap or a scaling), which cannot be run yet"
            )

    @staticmethod
    def _weight(module: Any) -> Tensor:
        weight = module.weight
        assert isinstance(weight, Tensor)
        return weight.detach()


def load_generic(
    name: str,
    directory: Path,
    *,
    eos_ids: tuple[int, ...],
    dtype: torch.dtype,
    device: torch.device,
) -> GenericTarget:
    """The model of `directory` through transformers; of a wrapper (`text_config`), the text model.

    Raises TargetError when transformers cannot read it, when a weight is missing, or when its
    layers are not where they are in all common decoders, and UnsupportedError when it cannot be
    run as a target.
    """
    from transformers.utils import logging

    logging.disable_progress_bar()
    model, loaded = read_pretrained(
        _class_of(directory), directory, "model", dtype=dtype, output_loading_info=True
    )
    # transformers itself would go on with random numbers in their place
    if loaded["missing_keys"]:
        missing = sorted(loaded["missing_keys"])
        raise TargetError(
            f"`{directory}` has no tensor `{missing[0]}` (of {len(missing)}), which its config"
            " asks for"
        )
    model = model.to(device).eval().requires_grad_(False)
    decoder = model.get_decoder()
    if not isinstance(getattr(decoder, "layers", None), nn.ModuleList) or not hasattr(
        decoder, "norm"
    ):
        raise TargetError(
            f"`{type(model).__name__}` keeps its layers or its final norm in an unknown place"
        )
    config = model.config.get_text_config()
    facts = LoadedFacts(
        name=name,
        directory=directory,
        architecture=type(model).__name__,
        hidden_size=config.hidden_size,
        num_layers=len(decoder.layers),
        vocab_size=config.vocab_size,
        eos_ids=eos_ids,
        dtype=dtype,
    )
    return GenericTarget(facts, model)


def _class_of(directory: Path) -> Any:
    """The class that the config names, which for a wrapper AutoModelForCausalLM does not know."""
    import transformers

    config = read_pretrained(transformers.AutoConfig, directory, "config")
    named = getattr(transformers, (config.architectures or [""])[0], None)
    if isinstance(named, type) and issubclass(named, transformers.PreTrainedModel):
        return named
    return transformers.AutoModelForCausalLM

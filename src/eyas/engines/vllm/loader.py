"""vLLM's loaders of EAGLE drafters: which tensor fills which parameter, and what raises."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from math import prod

from eyas.checkpoint import TensorHeader
from eyas.engines.decoder import STACKED, fused_name
from eyas.engines.loading import Loading, Misfit
from eyas.engines.stop import Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.architecture import DraftClass
from eyas.engines.vllm.drafter import Drafter
from eyas.engines.vllm.parameters import (
    MAP,
    dflash_parameters_of,
    eagle1_parameters_of,
    parameters_of,
)
from eyas.spec import Claim, Fate, Stage

_LATENT_STACKED: Mapping[str, tuple[str, str]] = {
    ".gate_proj": STACKED[".gate_proj"],
    ".up_proj": STACKED[".up_proj"],
    ".q_a_proj": (".fused_qkv_a_proj", "q_a"),
    ".kv_a_proj_with_mqa": (".fused_qkv_a_proj", "kv_a"),
}
_ROTARY = (
    "rotary_pos_emb.inv_freq",
    "rotary_emb.inv_freq",
    "rotary_emb.cos_cached",
    "rotary_emb.sin_cached",
)
# What Muse Glimmer calls parts of a DFlash drafter (qwen3_dflash.py 416-424).
_ENCODER = {"encoder.output_norm_enc.": "hidden_norm.", "encoder.fc.": "fc."}
_FREQUENCIES = "the engine computes the frequencies from the config"


def load(tensors: Iterable[TensorHeader], drafter: Drafter) -> Loading:
    """Load `tensors` as load_weights does; refuses an unknown name or a wrong shape."""
    tensors = list(tensors)
    loading = Loading(parameters_of(drafter))
    has_map = any(_is_map(tensor.name) for tensor in tensors)
    for tensor in tensors:
        if _is_mask(tensor.name, drafter):
            _take_mask(loading, tensor, drafter)
            continue
        left = _left_out(tensor.name, drafter, has_map=has_map)
        if left is None:
            _place(loading, tensor, tensor.name, latent=drafter.latent is not None)
        else:
            loading.leave(tensor, *left)
    if drafter.in_parallel:
        _require_mask(tensors, drafter)
    return loading


def load_eagle1(tensors: Iterable[TensorHeader], drafter: Drafter) -> Loading:
    """Load `tensors` as the EAGLE-1 class does; refuses an unknown name or a wrong shape."""
    loading = Loading(eagle1_parameters_of(drafter))
    for tensor in tensors:
        if any(name in tensor.name for name in _ROTARY):
            loading.leave(tensor, Fate.IGNORED, _FREQUENCIES)
            continue
        full = tensor.name if "lm_head" in tensor.name else f"model.{tensor.name}"
        _into(loading, tensor, *fused_name(full), claims.EAGLE1)
    return loading


def load_dflash(tensors: Iterable[TensorHeader], drafter: Drafter) -> Loading:
    """Load `tensors` as the DFlash class does; refuses an unknown name or a wrong shape."""
    tensors = list(tensors)
    loading = Loading(dflash_parameters_of(drafter))
    has_map = any(_is_map(tensor.name) for tensor in tensors)
    for tensor in tensors:
        name = tensor.name
        if "mask_hidden" in name:
            raise Refused(Stage.LOAD, f"tensor {name} is no part of DFlash", claims.DFLASH)
        if "mask_embedding" in name and "t2d" not in name:
            reason = "the mask's embedding is read from mask_embedding.pt alone, no log"
            loading.leave(tensor, Fate.LOST, reason)
            continue
        left = _left_out(name, drafter, has_map=has_map)
        if left is not None:
            loading.leave(tensor, *left)
            continue
        for theirs, ours in _ENCODER.items():
            name = name.replace(theirs, ours, 1)
        _place(loading, tensor, name, latent=False)
    return loading


def _is_map(name: str) -> bool:
    return "t2d" not in name and "d2t" in name


def _is_mask(name: str, drafter: Drafter) -> bool:
    named = "mask_hidden" in name and "t2d" not in name and not _is_map(name)
    return named and drafter.built is not DraftClass.DEEPSEEK


def _take_mask(loading: Loading, tensor: TensorHeader, drafter: Drafter) -> None:
    """mask_hidden is copied into a buffer where drafting is parallel, and left out elsewhere."""
    if not drafter.in_parallel:
        loading.leave(tensor, Fate.IGNORED, "for parallel drafting, which is off")
        loading.log(
            "mask_hidden found in weights but model is not configured for parallel drafting"
        )
        return
    width = drafter.sizes.hidden_size.value
    if drafter.has_fc.value:
        width = drafter.count.value * drafter.sizes.target_hidden_size.value
    if prod(tensor.shape) not in (width, 1):  # a single number is spread over the buffer
        raise Refused(
            Stage.LOAD,
            f"tensor {tensor.name} has {prod(tensor.shape)} elements, and the state of a masked"
            f" slot has {width}",
            claims.PARALLEL,
        )
    loading.leave(tensor, Fate.CONSUMED, "the state of the masked slots")


def _require_mask(tensors: Iterable[TensorHeader], drafter: Drafter) -> None:
    if drafter.built is DraftClass.DEEPSEEK:
        raise Refused(
            Stage.LOAD,
            "parallel drafting is on, and the DeepSeek class has no mask_hidden",
            claims.PARALLEL,
        )
    if not any(_is_mask(tensor.name, drafter) for tensor in tensors):
        raise Refused(
            Stage.LOAD,
            "parallel drafting is on, and the checkpoint has no mask_hidden",
            claims.PARALLEL,
        )


def _left_out(name: str, drafter: Drafter, *, has_map: bool) -> tuple[Fate, str] | None:
    """The fate of a tensor that goes into no parameter by its name alone, and why."""
    if "t2d" in name:
        return Fate.IGNORED, "a training mask, which no engine reads"
    if _is_map(name):
        return None
    if MAP in name and not has_map:
        return Fate.LOST, "without a d2t every name with draft_id_to_target_id is skipped, no log"
    if "fc." in name and not drafter.has_fc.value:
        return Fate.LOST, "use_aux_hidden_state is false: fc is dropped, no log"
    switched = drafter.built in (DraftClass.LLAMA, DraftClass.QWEN3)
    if "input_norm." in name and switched and not drafter.input_norm.value:
        return Fate.LOST, "norm_before_fc is false: input_norm is dropped, no log"
    if any(rotary in name for rotary in _ROTARY):
        return Fate.IGNORED, _FREQUENCIES
    return None


def _place(loading: Loading, tensor: TensorHeader, name: str, *, latent: bool) -> None:
    """Place `tensor` by its `name`, which a class may have changed."""
    if _is_map(name):
        _into(loading, tensor, name.replace("d2t", MAP), None, claims.MAP)
    elif "lm_head" in name:
        _into(loading, tensor, name, None, claims.UNKNOWN_NAME)
    else:
        renamed = "model." + name.replace("midlayer.", "layers.0.", 1)
        stacked = _LATENT_STACKED if latent else STACKED
        _into(loading, tensor, *fused_name(renamed, stacked), claims.UNKNOWN_NAME)


def _into(loading: Loading, tensor: TensorHeader, full: str, key: str | None, claim: Claim) -> None:
    """Place `tensor` into parameter `full`; refuses an unknown name.

    An unknown bias of a module that is there is lost.
    """
    if full in loading:
        try:
            loading.place(tensor, full, key)
        except Misfit as misfit:
            raise Refused(Stage.LOAD, str(misfit), claims.SHAPE) from None
    elif full.endswith(".bias") and loading.has_module(full.removesuffix(".bias")):
        loading.leave(tensor, Fate.LOST, f"{full} is no parameter: an unknown bias, no log")
    else:
        raise Refused(
            Stage.LOAD, f"tensor {tensor.name} becomes {full}, which is no parameter", claim
        )

"""vLLM's EAGLE-3 loader: the parameters of Eagle3LlamaForCausalLM, and what fills them."""

from __future__ import annotations

from collections.abc import Iterable

from eyas.checkpoint import TensorHeader
from eyas.engines.decoder import LayerTraits, decoder_layer, fused_name
from eyas.engines.loading import Loading, Misfit
from eyas.engines.parameter import Parameter, norm, vocabulary, whole
from eyas.engines.stop import Refused
from eyas.engines.vllm import claims
from eyas.engines.vllm.drafter import Drafter
from eyas.spec import Fate, Initialisation, LaterNorm, Stage

_MAP = "draft_id_to_target_id"


def parameters_of(drafter: Drafter) -> list[Parameter]:
    """Every parameter of the class, in the order of the model."""
    sizes = drafter.sizes
    hidden, width = sizes.hidden_size.value, sizes.target_hidden_size.value
    count = drafter.count.value
    found: list[Parameter] = []
    if drafter.maps_ids:
        shape = (sizes.draft_vocab_size.value,)
        found.append(whole(_MAP, shape, "d2t", initialisation=Initialisation.ZEROS))
    found.append(
        vocabulary(
            "model.embed_tokens.weight", sizes.vocab_size.value, hidden, "embed_tokens.weight"
        )
    )
    traits = LayerTraits(
        qkv_bias=drafter.qkv_bias.value,
        out_bias=Initialisation.MEMORY if drafter.out_bias else None,
        mlp_bias=drafter.mlp_bias,
        used_norm=LaterNorm.INPUT_LAYERNORM,
        zero_pads=False,
    )
    for index in range(sizes.num_layers.value):
        found.extend(decoder_layer(f"model.layers.{index}", index, sizes, traits))
    if drafter.uses_states.value:
        if drafter.input_norm.value:
            found.append(norm("model.input_norm.weight", count * width, "input_norm.weight"))
        if drafter.fc_norm.value:
            names = [f"fc_norm.{i}.weight" for i in range(count)]
            found.extend(norm(f"model.{name}", width, name) for name in names)
        found.append(whole("model.fc.weight", (hidden, count * width), "fc.weight"))
    found.append(norm("model.norm.weight", hidden, "norm.weight"))
    found.append(
        vocabulary("lm_head.weight", sizes.draft_vocab_size.value, hidden, "lm_head.weight")
    )
    return found


def load(tensors: Iterable[TensorHeader], drafter: Drafter) -> Loading:
    """Load `tensors` as load_weights does; refuses an unknown name or a wrong shape."""
    tensors = list(tensors)
    loading = Loading(parameters_of(drafter))
    has_map = any(_is_map(tensor.name) for tensor in tensors)
    for tensor in tensors:
        left = _left_out(tensor.name, drafter, has_map=has_map)
        if left is None:
            _place(loading, tensor)
            continue
        loading.leave(tensor, *left)
        if "mask_hidden" in tensor.name:
            loading.log(
                "mask_hidden found in weights but model is not configured for parallel drafting"
            )
    return loading


def _is_map(name: str) -> bool:
    return "t2d" not in name and "d2t" in name


def _left_out(name: str, drafter: Drafter, *, has_map: bool) -> tuple[Fate, str] | None:
    """The fate of a tensor that goes into no parameter by its name alone, and why."""
    if "t2d" in name:
        return Fate.IGNORED, "a training mask, which no engine reads"
    if _is_map(name):
        return None
    if "mask_hidden" in name:
        return Fate.IGNORED, "for parallel drafting, which is off"
    if _MAP in name and not has_map:
        return Fate.LOST, "without a d2t every name with draft_id_to_target_id is skipped, no log"
    if "fc." in name and not drafter.uses_states.value:
        return Fate.LOST, "use_aux_hidden_state is false: fc is dropped, no log"
    if "input_norm." in name and not drafter.input_norm.value:
        return Fate.LOST, "norm_before_fc is false: input_norm is dropped, no log"
    if "rotary_emb.inv_freq" in name:
        return Fate.IGNORED, "the engine computes the frequencies from the config"
    return None


def _place(loading: Loading, tensor: TensorHeader) -> None:
    if _is_map(tensor.name):
        full, key = tensor.name.replace("d2t", _MAP), None
    elif "lm_head" in tensor.name:
        full, key = tensor.name, None
    else:
        full, key = fused_name("model." + tensor.name.replace("midlayer.", "layers.0."))
    if full in loading:
        try:
            loading.place(tensor, full, key)
        except Misfit as misfit:
            raise Refused(Stage.LOAD, str(misfit), claims.SHAPE) from None
    elif full.endswith(".bias"):
        loading.leave(tensor, Fate.LOST, f"{full} is no parameter: an unknown bias, no log")
    else:
        claim = claims.MAP if _is_map(tensor.name) else claims.UNKNOWN_NAME
        raise Refused(
            Stage.LOAD, f"tensor {tensor.name} becomes {full}, which is no parameter", claim
        )

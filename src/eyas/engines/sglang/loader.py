"""SGLang's EAGLE-3 Llama loader: the parameters of LlamaForCausalLMEagle3, and what fills them."""

from __future__ import annotations

from collections.abc import Iterable

from eyas.checkpoint import TensorHeader
from eyas.engines.decoder import LayerTraits, decoder_layer, fused_name
from eyas.engines.loading import Loading, Misfit
from eyas.engines.parameter import Parameter, norm, vocabulary, whole
from eyas.engines.sglang import claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.sglang.drafter import Drafter
from eyas.engines.stop import Refused
from eyas.spec import Claim, Fate, Initialisation, LaterNorm, Stage

CONSUMED = "becomes hot_token_id, the map of draft ids"
MASK = (Fate.IGNORED, "a training mask, which no engine reads")
FREQUENCIES = (Fate.IGNORED, "the engine computes the frequencies from the config")


def parameters_of(drafter: Drafter, contract: Contract) -> list[Parameter]:
    """Every parameter of the class, in the order of the model."""
    sizes = drafter.sizes
    hidden, width = sizes.hidden_size.value, sizes.target_hidden_size.value
    count = drafter.count.value
    random = Initialisation.RANDOM  # fc is a torch.nn.Linear and keeps its own initialisation
    found = [
        embedding(drafter),
        whole("model.fc.weight", (hidden, count * width), "fc.weight", initialisation=random),
    ]
    if drafter.fc_bias.value:
        found.append(whole("model.fc.bias", (hidden,), "fc.bias", initialisation=random))
    if drafter.input_norm.value:
        found.append(norm("model.input_norm.weight", count * width, "input_norm.weight"))
    found += state_norms(drafter)
    traits = LayerTraits(
        qkv_bias=False,
        out_bias=contract.bias if drafter.out_bias else None,
        mlp_bias=False,
        used_norm=LaterNorm.HIDDEN_NORM,
        zero_pads=contract.zero_pads,
    )
    for index in range(sizes.num_layers.value):
        found.extend(decoder_layer(contract.layer.format(index), index, sizes, traits))
    return found + ending(drafter)


def embedding(drafter: Drafter) -> Parameter:
    """The embedding of either EAGLE-3 class."""
    sizes = drafter.sizes
    rows, hidden = sizes.vocab_size.value, sizes.hidden_size.value
    return vocabulary("model.embed_tokens.weight", rows, hidden, "embed_tokens.weight")


def state_norms(drafter: Drafter) -> list[Parameter]:
    """The norms of the captured states, one each, of either class."""
    if not drafter.fc_norm.value:
        return []
    width = drafter.sizes.target_hidden_size.value
    names = [f"fc_norm.{i}.weight" for i in range(drafter.count.value)]
    return [norm(f"model.{name}", width, name) for name in names]


def ending(drafter: Drafter) -> list[Parameter]:
    """The final norm and the head of either class."""
    sizes = drafter.sizes
    hidden = sizes.hidden_size.value
    found = [norm("model.norm.weight", hidden, "norm.weight")]
    if not drafter.tied.value:
        rows = sizes.draft_vocab_size.value
        found.append(vocabulary("lm_head.weight", rows, hidden, "lm_head.weight"))
    return found


def is_map(name: str) -> bool:
    """Whether the loader takes a tensor of this name as the map of draft ids."""
    return "d2t" in name


def load(
    tensors: Iterable[TensorHeader], parameters: Iterable[Parameter], contract: Contract
) -> Loading:
    """Load `tensors` as load_weights does; refuses where a shape raises."""
    loading = Loading(parameters)
    for tensor in tensors:
        name = tensor.name
        for old, new in contract.renames:
            name = name.replace(old, new)
        if is_map(name):
            loading.consume(tensor, CONSUMED)
        elif "t2d" in name:
            loading.leave(tensor, *MASK)
        else:
            _place(loading, tensor, name)
    return loading


def _place(loading: Loading, tensor: TensorHeader, name: str) -> None:
    fused, key = fused_name(name)
    full = fused if fused in loading else f"model.{fused}"
    if full in loading:
        put(loading, tensor, full, key)
    elif name.endswith("rotary_emb.inv_freq"):
        loading.leave(tensor, *FREQUENCIES)
    else:
        loading.leave(
            tensor, Fate.LOST, f"neither {fused} nor model.{fused} is a parameter: skipped, no log"
        )


def put(
    loading: Loading,
    tensor: TensorHeader,
    name: str,
    key: str | None = None,
    *,
    fc: Claim = claims.WHOLE_SHAPE,
) -> None:
    """Place `tensor`; refuses a shape that raises. fc is a torch.nn.Linear unless `fc` differs."""
    try:
        loading.place(tensor, name, key)
    except Misfit as misfit:
        raise Refused(Stage.LOAD, str(misfit), _shape_claim(name, fc)) from None


def _shape_claim(name: str, fc: Claim) -> Claim:
    """Where the parameter's own loader asks for its shape; `fc` for that of fc."""
    if name.endswith(("embed_tokens.weight", "lm_head.weight")):
        return claims.VOCABULARY_SHAPE
    if name.endswith("norm.weight") or ".fc_norm." in name:
        return claims.WHOLE_SHAPE
    return fc if ".fc." in name else claims.SHAPE

"""SGLang's EAGLE-3 loader: the parameters of LlamaForCausalLMEagle3, and what fills them."""

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
from eyas.spec import Fate, Initialisation, LaterNorm, Stage


def parameters_of(drafter: Drafter, contract: Contract) -> list[Parameter]:
    """Every parameter of the class, in the order of the model."""
    sizes = drafter.sizes
    hidden, width = sizes.hidden_size.value, sizes.target_hidden_size.value
    count = drafter.count.value
    random = Initialisation.RANDOM  # fc is a torch.nn.Linear and keeps its own initialisation
    found = [
        vocabulary(
            "model.embed_tokens.weight", sizes.vocab_size.value, hidden, "embed_tokens.weight"
        ),
        whole("model.fc.weight", (hidden, count * width), "fc.weight", initialisation=random),
    ]
    if drafter.fc_bias.value:
        found.append(whole("model.fc.bias", (hidden,), "fc.bias", initialisation=random))
    if drafter.input_norm.value:
        found.append(norm("model.input_norm.weight", count * width, "input_norm.weight"))
    if drafter.fc_norm.value:
        names = [f"fc_norm.{i}.weight" for i in range(count)]
        found.extend(norm(f"model.{name}", width, name) for name in names)
    traits = LayerTraits(
        qkv_bias=False,
        out_bias=contract.out_bias if drafter.out_bias else None,
        mlp_bias=False,
        used_norm=LaterNorm.HIDDEN_NORM,
        zero_pads=True,
    )
    for index in range(sizes.num_layers.value):
        found.extend(decoder_layer(contract.layer.format(index), index, sizes, traits))
    found.append(norm("model.norm.weight", hidden, "norm.weight"))
    if not drafter.tied.value:
        found.append(
            vocabulary("lm_head.weight", sizes.draft_vocab_size.value, hidden, "lm_head.weight")
        )
    return found


def load(
    tensors: Iterable[TensorHeader], parameters: Iterable[Parameter], contract: Contract
) -> Loading:
    """Load `tensors` as load_weights does; refuses where a shape raises."""
    loading = Loading(parameters)
    for tensor in tensors:
        name = tensor.name
        for old, new in contract.renames:
            name = name.replace(old, new)
        if "d2t" in name:
            loading.leave(tensor, Fate.CONSUMED, "becomes hot_token_id, the map of draft ids")
        elif "t2d" in name:
            loading.leave(tensor, Fate.IGNORED, "a training mask, which no engine reads")
        else:
            _place(loading, tensor, name)
    return loading


def _place(loading: Loading, tensor: TensorHeader, name: str) -> None:
    fused, key = fused_name(name)
    full = fused if fused in loading else f"model.{fused}"
    if full not in loading:
        if name.endswith("rotary_emb.inv_freq"):
            reason = "the engine computes the frequencies from the config"
            loading.leave(tensor, Fate.IGNORED, reason)
            return
        loading.leave(
            tensor, Fate.LOST, f"neither {fused} nor model.{fused} is a parameter: skipped, no log"
        )
        return
    try:
        loading.place(tensor, full, key)
    except Misfit as misfit:
        raise Refused(Stage.LOAD, str(misfit), claims.SHAPE) from None

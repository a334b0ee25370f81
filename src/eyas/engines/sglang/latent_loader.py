"""SGLang's EAGLE-3 MLA loader: Eagle3DeepseekV2ForCausalLM's parameters, and what fills them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from eyas.checkpoint import TensorHeader
from eyas.engines.decoder import Block, feed_forward, fused_name, layer_norms
from eyas.engines.latent import latent_attention
from eyas.engines.loading import Loading
from eyas.engines.parameter import Fit, Parameter, whole
from eyas.engines.sglang import claims, latent_claims
from eyas.engines.sglang.contract import Contract
from eyas.engines.sglang.drafter import Drafter
from eyas.engines.sglang.loader import (
    CONSUMED,
    FREQUENCIES,
    MASK,
    embedding,
    ending,
    put,
    state_norms,
)
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Fate, Initialisation, Mla, Stage

_STACKED = {
    ".gate_proj": (".gate_up_proj", "gate"),
    ".up_proj": (".gate_up_proj", "up"),
}
_QUERY, _KEY_VALUE, _FUSED = "q_a_proj", "kv_a_proj_with_mqa", "fused_qkv_a_proj_with_mqa"
_PARTS = {_QUERY: "q_a", _KEY_VALUE: "kv_a"}


def parameters_of(drafter: Drafter, latent: Mla, contract: Contract) -> list[Parameter]:
    """Every parameter of the class, in the order of the model."""
    sizes = drafter.sizes
    hidden, width = sizes.hidden_size.value, sizes.target_hidden_size.value
    fc = (hidden, drafter.count.value * width)
    if contract.latent_splits_fc:
        found = [embedding(drafter), whole("model.fc.weight", fc, "fc.weight", fit=Fit.ROWS)]
        bias = contract.bias
    else:
        bias = Initialisation.RANDOM
        found = [
            embedding(drafter),
            whole("model.fc.weight", fc, "fc.weight", initialisation=bias),
        ]
    if drafter.fc_bias.value:
        found.append(whole("model.fc.bias", (hidden,), "fc.bias", initialisation=bias))
    block = Block(prefix="model.midlayer", role="layers.0", pads=contract.zero_pads)
    return [
        *found,
        *state_norms(drafter),
        *latent_attention(block, _FUSED, latent, hidden, 2 * hidden),
        *feed_forward(block, hidden, sizes.intermediate_size.value, bias=False),
        *layer_norms(block, hidden, None),
        *ending(drafter),
    ]


def is_map(name: str) -> bool:
    """Whether the loader takes a tensor of this name as the map of draft ids."""
    return name == "d2t" or name.endswith(".d2t")


def load(tensors: Iterable[TensorHeader], parameters: Iterable[Parameter]) -> Loading:
    """Load `tensors` as load_weights does; refuses where a shape raises."""
    known = {parameter.name: parameter for parameter in parameters}
    loading = Loading(known.values())
    waiting: dict[str, TensorHeader] = {}
    for tensor in tensors:
        name = tensor.name
        if is_map(name):
            loading.consume(tensor, CONSUMED)
            continue
        if name == "t2d" or name.endswith(".t2d"):
            loading.leave(tensor, *MASK)
            continue
        full = re.sub(r"^layers\.0\.", "midlayer.", name)
        if not full.startswith("lm_head."):
            full = f"model.{full}"
        stacked, key = fused_name(full, _STACKED)
        if key is not None and stacked in loading:
            put(loading, tensor, stacked, key)
        elif _QUERY in full or _KEY_VALUE in full:
            _join(loading, known, waiting, full, tensor)
        elif full in loading:
            put(loading, tensor, full, fc=claims.SHAPE)
        elif name.endswith("rotary_emb.inv_freq"):
            loading.log(f"Eagle3 MLA: skipping unexpected weight {name}")
            loading.leave(tensor, *FREQUENCIES)
        else:
            loading.log(f"Eagle3 MLA: skipping unexpected weight {name}")
            loading.leave(tensor, Fate.LOST, f"{full} is no parameter: skipped, with a warning")
    for full, half in waiting.items():
        other = _KEY_VALUE if _QUERY in full else _QUERY
        loading.leave(half, Fate.LOST, f"waits for a {other} that never comes: dropped, no log")
    return loading


def _join(
    loading: Loading,
    known: Mapping[str, Parameter],
    waiting: dict[str, TensorHeader],
    full: str,
    tensor: TensorHeader,
) -> None:
    """Put `tensor` and its other half into their parameter, or let it wait for the other."""
    mine, other = (_QUERY, _KEY_VALUE) if _QUERY in full else (_KEY_VALUE, _QUERY)
    partner = waiting.pop(full.replace(mine, other), None)
    if partner is None:
        waiting[full] = tensor
        return
    fused = full.replace(mine, _FUSED)
    halves = {mine: tensor, other: partner}
    if fused not in loading:
        for half in halves.values():
            loading.leave(half, Fate.LOST, f"{fused} is no parameter: dropped, no log")
        return
    query, key_value = halves[_QUERY].shape, halves[_KEY_VALUE].shape
    wanted = known[fused].shape
    joined = (query[0] + key_value[0], *query[1:]) if query and key_value else ()
    if query[1:] != key_value[1:] or joined != wanted:
        raise Refused(
            Stage.LOAD,
            f"tensors {halves[_QUERY].name} and {halves[_KEY_VALUE].name} are {_size(query)} and"
            f" {_size(key_value)}, but parameter {fused} wants {_size(wanted)} of them together",
            latent_claims.JOIN,
        )
    rank = known[fused].parts[0].rows
    if query[0] != rank:
        raise NotCovered(
            f"{halves[_QUERY].name} has {query[0]} rows where the config says {rank}, and what the"
            " MLA class makes of rows that belong to the other half is not read"
        )
    for name, key in _PARTS.items():
        put(loading, halves[name], fused, key)


def _size(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a scalar"

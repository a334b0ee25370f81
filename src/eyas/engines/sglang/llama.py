"""What SGLang makes of a checkpoint whose `architectures` names another Llama class than EAGLE-3's.

`LlamaForCausalLM` is an ordinary language model, which many EAGLE-3 checkpoints name; and
`LlamaForCausalLMEagle` is the class of EAGLE-1 and EAGLE-2.
"""

from __future__ import annotations

from eyas.engines.answer import Answer
from eyas.engines.capture import target_width, uses_states
from eyas.engines.config import ConfigView
from eyas.engines.sglang import claims, llama_claims
from eyas.engines.sglang.drafter import require_positive, require_silu
from eyas.engines.sglang.eagle3 import tied_eagle
from eyas.engines.sglang.llama_loader import load, parameters_of
from eyas.engines.sglang.request import Request
from eyas.engines.sglang.targets import require_capture
from eyas.engines.sizes import Sizes, sizes_of
from eyas.engines.stop import Refused
from eyas.spec import Claim, FromTarget, Recognised, Stage

_EMBEDDING = {"model.embed_tokens.weight": FromTarget(what="embed_tokens.weight")}
_HEAD = {"lm_head.weight": FromTarget(what="lm_head.weight")}


def read_llama(request: Request, config: ConfigView, answer: Answer, *, eagle: bool) -> None:
    """Fill `answer` with what becomes of the checkpoint; refuses where SGLang raises.

    `eagle` says whether the class is that of EAGLE-1 and EAGLE-2.
    """
    contract = request.contract
    flat = config.without("target_hidden_size")  # neither class sizes anything by it
    sizes = sizes_of(flat, draft_vocab_size=flat.whole("vocab_size"))
    require_positive(sizes)
    require_silu(config, claims.ACTIVATION)
    answer.claims += [_class_claim(eagle), llama_claims.LLAMA_SKIP]
    answer.spec = _spec(eagle)
    parameters = parameters_of(config, sizes, contract, eagle=eagle)
    tensors = request.checkpoint.tensors.values()
    loading = load(tensors, parameters, config, contract, eagle=eagle)
    tied = config.flag("tie_word_embeddings")
    if request.eagle:
        if tied.value:
            raise tied_eagle(tied)
        answer.claims.append(claims.ALGORITHM_EAGLE)
        answer.landing = loading.landing({**_EMBEDDING, **_HEAD})
        _require_width(request, sizes, eagle=eagle)
        return
    named = "target_hidden_size"
    keeps = config.has(named) and config.get(named) != sizes.hidden_size.value
    answer.landing = loading.landing({} if keeps else _EMBEDDING)
    if not contract.switches_states or uses_states(config).value:
        require_capture(request.target, contract)
    raise Refused(
        Stage.JOIN,
        f"{config.key('architectures')} makes SGLang build a class without hot_token_id, which the"
        " algorithm EAGLE3 asks every drafter for",
        llama_claims.NO_MAP_ATTRIBUTE,
    )


def _spec(eagle: bool) -> Recognised:
    if eagle:
        return Recognised(
            name="an EAGLE-1 or EAGLE-2 head",
            why="its fc takes the embedding and one state of the target, and its class is"
            " LlamaForCausalLMEagle",
            lacks="eyas accounts for its tensors alone",
        )
    return Recognised(
        name="an ordinary Llama model",
        why="LlamaForCausalLM has no fc and never looks at the target's states",
        lacks="eyas accounts for its tensors alone",
    )


def _require_width(request: Request, sizes: Sizes, *, eagle: bool) -> None:
    """Refuse where the first forward pass raises."""
    one, hidden = target_width(sizes, request.target), sizes.hidden_size.value
    if one != hidden:
        raise Refused(
            Stage.FIRST_REQUEST,
            f"the target's embedding is {one} wide and the drafter {hidden}",
            _class_claim(eagle),
        )


def _class_claim(eagle: bool) -> Claim:
    return llama_claims.EAGLE_CLASS if eagle else llama_claims.LLAMA_CLASS

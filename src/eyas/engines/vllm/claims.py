"""What eyas says of vLLM, each with the source line that it rests on.

The EAGLE-3 files of 0.32.0 and 0.33.0 are byte-identical; lines are 0.32.0's.
"""

from __future__ import annotations

from eyas.spec import Claim

_EAGLE3 = "vllm/model_executor/models/llama_eagle3.py"
_SPECULATIVE = "vllm/config/speculative.py"
_PROPOSER = "vllm/v1/spec_decode/llm_base_proposer.py"


def _claim(text: str, file: str, lines: str) -> Claim:
    return Claim(text=text, project="vllm", version="0.32.0", file=file, lines=lines)


MODEL_TYPE = _claim(
    "a config without model_type is read only where it holds a speculators_config",
    "vllm/transformers_utils/config.py",
    "315-321",
)
SPECULATORS = _claim(
    "transformer_layer_config is the base, and of the top level draft_vocab_size,"
    " target_hidden_size, norm_before_residual (true where absent), norm_before_fc, fc_norm,"
    " norm_output and eagle_aux_hidden_state_layer_ids are copied over; no other key is read",
    "vllm/transformers_utils/configs/speculators/algos.py",
    "15-50",
)
SPECULATORS_SIZES = _claim(
    "the parsed speculators config has no defaults of its own: a key that the model needs and"
    " transformer_layer_config lacks raises AttributeError",
    "vllm/transformers_utils/configs/speculators/base.py",
    "15-63",
)
SIZES = _claim(
    "sizes are read as plain attributes and multiplied: one that is null or no number raises",
    _EAGLE3,
    "210-221",
)
ARCHITECTURE = _claim(
    "method eagle3 puts Eagle3, method eagle puts Eagle before the architecture unless it is"
    " there; the result must be registered",
    _SPECULATIVE,
    "1403-1421",
)
METHOD = _claim(
    "an explicit method is believed; without one the path decides: 'eagle-' in it means eagle,"
    " else 'eagle3' means eagle3, else draft_model, which fails at the first request",
    _SPECULATIVE,
    "1327-1350",
)
METHOD_EAGLE = _claim(
    "with method eagle the target hands over one state and combine_hidden_states, which is fc, is"
    " never called",
    _PROPOSER,
    "536-553",
)
AUX_OFF = _claim(
    "with eagle_config.use_aux_hidden_state false no fc is built, its tensors are dropped without"
    " a word, and the target's last state is used as it is",
    _EAGLE3,
    "209-250, 462-463",
)
AUX_OFF_V2 = _claim(
    "the V2 runner captures states for every eagle3 drafter, use_aux_hidden_state or not; without"
    " fc they reach the drafter as they are, and other widths than its own raise",
    "vllm/v1/worker/gpu/model_runner.py",
    "300-307",
)
LAST_STATE = _claim(
    "the one state of the target is its output after the final norm",
    "vllm/v1/worker/gpu_model_runner.py",
    "4958, 4975, 4996",
)
UNKNOWN_NAME = _claim(
    "every name but lm_head gets `model.` in front, midlayer. becomes layers.0., and a name that"
    ' is no parameter raises "There is no module or parameter named"; unknown biases and'
    " rotary_emb.inv_freq are left out without a word",
    _EAGLE3,
    "420-470",
)
MISSING = _claim(
    "load_weights returns nothing, which switches the completeness check off: a parameter that no"
    " tensor fills stays as construction left it",
    "vllm/model_executor/model_loader/default_loader.py",
    "507-518",
)
SHAPE = _claim(
    "a tensor of another shape raises, except that q, k, v, o, gate, up and down are cut to the"
    " configured size",
    "vllm/model_executor/parameter.py",
    "153-226",
)
MAP = _claim(
    "target id = draft id + d2t[draft id]; the map exists only where draft_vocab_size differs from"
    " the target's vocabulary, stays zeros without a d2t, and a d2t without the map raises",
    _EAGLE3,
    "338-345, 385-394",
)
EMBEDDING = _claim(
    "the target's embedding is used where the checkpoint has none and the widths agree; a"
    " checkpoint's own one is kept unless it equals the target's",
    _PROPOSER,
    "1416",
)
HEAD = _claim(
    "the target's whole head is used where the checkpoint has none, and its first draft_vocab_size"
    " rows are the draft vocabulary",
    _PROPOSER,
    "1508-1556",
)
LATER_LAYERS = _claim(
    "from the second layer on only input_layernorm runs before attention, hidden_norm never does",
    _PROPOSER,
    "1416-1465",
)
RESIDUAL = _claim(
    "norm_before_residual decides whether the residual is taken after hidden_norm; a flat config"
    " without the key means false",
    _EAGLE3,
    "101-122",
)
WIDTH = _claim(
    "fc is sized from num_aux_hidden_states, else from eagle_config's ids, else for three states,"
    " never from the top-level ids; a captured width that is no multiple raises at the first"
    " request",
    _EAGLE3,
    "210-221",
)
DEFAULT_IDS = _claim(
    "without ids the states entering layers 2, n//2 and n-3 are captured",
    "vllm/model_executor/models/interfaces.py",
    "1712-1725",
)
SORTED_IDS = _claim(
    "ids are boundaries (the state entering layer k), sorted and without duplicates; those past"
    " the last layer are never captured",
    "vllm/model_executor/models/interfaces.py",
    "1577-1578",
)
IDS_V1 = _claim(
    "the V1 runner reads the top-level ids, else eagle_config.eagle_aux_hidden_state_layer_ids,"
    " else dflash_config.target_layer_ids plus 1, as boundaries",
    "vllm/v1/worker/gpu_model_runner.py",
    "5251-5285",
)
IDS_V2 = _claim(
    "the V2 runner reads the top-level ids, else target_layer_ids plus 1, else"
    " eagle_config.layer_ids; eagle_config.eagle_aux_hidden_state_layer_ids is not read",
    "vllm/v1/worker/gpu/spec_decode/eagle/eagle3_utils.py",
    "100-137",
)
DEFAULT_RUNNER = _claim(
    "without VLLM_USE_V2_MODEL_RUNNER the V2 runner is taken where Triton is installed and no"
    " feature that it lacks is asked for",
    "vllm/config/vllm.py",
    "703-736",
)
TIE_IGNORED = _claim("tie_word_embeddings is not read for a drafter", _EAGLE3, "328-334")
SLIDING_WINDOW = _claim(
    "layer_types and sliding_window are read: a sliding_attention layer sees the last"
    " sliding_window tokens alone",
    "vllm/model_executor/models/llama.py",
    "185-219",
)

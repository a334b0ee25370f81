"""What eyas says of vLLM, each with the source line that it rests on.

The EAGLE files of 0.32.0 and 0.33.0 are byte-identical; lines are 0.32.0's but where a claim says
otherwise.
"""

from __future__ import annotations

from eyas.spec import Claim

_EAGLE3 = "vllm/model_executor/models/llama_eagle3.py"
_SPECULATIVE = "vllm/config/speculative.py"
_PROPOSER = "vllm/v1/spec_decode/llm_base_proposer.py"


def _claim(text: str, file: str, lines: str, version: str = "0.32.0") -> Claim:
    return Claim(text=text, project="vllm", version=version, file=file, lines=lines)


MODEL_TYPE = _claim(
    "a config without model_type is read only where it holds a speculators_config",
    "vllm/transformers_utils/config.py",
    "315-321",
)
TYPED = _claim(
    "a flat config is read by transformers' class for its model_type, whose fields are typed: a"
    " value of another type raises, a null one too where the field takes none",
    "vllm/transformers_utils/config.py",
    "730-780",
)
SPECULATORS = _claim(
    "transformer_layer_config is the base, and of the top level draft_vocab_size,"
    " target_hidden_size, norm_before_residual (true where absent), norm_before_fc, fc_norm,"
    " norm_output and eagle_aux_hidden_state_layer_ids are copied over; no other key is read",
    "vllm/transformers_utils/configs/speculators/algos.py",
    "15-50",
)
SPECULATORS_TYPES = _claim(
    "the speculators types are eagle3, peagle, dflash, dflash2 and dspark; another one raises",
    "vllm/transformers_utils/configs/speculators/base.py",
    "51-56",
)
SPECULATORS_PEAGLE = _claim(
    "of a peagle config draft_vocab_size, target_hidden_size, norm_before_residual (false where"
    " absent), norm_before_fc, mask_token_id (needed) and eagle_aux_hidden_state_layer_ids are"
    " copied over the nested ones",
    "vllm/transformers_utils/configs/speculators/algos.py",
    "53-87",
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
REWRITTEN = _claim(
    "a draft config of model_type deepseek_v3, deepseek_v32 or glm_moe_dsa is rewritten to"
    " DeepSeek's multi-token-prediction model before its architecture is looked at",
    _SPECULATIVE,
    "679-694",
)
METHOD = _claim(
    "an explicit method is believed; without one the path decides: 'eagle-' in it means eagle,"
    " else 'eagle3' means eagle3, else 'dflash' or 'dspark' those, else draft_model, which fails at"
    " the first request",
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
AUX_OFF_0330 = _claim(
    "both runners hand over the target's last state where eagle_config.use_aux_hidden_state is"
    " false",
    "vllm/v1/worker/gpu/spec_decode/eagle/eagle3_utils.py",
    "15-22",
    "0.33.0",
)
AUX_OFF_LATENT = _claim(
    "the DeepSeek class has an fc whatever eagle_config says: with use_aux_hidden_state false the"
    " one state that arrives is too narrow for it and the first request raises",
    "vllm/model_executor/models/deepseek_eagle3.py",
    "188-209, 357-368",
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
LATENT = _claim(
    "latent attention fuses q_a_proj and kv_a_proj_with_mqa into fused_qkv_a_proj, which is only"
    " built with a q_lora_rank; norm_before_fc, use_aux_hidden_state and biases are not read, and"
    " the feed-forward part is dense",
    "vllm/model_executor/models/deepseek_eagle3.py",
    "64-92, 259-267",
)
QWEN3 = _claim(
    "the Qwen3 class norms queries and keys, has no bias but attention_bias on q, k and v, and"
    " sizes fc from num_aux_layers, num_aux_hidden_states, the top-level ids or eagle_config's ids",
    "vllm/model_executor/models/qwen3_eagle3.py",
    "56-80, 201-214",
)
PLAIN_ATTRIBUTES = _claim(
    "the classes read sliding_window of a sliding layer, and the base of the rotary embedding, as"
    " plain attributes: one that is absent or null raises",
    "vllm/model_executor/models/llama.py",
    "185-219",
)
ROPE_TYPES = _claim(
    "a rope_type that get_rope does not know raises",
    "vllm/model_executor/layers/rotary_embedding/__init__.py",
    "102-350",
)
NULL_EPS = _claim(
    "a null rms_norm_eps is handed to the first norm that runs, which raises",
    "vllm/model_executor/layers/layernorm.py",
    "100-140",
)
ARCHITECTURE_SIZES = _claim(
    "the sizes of a model's architecture are typed: a null one raises while the config is made",
    "vllm/transformers_utils/model_arch_config_convertor.py",
    "30-120",
)
UNKNOWN_BIAS = _claim(
    "an unknown name that ends in .bias is skipped where the module before it is there, and raises"
    " where it is not",
    "vllm/model_executor/models/utils.py",
    "426-448",
)
EAGLE1 = _claim(
    "the EAGLE-1 class has an embedding, layers (the first without input_layernorm) and an fc over"
    " embedding and state; it has no head, norm or map, and a tensor for one raises",
    "vllm/model_executor/models/llama_eagle.py",
    "93-120, 166-196",
)
DFLASH = _claim(
    "the DFlash class has layers with norms of queries and keys, fc, hidden_norm, norm, a head and"
    " an embedding; mask_hidden raises, and a mask_embedding comes from mask_embedding.pt alone",
    "vllm/model_executor/models/qwen3_dflash.py",
    "413-520, 886-930",
)
DFLASH_WIDTH = _claim(
    "fc takes as many states as the config names, or as there are layers; another number raises at"
    " the first request",
    "vllm/model_executor/models/qwen3_dflash.py",
    "108-118, 864-884",
)
DFLASH_SLIDING = _claim(
    "sliding and full layers together need the V2 runner, and a sliding layer a window; either"
    " raises",
    "vllm/model_executor/models/qwen3_dflash.py",
    "152-180",
)
SPECULATORS_DFLASH = _claim(
    "of a dflash config aux_hidden_state_layer_ids and mask_token_id are needed: the ids are"
    " boundaries, and draft_vocab_size and target_hidden_size are copied over the nested ones",
    "vllm/transformers_utils/configs/speculators/algos.py",
    "90-127",
)
ACTIVATION = _claim(
    "an activation other than silu raises",
    "vllm/model_executor/models/llama.py",
    "112-115",
)
PARALLEL = _claim(
    "with parallel_drafting mask_hidden is copied into a buffer as wide as the input of fc, and a"
    " checkpoint without it raises; without parallel_drafting it is skipped with a warning",
    _EAGLE3,
    "347-354, 429-455",
)
MASK_TOKEN = _claim(
    "parallel drafting takes its mask token from dflash_config.mask_token_id, mask_token_id,"
    " dspark_noise_token_id, pard_token or ptd_token_id, and raises without any",
    _PROPOSER,
    "356-379",
)
PARALLEL_RUNNER = _claim(
    "the V2 runner does not draft in parallel for eagle3: vLLM takes the V1 runner instead",
    "vllm/config/vllm.py",
    "2936-2943",
)
SUPPORTS_EAGLE3 = _claim(
    "a target whose class is not a SupportsEagle3 raises once it is loaded",
    "vllm/v1/worker/gpu_model_runner.py",
    "5230-5238",
)
EMBEDDING_V2 = _claim(
    "the V2 runner takes the target's embedding where the checkpoint has none, whatever its width;"
    " another width than the drafter's raises",
    "vllm/v1/worker/gpu/spec_decode/eagle/utils.py",
    "14-77",
)
LONGER_CONTEXT = _claim(
    "under methods eagle and eagle3 a drafter whose max_position_embeddings is below the target's"
    " max_model_len is given that one",
    _SPECULATIVE,
    "1393-1400, 1677-1707",
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

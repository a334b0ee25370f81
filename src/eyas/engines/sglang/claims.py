"""What eyas says of SGLang, each with the source line that it rests on."""

from __future__ import annotations

from eyas.engines.sglang.claim import claim
from eyas.engines.sglang.contract import Contract
from eyas.engines.version import version_of
from eyas.spec import Claim

_EAGLE3 = "sglang/srt/models/llama_eagle3.py"


MODEL_TYPE = claim(
    "the draft config is parsed by transformers' AutoConfig, which needs model_type;"
    " SGLang reads no speculators config",
    "sglang/srt/utils/hf_transformers/config.py",
    "228",
)
STRICT_TYPES = claim(
    "the draft config is a strict dataclass of transformers from 5.6.0 on, which 0.5.11 requires:"
    " a value of another type than its field's raises, null and a whole number for a real one too,"
    " and so do a hidden_size that is no multiple of num_attention_heads and as many layer_types as"
    " there are no layers"
    " (transformers 5.19.0, models/llama/configuration_llama.py:64-99)",
    "sglang/srt/utils/hf_transformers/config.py",
    "228",
)
UNTYPED = claim(
    "before transformers 5.6.0 the draft config is not checked for types: null is no default and"
    " raises where it is first computed with, sizes and heads in the config itself, and a null"
    " quantization_config where it is turned into a table"
    " (transformers 4.57.1, models/llama/configuration_llama.py:205-214)",
    "sglang/srt/utils/hf_transformers_utils.py",
    "213, 276",
    "0.5.8",
)
SCALING_PARSED = claim(
    "transformers checks rope_scaling as it parses the config: one without a kind, or without the"
    " numbers of its kind, raises (transformers 4.57.1, modeling_rope_utils.py)",
    "sglang/srt/utils/hf_transformers_utils.py",
    "213, 276",
    "0.5.8",
)
SCALING_TYPED = claim(
    "transformers checks rope_parameters, and rope_scaling as that, when it parses the config: one"
    " without the numbers of its kind raises (transformers 5.19.0, modeling_rope_utils.py)",
    "sglang/srt/utils/hf_transformers/config.py",
    "228",
)
ARCHITECTURE = claim(
    "the model class is looked up by architectures[0]; a name that is not registered raises"
    ' "Cannot find model module"',
    "sglang/srt/model_loader/utils.py",
    "156-164",
)
DRAFT_VOCAB_SIZE = claim(
    "draft_vocab_size is read as a plain attribute: null shares the target's head, and a config"
    " without the key raises AttributeError",
    _EAGLE3,
    "303-319",
)
SIZES = claim(
    "sizes are read as plain attributes and multiplied: one that is null or no number raises, and"
    " target_hidden_size counts as given even when it is null",
    _EAGLE3,
    "151-167",
)
EAGLE_TABLE = claim(
    "eagle_config is asked for its keys wherever it is not empty: one that is no table raises"
    " (up to 0.5.16 only where num_aux_hidden_states is not given)",
    _EAGLE3,
    "159-174",
)
NULL_HEAD = claim(
    "draft_vocab_size is handed to the head as it is, and null raises",
    _EAGLE3,
    "188-196",
    "0.4.9",
)
ACTIVATION = claim(
    "another activation than silu raises ValueError",
    "sglang/srt/models/llama.py",
    "116-119",
)
DIVISORS = claim(
    "num_key_value_heads and head_dim are divided by: 0 raises ZeroDivisionError",
    "sglang/srt/models/llama.py",
    "193, 203",
)
ONE_LAYER = claim(
    'more than one decoder layer raises "EAGLE3 currently only supports 1 layer"',
    _EAGLE3,
    "213",
    "0.5.11",
)
SILENT_SKIP = claim(
    "a tensor whose name, with and without `model.` in front, is no parameter is skipped without"
    " a log line, and nothing checks that every parameter was filled",
    _EAGLE3,
    "345-378",
)
SHAPE = claim(
    "a tensor of another shape raises, except that q, k, v, o, gate, up and down are cut to the"
    " configured size and short o, down, gate and up are completed with zeros",
    "sglang/srt/layers/parameter.py",
    "177-340",
)
VOCABULARY_SHAPE = claim(
    "an embedding or a head with another number of rows than the config's vocabulary raises",
    "sglang/srt/layers/vocab_parallel_embedding.py",
    "407-448",
)
WHOLE_SHAPE = claim(
    "a norm or an fc of another shape raises",
    "sglang/srt/model_loader/weight_utils.py",
    "1574-1586",
)
VOCABULARY_MAP = claim(
    "any tensor with d2t in its name becomes hot_token_id = d2t + arange; without one draft ids"
    " are used as target ids",
    _EAGLE3,
    "350-353",
)
RESIDUAL = claim(
    "norm_before_residual is read nowhere: the residual is the state before hidden_norm",
    _EAGLE3,
    "97-102",
)
LATER_LAYERS = claim(
    "from the second layer on only hidden_norm runs before attention, input_layernorm never does",
    _EAGLE3,
    "103-105",
)
NESTED_IDS = claim(
    "only eagle_config.eagle_aux_hidden_state_layer_ids is read for capture, and 1 is added to"
    " each id (llama.py:941); a top-level list is not read",
    "sglang/srt/model_executor/model_runner_components/spec_aux_hidden_state.py",
    "185-196",
)
DEFAULT_IDS = claim(
    "without ids the states entering layers 2, n//2 and n-3 are captured",
    "sglang/srt/models/llama.py",
    "933-941",
)
FIRST_ID = claim(
    "deepseek_v2 and its copies add 1 to the ids only when the first of them is 1",
    "sglang/srt/models/deepseek_v2.py",
    "3470-3473",
)
GPT_OSS_IDS = claim(
    "gpt-oss adds nothing to the ids when the largest is the number of layers",
    "sglang/srt/models/gpt_oss.py",
    "1349-1352",
)
MINIMAX_DEFAULT = claim(
    "minimax_m3_vl adds 1 to the default ids too",
    "sglang/srt/models/minimax_m3_vl.py",
    "260-263",
)
LAST_OUTPUT = claim(
    "a state is captured where it enters a layer, and the loop ends before what leaves the last one"
    " (Gemma 3 and 4, gpt-oss from 0.5.17 and MiniMax-M3 from 0.5.23 on capture it after the loop)",
    "sglang/srt/models/llama.py",
    "486-494",
)
MARKED_LAYERS = claim(
    "Qwen2-MoE and what is built on it mark the layers to capture one by one: an id beyond the last"
    " layer's raises IndexError, where other targets leave it out",
    "sglang/srt/models/qwen2_moe.py",
    "1153-1156",
)
GRAPH_RESET = claim(
    "CUDA graphs are captured after set_eagle3_layers_to_capture() without ids and before the"
    " configured ones are set: prompts give the configured states, but every verify step that runs"
    " in a graph gives the default ones (read in the source, not run)",
    "sglang/srt/model_executor/cuda_graph_runner.py",
    "643-648",
    "0.5.10.post1",
)
EMBEDDING = claim(
    "the target's embedding replaces the drafter's, unless target_hidden_size is in the config"
    " and differs from hidden_size",
    "sglang/srt/models/llama.py",
    "910-918",
)
HEAD = claim(
    "the drafter's own head is used unless draft_vocab_size is null",
    "sglang/srt/speculative/eagle_worker_v2.py",
    "353-363",
)
TIED_HEAD = claim(
    "with tie_word_embeddings the head is the embedding, and lm_head.weight is skipped",
    _EAGLE3,
    "303-304",
)
NO_SHARING = claim(
    "the drafter is given the target's embedding and head by the target's class, and Gemma 3's has"
    " no such method up to 0.5.11",
    "sglang/srt/models/gemma3_causal.py",
    "925",
    "0.5.12",
)
ALGORITHM_EAGLE = claim(
    "speculative_algorithm EAGLE captures one state of the target, puts the target's head in"
    " place of the drafter's, and never picks up d2t; EAGLE-3 heads are not told apart",
    "sglang/srt/speculative/eagle_worker_v2.py",
    "371-379",
)
AUX_OFF = claim(
    "eagle_config.use_aux_hidden_state false captures the target's last state alone",
    "sglang/srt/model_executor/model_runner_components/spec_aux_hidden_state.py",
    "185-196",
)
TIED_EAGLE = claim(
    "set_embed_and_head deletes the embedding's weight and then the head's: with"
    " tie_word_embeddings they are one, and the second deletion raises AttributeError",
    "sglang/srt/models/llama.py",
    "895-899",
)
LAST_STATE = claim(
    "the one state of the target is the one after its final norm (llama.py:498); DeepSeek-V4's"
    " alone is from before it",
    "sglang/srt/layers/logits_processor.py",
    "868-871",
)
NO_SWITCH = claim(
    "use_aux_hidden_state is read nowhere before 0.5.8: EAGLE3 always captures",
    "sglang/srt/model_executor/model_runner.py",
    "488-509",
    "0.5.4.post3",
)
ROPE_PARAMETERS = claim(
    "this version runs on transformers 4, which does not know rope_parameters: rope_theta and"
    " rope_scaling alone are read",
    "sglang/srt/models/llama.py",
    "251-252",
    "0.5.8",
)


DRAFT_WINDOW = claim(
    "--speculative-draft-window-size gives every layer of the drafter a sliding window",
    _EAGLE3,
    "297-299",
)


def no_capture(contract: Contract) -> Claim:
    """What becomes of a target that cannot hand over states."""
    if contract.number >= version_of("0.5.23"):
        return claim(
            "a target whose class has no set_eagle3_layers_to_capture raises ValueError",
            "sglang/srt/model_executor/model_runner_components/attention_backend_setup.py",
            "54-61",
        )
    return claim(
        "set_eagle3_layers_to_capture is called on the target's model whether or not its class has"
        " it: AttributeError (0.5.11, model_runner.py:821; 0.5.22, attention_backend_setup.py:55)",
        "sglang/srt/model_executor/model_runner.py",
        "341",
        "0.4.9",
    )


def width_check(contract: Contract) -> Claim:
    """Where fc is skipped in silence."""
    return claim(
        "fc runs only if the captured width differs from the embedding's; equal widths skip it"
        " without a word, any other mismatch raises at the first forward pass",
        _EAGLE3,
        contract.width_check,
        contract.version,
    )


def layer_names(contract: Contract) -> Claim:
    """Under which name the decoder layer is looked for."""
    if contract.renames:
        return claim(
            "the decoder layer is model.layers.N, and midlayer in a name is read as layers.0",
            _EAGLE3,
            "337-348",
        )
    return claim(
        "the decoder layer is model.midlayer; layers.0.* is no parameter and is skipped",
        _EAGLE3,
        "144, 243-290",
        "0.5.11",
    )


LONGER_CONTEXT = claim(
    "the draft config is given the target's context length (draft_worker_common.py:100), and one"
    " above its own max_position_embeddings raises ValueError unless the environment has"
    " SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN=1, which raises the drafter's to the target's",
    "sglang/srt/configs/model_config.py",
    "1291-1316",
)
LONGER_CONTEXT_PASSES = claim(
    "a context length above the draft config's max_position_embeddings is a warning:"
    " SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN is on by default",
    "sglang/srt/configs/model_config.py",
    "147-166",
    "0.4.9",
)
FULL_ATTENTION = claim(
    "layer_types and sliding_window are not read: attention is full",
    _EAGLE3,
    "286-299",
)


def scaling(contract: Contract) -> Claim:
    """What a RoPE scaling must hold."""
    if contract.scaling_defaults:
        return claim(
            "a kind of RoPE scaling that is not in the list raises, and so does a base of null;"
            " what else is absent has a default",
            "sglang/srt/layers/rotary_embedding/factory.py",
            "192-438",
        )
    return claim(
        "a kind of RoPE scaling that is not in the list raises, and so does one without"
        " original_max_position_embeddings, which is looked up without a default",
        "sglang/srt/layers/rotary_embedding.py",
        "2592-2739",
        "0.5.8",
    )

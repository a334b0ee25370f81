"""Keys of a config that could change the arithmetic, and that its dialect does not read."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from eyas.checkpoint import Checkpoint
from eyas.dialects.keys import shown

# What the EAGLE-3 dialects read of the decoder layer.
LAYER_KEYS = frozenset(
    {
        "architectures",
        "model_type",
        "hidden_size",
        "intermediate_size",
        "num_hidden_layers",
        "num_attention_heads",
        "num_key_value_heads",
        "head_dim",
        "attention_bias",
        "hidden_act",
        "rms_norm_eps",
        "rope_theta",
        "rope_scaling",
        "rope_parameters",
        "max_position_embeddings",
        "vocab_size",
        "tie_word_embeddings",
        "kv_lora_rank",
        "q_lora_rank",
        "qk_nope_head_dim",
        "qk_rope_head_dim",
        "v_head_dim",
    }
)
# What they read of the drafter's own switches.
DRAFTER_KEYS = frozenset(
    {
        "draft_vocab_size",
        "target_hidden_size",
        "num_aux_hidden_states",
        "use_aux_hidden_state",
        "norm_before_residual",
        "norm_before_fc",
        "fc_norm",
        "use_aux_norm",
        "norm_output",
        "bias",
        "tie_word_embeddings",
    }
)
# What they read of drafting in parallel.
PARALLEL_KEYS = frozenset(
    {"mask_token_id", "num_depths", "parallel_drafting", "pard_token", "ptd_token_id"}
)
# What no forward pass looks at: names, how it was trained, how it was stored.
_INERT = frozenset(
    {
        "_name_or_path",
        "_torchspec_version",
        "attention_dropout",
        "bos_token_id",
        "confidence_head_alpha",
        "draft_num_hidden_layers",
        "dtype",
        "embed_requires_grad",
        "eos_token_id",
        "has_no_defaults_at_init",
        "hidden_dropout",
        "inference_type",
        "initializer_range",
        "max_window_layers",  # means something beside use_sliding_window alone, which is judged
        "num_target_layers",
        "pad_token_id",
        "parallel_draft_heads_num_layers",  # of heads that more than one parallel_draft_step has
        "pretraining_tp",  # the same products in slices
        "return_dict",
        "step_loss_decay",
        "target_model_name_or_path",
        "target_model_type",
        "torch_dtype",
        "transformers_version",
        "truncated_vocab_size",
        "ttt_length",
        "use_cache",
    }
)
# Mixture-of-experts keys, which a config copied from a target keeps over a dense layer.
_EXPERTS = frozenset(
    {
        "aux_loss_alpha",
        "first_k_dense_replace",
        "moe_intermediate_size",
        "moe_layer_freq",
        "n_group",
        "n_routed_experts",
        "n_shared_experts",
        "norm_topk_prob",
        "num_experts_per_tok",
        "routed_scaling_factor",
        "scoring_func",
        "seq_aux",
        "topk_group",
        "topk_method",
    }
)
# The producers' own classes.
_OWN_CLASSES = (
    {"": "eagle3.Eagle3SpeculatorConfig"},
    {"AutoModel": "dflash.DFlashDraftModel"},
    {"AutoModel": "dspark.DSparkDraftModel"},
)
# Values that say what a drafter does anyway.
_NEUTRAL: Mapping[str, object] = {
    "embedding_multiplier": 1,
    "logit_scale": 1,
    "logits_scaling": 1,
    "next_layer_regular": True,  # layers after the first take one state: ModelOpt's template
    "num_nextn_predict_layers": 0,
    "parallel_draft_step": 1,
    "partial_rotary_factor": 1,
    "residual_multiplier": 1,
    "use_input_layernorm_in_first_layer": True,
    "use_last_layernorm": True,
}


def unread(checkpoint: Checkpoint, sections: Mapping[str, frozenset[str]]) -> Iterator[str]:
    """Each key with a value that `sections` does not name, as ``config.json :: key is value``.

    `sections` holds the keys that are read by the section that they are in, ``""`` for the top.
    Left out are keys that no forward pass looks at, and values that change nothing.
    """
    inert = _INERT if any(".experts." in name for name in checkpoint.tensors) else _INERT | _EXPERTS
    for section, read in sections.items():
        table = checkpoint.config.get(section) if section else checkpoint.config
        if not isinstance(table, Mapping):
            continue
        for key, value in table.items():
            if key in read or key in inert or (not section and key in sections):
                continue
            if not section and _restates(checkpoint.config, sections, key, value):
                continue
            if not _changes_nothing(table, key, value):
                place = f"{section}.{key}" if section else key
                yield f"{checkpoint.config_file} :: {place} is {shown(value)}"


def _restates(
    config: Mapping[str, Any], sections: Mapping[str, frozenset[str]], key: str, value: Any
) -> bool:
    """Whether a section that reads `key` has the same value, as in half-flattened configs."""
    tables = (config.get(section) for section, read in sections.items() if section and key in read)
    return any(isinstance(table, Mapping) and table.get(key) == value for table in tables)


def _changes_nothing(table: Mapping[str, Any], key: str, value: Any) -> bool:
    if value is None:
        return True
    if key in _NEUTRAL:  # of which some mean something by being false
        return bool(value == _NEUTRAL[key])
    if value is False or value in ("", [], {}):
        return True
    if key == "auto_map":
        return value in _OWN_CLASSES
    if key == "layer_types":
        return isinstance(value, list) and all(kind == "full_attention" for kind in value)
    if key == "sliding_window":
        return table.get("use_sliding_window") is False
    return key == "use_sliding_window" and table.get("sliding_window") is None

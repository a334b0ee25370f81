"""What eyas says of SGLang's MLA class, each with the source line that it rests on."""

from __future__ import annotations

from eyas.engines.sglang.claim import claim

_FILE = "sglang/srt/models/kimi_k25_eagle3.py"

TYPE = claim(
    "model_type kimi_k2 is added to transformers' registry from 0.5.12 on; before, AutoConfig"
    " raises",
    "sglang/srt/utils/hf_transformers/common.py",
    "130-133",
    "0.5.12",
)
PARSED = claim(
    "where architectures names the MLA class, the widths of latent attention but q_lora_rank are"
    " read as the config is parsed, and one that is missing raises",
    "sglang/srt/configs/model_config.py",
    "1392-1401",
)
CONSTRUCTION = claim(
    "the MLA class needs q_lora_rank and one layer, and its MLP takes silu alone"
    " (deepseek_v2.py:330-333)",
    _FILE,
    "114-117, 243-244",
)
NAMES = claim(
    "the decoder layer is model.midlayer: a name that begins with layers.0. is read as midlayer.,"
    " and model. is put before every name but lm_head.*, so a name that has it already is unknown",
    _FILE,
    "448-450",
)
SKIP = claim(
    "a tensor whose name is no parameter is skipped with a warning, and nothing checks that every"
    " parameter was filled",
    _FILE,
    "494-499",
)
JOIN = claim(
    "q_a_proj and kv_a_proj_with_mqa are held back until both are there and joined; one without the"
    " other is dropped without a log line",
    _FILE,
    "467-492",
)
MAP = claim(
    "a tensor called d2t, alone or after a dot, becomes hot_token_id = d2t + arange; without one"
    " draft ids are used as target ids",
    _FILE,
    "437-441",
)
RESIDUAL = claim(
    "norm_before_residual is read nowhere: the residual is the state before hidden_norm",
    _FILE,
    "159-162",
)
EMBEDDING = claim(
    "the target's embedding replaces the drafter's, unless target_hidden_size is a number other"
    " than hidden_size",
    _FILE,
    "404-413",
)
WIDTH = claim(
    "fc runs only if the captured width differs from the embedding's; equal widths skip it"
    " without a word, any other mismatch raises at the first forward pass",
    _FILE,
    "285-294",
)

"""What eyas says of llama.cpp, each with the source line that it rests on.

Read in ggml-org/llama.cpp at 0c1e57098, which the sdist of llama-cpp-python 0.3.36 carries. Build
11549, inside the wheel of xllamacpp 2026.10.11549, reads the same keys in the same order and holds
the same messages.
"""

from __future__ import annotations

from eyas.spec import Claim

_EAGLE3 = "src/models/eagle3.cpp"
_SPECULATIVE = "common/speculative.cpp"


def claim(text: str, file: str, lines: str) -> Claim:
    """A statement about llama.cpp as it was read."""
    return Claim(text=text, project="llamacpp", version="0c1e57098", file=file, lines=lines)


FORMAT = claim(
    "a draft model is a GGUF file; a Hugging Face directory is converted with"
    " convert_hf_to_gguf.py --target-model-dir",
    "conversion/llama.py",
    "49-62",
)
ARCHITECTURE = claim(
    "general.architecture names the class; only eagle3 is an EAGLE-3 drafter",
    "src/llama-arch.cpp",
    "145",
)
GENERAL_KEYS = claim(
    "context_length, embedding_length and block_count are needed; without head_count_kv there are"
    " as many key heads as heads, without key_length heads are embedding_length / head_count wide",
    "src/llama-model.cpp",
    "1321-1327, 1395-1444",
)
EAGLE3_KEYS = claim(
    "attention.layer_norm_rms_epsilon, target_hidden_size and target_layers are needed, and"
    " target_layers has three entries; norm_before_residual and norm_before_fc are false where"
    " absent",
    _EAGLE3,
    "3-36",
)
TOKENIZER = claim(
    "a file without tokenizer.ggml.model raises; its tokens are the vocabulary of the target",
    "src/llama-vocab.cpp",
    "1945-1963",
)
MERGES = claim(
    "a gpt2 tokenizer without merges raises, unless it is cut as kimi-k2's, and so do merges that"
    " are no list of texts",
    "src/llama-vocab.cpp",
    "1992-2012",
)
TOKENIZER_KINDS = claim(
    "a tokenizer.ggml.model of another name than llama.cpp's own kinds raises",
    "src/llama-vocab.cpp",
    "1953-2152",
)
CUTS = claim(
    "a tokenizer.ggml.pre of a name that is not in the list raises; an empty one is the default",
    "src/llama-vocab.cpp",
    "2155-2429",
)
TOKENIZER_KEYS = claim(
    "tokens are needed, and a list of texts; scores and token_type have one number for each at"
    " least, in float32 or int32, and in int32",
    "src/llama-vocab.cpp",
    "2461-2506, 2666-2676",
)
TOKENS_ONCE = claim(
    "a token that is there twice aborts; an empty one is named by its id",
    "src/llama-vocab.cpp",
    "2508-2544",
)
KEY_TYPES = claim(
    "a key has exactly the type that is asked for, or raises; feed_forward_length, head_count,"
    " head_count_kv and expert_used_count may be a list with a number for each layer",
    "src/llama-model-loader.cpp",
    "163-172, 486-512",
)
LIMITS = claim(
    "block_count is 1 to 512, nextn_predict_layers no more; experts are used where there are some,"
    " and only then; rope.scaling.type is none, linear, yarn or longrope: anything else aborts",
    "src/llama-model.cpp",
    "1327-1330, 1361-1377, 1417-1420",
)
TENSORS = claim(
    "fc, output_norm, the norms and matrices of every block, and with norm_before_fc"
    " enc.output_norm are needed; output, token_embd, d2t and rope_freqs are not; there is no"
    " fc_norm, no bias and no norm of queries and keys",
    _EAGLE3,
    "44-100",
)
SHAPES = claim(
    "a tensor of another shape than the keys give raises, and so does a missing one",
    "src/llama-model-loader.cpp",
    "880-920",
)
SURPLUS = claim(
    "a file with a tensor that no parameter asks for raises: wrong number of tensors",
    "src/llama-model-loader.cpp",
    "1392-1400",
)
ONE_LAYER = claim(
    "the graph has one decoder layer, keys and values of one width, and asserts it",
    _EAGLE3,
    "155-156",
)
ROTATED = claim(
    "RoPE turns an even number of channels, no more than a head has: another aborts",
    "ggml/src/ggml-cpu/ops.cpp",
    "6355-6356",
)
FACTORS = claim(
    "RoPE's factors are float32, which is asserted when the loader tries where they can be kept",
    "ggml/src/ggml.c",
    "4303-4306",
)
EPSILON = claim("an RMSNorm's epsilon below 0 aborts", "ggml/src/ggml-cpu/ops.cpp", "4132")
VECTORS = claim(
    "states are float32, and are multiplied with a norm's gains in float32 alone: another type"
    " aborts",
    "ggml/src/ggml-cpu/binary-ops.cpp",
    "120-137",
)
PRODUCTS = claim(
    "a matrix of integers or of float64 has no dot product, and calling it ends the process",
    "ggml/src/ggml-cpu/ggml-cpu.c",
    "1278-1280",
)
STATES = claim(
    "the states that are handed back are read embedding_length_out wide, and a read beyond them"
    " aborts",
    "src/llama-context.cpp",
    "1621-1629",
)
IDS = claim(
    "a token of the target that the tokenizer in the file has no id for aborts",
    "common/common.cpp",
    "2158",
)
ALIGNMENT = claim(
    "the mapped tensors must begin at a multiple of 32 bytes, or it aborts",
    "ggml/src/ggml-backend.cpp",
    "2527",
)
ROWS = claim(
    "an embedding's rows are read in float32, float16, bfloat16 or a quantised type, and an id"
    " beyond them aborts",
    "ggml/src/ggml-cpu/ops.cpp",
    "5281, 5363, 5378-5423",
)
RESIDUAL = claim(
    "norm_before_residual decides whether the residual is taken after hidden_norm",
    _EAGLE3,
    "213-217",
)
FEEDBACK = claim(
    "the next step is fed the decoder's output before the final norm; norm_output is not read",
    _EAGLE3,
    "284-293",
)
MAP = claim(
    "d2t holds absolute target ids as int64 and gives the head its rows; without it the head has"
    " a row for every token",
    _EAGLE3,
    "44-55, 307-320",
)
MAP_IDS = claim(
    "d2t's numbers are the rows of the logits, as many as the tokenizer has tokens: another aborts",
    "ggml/src/ggml-cpu/ops.cpp",
    "5488",
)
EMBEDDING = claim(
    "without token_embd the target's embedding is used, whatever its width",
    _EAGLE3,
    "162-172",
)
HEAD = claim(
    "without output the target's head is used, and a d2t of another length than its rows aborts",
    _EAGLE3,
    "295-313",
)
LAYER_IDS = claim(
    "target_layers are boundaries, in the order of the list: the input of a layer, or after the"
    " last one its output; an id beyond aborts",
    _SPECULATIVE,
    "540-549, 620-640",
)
WIDTH = claim(
    "the three states are as wide as the target, and a row of another width than three times"
    " target_hidden_size aborts",
    "src/llama-batch.cpp",
    "1120-1130",
)
LAYER_INPUTS = claim(
    "a target whose graph keeps no input of its layers aborts: layer input tensor is null",
    "src/llama-graph.cpp",
    "1380-1387",
)
ROPE = claim(
    "rope pairs neighbouring values, so that q and k are stored permuted; without"
    " rope.freq_base its base is 10000",
    "src/llama-model.cpp",
    "1413-1415, 3087",
)
SPEC_TYPE = claim(
    "an eagle3 drafter runs under --spec-type draft-eagle3: a greedy chain from the ten best"
    " tokens, no tree",
    _SPECULATIVE,
    "36, 515-522",
)

"""What eyas says of SGLang's other Llama classes, each with the line that it rests on."""

from __future__ import annotations

from eyas.engines.sglang.claim import claim

LLAMA_CLASS = claim(
    "architectures LlamaForCausalLM is an ordinary Llama model, for a drafter too: its parameters"
    " are an embedding, its layers, a norm and a head of vocab_size rows",
    "sglang/srt/models/llama.py",
    "434-463, 570-579",
)
EAGLE_CLASS = claim(
    "LlamaForCausalLMEagle is the class of EAGLE-1 and EAGLE-2: fc takes the embedding and one"
    " state, model. is put before every name, and a head is never loaded",
    "sglang/srt/models/llama_eagle.py",
    "91, 106-108, 146-150",
)
LLAMA_SKIP = claim(
    "a tensor whose name is no parameter is skipped with a warning, and nothing checks that every"
    " parameter was filled",
    "sglang/srt/models/llama.py",
    "752-779",
)
UNKNOWN_PART = claim(
    "q, k, v, gate or up of a layer that is not there raises KeyError; from 0.4.9.post2 on it is"
    " skipped with a warning",
    "sglang/srt/models/llama.py",
    "572-580",
    "0.4.9",
)
NO_MAP_ATTRIBUTE = claim(
    "after sharing the embedding EAGLE3 reads the drafter's hot_token_id, which only the EAGLE-3"
    " classes have: AttributeError",
    "sglang/srt/speculative/eagle_worker_v2.py",
    "365-369",
)

"""A tiny target with its tokenizer, drafters for it, and the logits of their first draft steps."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import torch
from tests.convert.drafter_on_disk import (
    VOCAB,
    eagle3_spec,
    kept_ids,
    maps_of,
    shapes_of,
    trained_numbers,
    write,
)
from torch import Tensor

from eyas import engines
from eyas.checkpoint import Checkpoint, open_target
from eyas.decode.conditioning import boundaries_read, conditioned
from eyas.engines import EngineRef, Launch
from eyas.model.drafter import Drafter
from eyas.model.load import load_target
from eyas.model.served import Fill, served_drafter
from eyas.spec import Served

WIDTH, LAYERS, STEPS = 12, 10, 3
ENGINES = (
    "sglang@0.4.9",
    "sglang@0.5.8",
    "sglang@0.5.10.post1",
    "sglang@0.5.23",
    "vllm@0.32.0:v1",
    "vllm@0.32.0:v2",
    "vllm@0.33.0:v1",
    "vllm@0.33.0:v2",
    "llamacpp@11549",
)
PLAIN: dict[str, Any] = {
    "states": "default",
    "norm before fc": "none",
    "bias of fc": False,
    "attention": "plain",
    "layers": "one",
    "width": "same",
    "normed residual": False,
    "normed feedback": False,
    "vocabulary": "reduced",
    "owners": ("target", "own"),
    "rope": "default",
    "activation": "silu",
    "positions": 512,
}


@dataclass(frozen=True, kw_only=True)
class Case:
    """A drafter as `source` has it: what of it is not plain, and the order of its map."""

    source: str
    facts: Mapping[str, Any]
    order: str = "sorted"


class Scene:
    """The target in `directory`, and the ids that it is given."""

    def __init__(self, directory: Path) -> None:
        self.facts = open_target(str(directory))
        self.target = load_target(directory)
        random = torch.Generator().manual_seed(5)
        self.ids_BT = torch.randint(0, VOCAB, (2, 9), generator=random)

    def drafter(self, path: Path, case: Case) -> Checkpoint:
        """The drafter of `case`, the same at every call."""
        random = Random(f"{case}")
        facts = PLAIN | dict(case.facts)
        spec = eagle3_spec(facts, random, WIDTH)
        numbers = trained_numbers(shapes_of(spec, facts["attention"]), random.randrange(2**32))
        absolute = case.order.startswith("absolute") and case.source != "gguf"
        maps = maps_of(kept_ids(spec, case.order, random), absolute=absolute)
        return write(path, case.source, spec, numbers | maps, self.facts)

    def served(self, engine: str, checkpoint: Checkpoint) -> Served:
        """What `engine` makes of `checkpoint`."""
        ref = EngineRef.parse(engine)
        found = engines.read(ref, checkpoint, target=self.facts, launch=Launch())
        assert isinstance(found, Served), found
        return found

    def as_served(self, engine: str, checkpoint: Checkpoint) -> Drafter:
        """The drafter that `engine` runs."""
        served = self.served(engine, checkpoint)
        return served_drafter(served, checkpoint, self.target, fill=Fill.NORMAL)

    @torch.inference_mode()
    def logits(self, drafter: Drafter) -> Tensor:
        """Logits by the target's ids, [steps, B, V], of the first draft steps after `ids_BT`.

        Where nothing is drafted they are -inf. The first step is over all ids, the later ones from
        the drafter's own feedback.
        """
        target, ids_BT = self.target, self.ids_BT
        batch = len(ids_BT)
        reading = target.forward(
            ids_BT, target.new_cache(batch, 32), boundaries_read(drafter, target)
        )
        hidden, tokens = conditioned(drafter, target, reading), ids_BT.roll(-1, dims=1)
        cache, found = drafter.new_cache(batch, 32), []
        for _ in range(STEPS):
            output = drafter.step(tokens, hidden, cache)[:, -1:]
            drafted = drafter.logits(output)[:, 0]
            ids = drafter.target_ids(torch.arange(drafted.shape[-1]))
            full = torch.full((batch, VOCAB), -torch.inf).index_copy_(1, ids, drafted)
            found.append(full)
            hidden, tokens = drafter.feedback(output), full.argmax(dim=-1, keepdim=True)
        return torch.stack(found)


def difference(one: Tensor, other: Tensor) -> float:
    """How far two logits lie apart at most; infinity where other ids are drafted."""
    if not torch.equal(one.isinf(), other.isinf()):
        return torch.inf
    there = one.isfinite()
    return float((one[there] - other[there]).abs().max())


def save_target(directory: Path, *, tied: bool) -> Path:
    """A Llama of random weights as transformers writes it, with a tokenizer.json."""
    from transformers import LlamaConfig, LlamaForCausalLM
    from transformers.utils import logging

    logging.disable_progress_bar()
    torch.manual_seed(0)
    config = LlamaConfig(
        hidden_size=WIDTH,
        intermediate_size=20,
        num_hidden_layers=LAYERS,
        num_attention_heads=3,
        num_key_value_heads=1,
        head_dim=4,
        vocab_size=VOCAB,
        max_position_embeddings=512,
        rms_norm_eps=1e-5,
        rope_parameters={"rope_type": "default", "rope_theta": 10000.0},
        initializer_range=0.2,
        tie_word_embeddings=tied,
        eos_token_id=1,
    )
    LlamaForCausalLM(config).save_pretrained(directory)
    save_tokenizer(directory)
    return directory


def save_tokenizer(directory: Path) -> None:
    """A byte-level BPE with fewer tokens than the target has ids."""
    vocabulary = {text: i for i, text in enumerate(["a", "b", "ab"])}
    tokenizer = {
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [["a", "b"]]},
        "pre_tokenizer": {"type": "ByteLevel", "use_regex": True},
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))

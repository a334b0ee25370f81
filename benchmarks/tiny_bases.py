"""Tiny targets of other forms than Llama's, each with a drafter trained by eyas on its answers.

    python -m benchmarks.tiny_bases        # makes what is not there, in eyas's cache

Qwen3 has norms of queries and keys, DeepSeek-V3 latent attention. They learn a language of 300
words (`benchmarks/tiny_language.py`) in minutes of one core. Their drafters read boundaries that
are not the default ones.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from benchmarks.tiny_language import (
    SLOTS,
    VOCABULARY,
    texts,
    write_prompts_file,
    write_tokenizer,
)

from eyas.checkpoint import cache_dir
from eyas.data.conversation import Conversation, write_shard
from eyas.data.states import StateStore, capture_directory
from eyas.model.drafter import Drafter
from eyas.model.load import load_target
from eyas.model.target import Target, TargetSizes
from eyas.spec import Fused, declared
from eyas.train.batches import channel_rms
from eyas.train.export import export_drafter
from eyas.train.fresh import CHOSEN, fresh_drafter
from eyas.train.loop import train
from eyas.train.settings import TrainSettings
from eyas.train.vocabulary import DraftVocabulary, count_tokens, draft_vocabulary

LAYERS = 8
BOUNDARIES = (2, 3, 6)  # the default of eight layers is 2, 4, 5; one more or less is one too
HIDDEN = 64
HEADS, KV_HEADS, HEAD_DIM = 4, 2, 16
THETA = 10000.0
LENGTH = 72
PROMPT = 1 + 2 * SLOTS + 3
DRAFTED = 144  # less than half of all, so that doubled ids are still ids
NAMES = ("qwen3", "deepseek")
_SHARED: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": HIDDEN,
    "intermediate_size": 2 * HIDDEN,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": HEADS,
    "max_position_embeddings": 512,
    "rope_parameters": {"rope_type": "default", "rope_theta": THETA},
    "tie_word_embeddings": False,
    "eos_token_id": 0,
    "bos_token_id": None,
    "pad_token_id": None,
}


def made(name: str) -> Path:
    """The folder of one base, made if it is not there: target, drafter, prompts.jsonl."""
    folder = cache_dir() / "tiny-bases" / name
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        stage = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=folder.parent))
        _make(name, stage)
        stage.rename(folder)
    return folder


def _make(name: str, folder: Path) -> None:
    torch.manual_seed(0)
    _train_target(name, folder / "target")
    write_tokenizer(folder / "target")
    write_prompts_file(folder / "prompts.jsonl", texts(24, PROMPT, seed=3))
    target = load_target(folder / "target")
    _answer(folder, count=800)
    _train_drafter(name, target, folder)
    for made_on_the_way in ("answers", "states", "run.pt"):
        path = folder / made_on_the_way
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)


def _model(name: str) -> Any:
    from transformers import (
        DeepseekV3Config,
        DeepseekV3ForCausalLM,
        Qwen3Config,
        Qwen3ForCausalLM,
    )

    if name == "qwen3":
        config = Qwen3Config(**_SHARED, num_key_value_heads=KV_HEADS, head_dim=HEAD_DIM)
        return Qwen3ForCausalLM(config)
    latent = {"q_lora_rank": 32, "kv_lora_rank": 24, "qk_nope_head_dim": 16}
    rest = {"qk_rope_head_dim": 16, "v_head_dim": 24, "first_k_dense_replace": LAYERS}
    dense = {"num_key_value_heads": HEADS, "n_routed_experts": 4, "moe_intermediate_size": 8}
    return DeepseekV3ForCausalLM(DeepseekV3Config(**_SHARED, **latent, **rest, **dense))


def _train_target(name: str, directory: Path, updates: int = 300, batch: int = 24) -> None:
    model = _model(name).train()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, total_steps=updates)
    began = time.perf_counter()
    for update in range(updates):
        ids_BT = torch.from_numpy(texts(batch, LENGTH, seed=1_000 + update))
        loss = model(input_ids=ids_BT, labels=ids_BT, use_cache=False).loss
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad()
        schedule.step()
        if update % 100 == 99:
            seconds = time.perf_counter() - began
            print(
                f"{name} target {update + 1}: loss {loss.item():.3f}, {seconds:.0f} s", flush=True
            )
    model.eval().save_pretrained(directory)


@torch.inference_mode()
def _answer(folder: Path, count: int, length: int = 48, batch: int = 200) -> None:
    """The target's greedy continuations of `count` beginnings, as a shard of answers."""
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder / "target", dtype=torch.float32).eval()
    prompts = torch.from_numpy(texts(count, PROMPT, seed=2))
    rows: list[list[int]] = []
    for part in prompts.split(batch):
        rows += model.generate(
            part, attention_mask=torch.ones_like(part), max_new_tokens=length, do_sample=False
        ).tolist()
    answers = folder / "answers"
    answers.mkdir()
    write_shard(
        answers / "answers-00000.jsonl",
        (
            Conversation(
                id=f"text-{number}",
                category="text",
                ids=tuple(row),
                prompt_length=PROMPT,
                temperature=0.0,
            )
            for number, row in enumerate(rows)
        ),
    )


def _train_drafter(name: str, target: Target, folder: Path) -> None:
    if target.sizes is None:  # a target that transformers computes states none
        target.sizes = TargetSizes(
            heads=HEADS,
            kv_heads=KV_HEADS,
            head_dim=HEAD_DIM,
            intermediate=2 * HIDDEN,
            rms_eps=1e-6,
            rope_theta=THETA,
            max_positions=512,
        )
    capture_directory(target, BOUNDARIES, folder / "answers", folder / "states", lambda *_: None)
    store = StateStore([folder / "states"])
    vocabulary = _vocabulary(folder)
    rms_C = channel_rms(store, range(256))
    drafter = _over(
        BOUNDARIES, fresh_drafter(target, vocabulary, captured_rms_C=rms_C, seed=0), target
    )
    settings = TrainSettings(
        passes=10,
        repeats=(),
        batch_tokens=2048,
        max_length=LENGTH,
        unroll_steps=3,
        step_decay=0.8,
        learning_rate=3e-3,
        warmup_steps=20,
        weight_decay=0.01,
        gradient_clip=1.0,
        prompt_weight=0.0,
        prompt_reach=0,
        seed=0,
        bf16=False,
        workers=1,
        held_out_every=20,
        checkpoint_every=10_000,
    )
    score = train(
        drafter,
        target.head_VH,
        vocabulary.ids_V,
        store,
        settings,
        folder / "run.pt",
        lambda progress: None,
    )
    print(f"{name} drafter: {score}, expected tau {score.expected_tau:.2f}", flush=True)
    export_drafter(
        drafter,
        vocabulary,
        folder / "drafter",
        target_name=f"tiny/{name}",
        target_architecture=target.facts.architecture,
        speculative_tokens=3,
        extra_files={},
    )


def _over(boundaries: tuple[int, ...], fresh: Drafter, target: Target) -> Drafter:
    """The same fresh drafter, reading other states."""
    conditioning = fresh.spec.conditioning
    assert isinstance(conditioning, Fused)
    read = replace(conditioning, boundaries=declared(boundaries, CHOSEN))
    spec = replace(fresh.spec, conditioning=read)
    other = Drafter(spec, embedding=target.embedding_VH, head=target.head_VH)
    other.load_state_dict(fresh.state_dict())
    return other


def _vocabulary(folder: Path) -> DraftVocabulary:
    from eyas.data.conversation import read_conversations

    counts = count_tokens(read_conversations(folder / "answers"), 0.2)
    return draft_vocabulary(counts, size=DRAFTED, vocab_size=VOCABULARY, always=(0,))


def counts() -> dict[int, float]:
    """How often each id is written, by the language itself."""
    ids, often = np.unique(texts(400, LENGTH, seed=4), return_counts=True)
    return dict(zip(ids.tolist(), often.astype(float).tolist(), strict=True))


def main() -> None:
    """Make every base."""
    for name in NAMES:
        began = time.perf_counter()
        print(made(name), f"{time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    main()

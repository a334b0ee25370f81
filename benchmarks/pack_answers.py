"""Keep the target's answers without the prompts, which are made of sets that are not ours to keep.

    python benchmarks/pack_answers.py pack OUT.safetensors ANSWERS_DIR…
    python benchmarks/pack_answers.py unpack PACKED.safetensors PROMPTS.jsonl ANSWERS_DIR

Generating answers costs hours of two cores, so what a run has made is kept for the next one. The
prompts are those that benchmarks/training_prompts.py and benchmarks/own_prompts.py write with the
same seeds; `unpack` compares a digest of each one's token ids, and leaves out what it cannot find.
"""

from __future__ import annotations

import argparse
import json
from hashlib import blake2b
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from eyas.data.answers import chat_ids
from eyas.data.conversation import Conversation, read_conversations, write_shard
from eyas.data.prompts import read_prompts
from eyas.model.load import load_tokenizer

PER_SHARD = 128


def main() -> None:
    """Pack or unpack."""
    options = _options()
    if options.what == "pack":
        pack(options.packed, options.answers)
    else:
        unpack(options.packed, options.prompts, options.answers, options.target)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    what = parser.add_subparsers(dest="what", required=True)
    packing = what.add_parser("pack")
    packing.add_argument("packed", type=Path)
    packing.add_argument("answers", type=Path, nargs="+")
    unpacking = what.add_parser("unpack")
    unpacking.add_argument("packed", type=Path)
    unpacking.add_argument("prompts", type=Path)
    unpacking.add_argument("answers", type=Path)
    unpacking.add_argument("--target", default="smollm2")
    return parser.parse_args()


def pack(packed: Path, answers: list[Path]) -> None:
    """Write every conversation of `answers`: its id, category, temperature and answer."""
    held = [c for directory in answers for c in read_conversations(directory)]
    tokens = [token for c in held for token in c.answer_ids]
    if max(tokens) >= 2**16:
        raise SystemExit("ids of 65,536 and more do not fit the 16 bits that are kept of each")
    about = [
        {
            "id": c.id,
            "category": c.category,
            "temperature": c.temperature,
            "prompt": _digest(c.ids[: c.prompt_length]),
        }
        for c in held
    ]
    tensors = {
        "answers": torch.tensor(tokens, dtype=torch.int32).to(torch.uint16),
        "lengths": torch.tensor([len(c.answer_ids) for c in held], dtype=torch.int32),
    }
    unfinished = packed.with_suffix(".unfinished")
    save_file(tensors, unfinished, metadata={"conversations": json.dumps(about)})
    unfinished.replace(packed)
    print(f"{len(held)} answers of {len(tokens)} tokens")


def unpack(packed: Path, prompts: Path, answers: Path, target: str) -> None:
    """Write the answers to `prompts` as shards that the `states` stage reads."""
    with safe_open(packed, framework="pt") as file:
        about = json.loads(file.metadata()["conversations"])
        tokens = file.get_tensor("answers").to(torch.int32).tolist()
        lengths = file.get_tensor("lengths").tolist()
    tokenizer = load_tokenizer(target)
    asked: dict[tuple[str, str], tuple[int, ...]] = {}
    for prompt in read_prompts(prompts):
        ids = tuple(chat_ids(tokenizer, prompt))
        asked[prompt.id, _digest(ids)] = ids
    found, begin = [], 0
    for record, length in zip(about, lengths, strict=True):
        answer, begin = tokens[begin : begin + length], begin + length
        ids = asked.get((record["id"], record["prompt"]))
        if ids is None:
            continue
        found.append(
            Conversation(
                id=record["id"],
                category=record["category"],
                ids=(*ids, *answer),
                prompt_length=len(ids),
                temperature=record["temperature"],
            )
        )
    answers.mkdir(parents=True)
    for number, first in enumerate(range(0, len(found), PER_SHARD)):
        shard = answers / f"answers-{number:05d}.jsonl"
        write_shard(shard, found[first : first + PER_SHARD])
    print(f"{len(found)} of {len(about)} answers are to these prompts")


def _digest(ids: tuple[int, ...]) -> str:
    return blake2b(repr(ids).encode(), digest_size=6).hexdigest()


if __name__ == "__main__":
    main()

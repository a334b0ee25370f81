"""How long `eyas check` takes beside a target of Kimi-K2.5's size.

    python benchmarks/kimi_target.py build DIR
    python benchmarks/kimi_target.py measure DIR [--runs 7]

`build` writes DIR/target with the headers of moonshotai/Kimi-K2.5 (64 shards, 208,550 tensors,
595,148,192,736 bytes, of which 52 MB are on the disk: weights are holes) and DIR/drafter, a drafter
of its shape. `measure` runs the commands under /usr/bin/time -v and prints medians; processor time
is the number to trust where other work runs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from eyas.checkpoint.header import tensor_nbytes
from eyas.checkpoint.layout import lay_out
from eyas.demo.kimi import write_kimi_drafter

# Published figures of moonshotai/Kimi-K2.5; the names and shapes below add up to them exactly.
TENSORS = 208_550
BYTES = 595_148_192_736
SHARDS = 64

HIDDEN = 7168
LAYERS = 61
DENSE_LAYERS = 1
VOCAB = 163840
HEADS = 64
Q_RANK, KV_RANK = 1536, 512
NOPE, ROPE, VALUE = 128, 64, 128
EXPERTS = 384
DENSE, EXPERT = 18432, 2048  # widths of the feed-forward layers
GROUP = 32  # weights that share a scale
PER_WORD = 8  # weights of 4 bits in an int32
VISION, VISION_LAYERS, VISION_INNER, PATCH, GRID, MERGED = 1152, 27, 4304, 14, 64, 4

CONFIG = {
    "architectures": ["KimiK25ForConditionalGeneration"],
    "model_type": "kimi_k25",
    "dtype": "bfloat16",
    "text_config": {
        "architectures": ["DeepseekV3ForCausalLM"],
        "model_type": "kimi_k2",
        "hidden_size": HIDDEN,
        "intermediate_size": DENSE,
        "moe_intermediate_size": EXPERT,
        "num_hidden_layers": LAYERS,
        "first_k_dense_replace": DENSE_LAYERS,
        "n_routed_experts": EXPERTS,
        "n_shared_experts": 1,
        "num_experts_per_tok": 8,
        "num_attention_heads": HEADS,
        "num_key_value_heads": HEADS,
        "q_lora_rank": Q_RANK,
        "kv_lora_rank": KV_RANK,
        "qk_nope_head_dim": NOPE,
        "qk_rope_head_dim": ROPE,
        "v_head_dim": VALUE,
        "vocab_size": VOCAB,
        "max_position_embeddings": 262144,
        "rope_theta": 50000.0,
        "tie_word_embeddings": False,
        "quantization_config": {
            "quant_method": "compressed-tensors",
            "format": "pack-quantized",
            "config_groups": {
                "group_0": {"targets": ["Linear"], "weights": {"num_bits": 4, "group_size": GROUP}}
            },
        },
    },
    "vision_config": {
        "model_type": "kimi_k25_vision",
        "vt_hidden_size": VISION,
        "vt_num_hidden_layers": VISION_LAYERS,
        "vt_intermediate_size": VISION_INNER,
        "patch_size": PATCH,
    },
}

Headers = dict[str, tuple[str, tuple[int, ...]]]


def shards() -> Iterator[Headers]:
    """The tensors (name → dtype, shape) of each of the 64 files: layers, the rest, vision."""
    for layer in range(LAYERS):
        yield dict(_layer(layer))
    yield {
        "language_model.lm_head.weight": ("BF16", (VOCAB, HIDDEN)),
        "language_model.model.embed_tokens.weight": ("BF16", (VOCAB, HIDDEN)),
        "language_model.model.norm.weight": ("BF16", (HIDDEN,)),
    }
    wide = MERGED * VISION
    yield {
        **_affine("mm_projector.pre_norm", (VISION,)),
        **_affine("mm_projector.proj.0", (wide, wide)),
        **_affine("mm_projector.proj.2", (HIDDEN, wide)),
    }
    yield dict(_vision())


def _layer(layer: int) -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    at = f"language_model.model.layers.{layer}."
    matrices = {
        "input_layernorm": (HIDDEN,),
        "post_attention_layernorm": (HIDDEN,),
        "self_attn.q_a_proj": (Q_RANK, HIDDEN),
        "self_attn.q_a_layernorm": (Q_RANK,),
        "self_attn.q_b_proj": (HEADS * (NOPE + ROPE), Q_RANK),
        "self_attn.kv_a_proj_with_mqa": (KV_RANK + ROPE, HIDDEN),
        "self_attn.kv_a_layernorm": (KV_RANK,),
        "self_attn.kv_b_proj": (HEADS * (NOPE + VALUE), KV_RANK),
        "self_attn.o_proj": (HIDDEN, HEADS * VALUE),
    }
    if layer < DENSE_LAYERS:
        matrices |= {f"mlp.{name}": shape for name, shape in _feed_forward(DENSE).items()}
    else:
        shared = _feed_forward(EXPERT)
        matrices |= {f"mlp.shared_experts.{name}": shape for name, shape in shared.items()}
        matrices["mlp.gate"] = (EXPERTS, HIDDEN)
        yield at + "mlp.gate.e_score_correction_bias", ("F32", (EXPERTS,))
        for expert in range(EXPERTS):
            for name, (rows, columns) in _feed_forward(EXPERT).items():
                packed = f"{at}mlp.experts.{expert}.{name}.weight_"
                yield packed + "packed", ("I32", (rows, columns // PER_WORD))
                yield packed + "scale", ("BF16", (rows, columns // GROUP))
                yield packed + "shape", ("I32", (2,))
    for name, shape in matrices.items():
        yield f"{at}{name}.weight", ("BF16", shape)


def _feed_forward(width: int) -> dict[str, tuple[int, int]]:
    return {
        "gate_proj": (width, HIDDEN),
        "up_proj": (width, HIDDEN),
        "down_proj": (HIDDEN, width),
    }


def _vision() -> Iterator[tuple[str, tuple[str, tuple[int, ...]]]]:
    shapes: Mapping[str, tuple[int, ...]] = {
        "norm0": (VISION,),
        "norm1": (VISION,),
        "wqkv": (3 * VISION, VISION),
        "wo": (VISION, VISION),
        "mlp.fc0": (VISION_INNER, VISION),
        "mlp.fc1": (VISION, VISION_INNER),
    }
    for block in range(VISION_LAYERS):
        for name, shape in shapes.items():
            yield from _affine(f"vision_tower.encoder.blocks.{block}.{name}", shape).items()
    yield from _affine("vision_tower.encoder.final_layernorm", (VISION,)).items()
    yield from _affine("vision_tower.patch_embed.proj", (VISION, 3, PATCH, PATCH)).items()
    yield "vision_tower.patch_embed.pos_emb.weight", ("BF16", (GRID, GRID, VISION))


def _affine(name: str, shape: tuple[int, ...]) -> Headers:
    return {f"{name}.weight": ("BF16", shape), f"{name}.bias": ("BF16", shape[:1])}


def build(directory: Path) -> None:
    """Write the target and its drafter as new directories."""
    target = directory / "target"
    target.mkdir(parents=True)
    (target / "config.json").write_text(json.dumps(CONFIG, indent=2) + "\n")
    weight_map: dict[str, str] = {}
    total = 0
    for number, headers in enumerate(shards(), start=1):
        file = f"model-{number:05d}-of-{SHARDS:06d}.safetensors"
        prefix, ranges = lay_out(headers)
        with (target / file).open("wb") as opened:
            opened.write(prefix)
            opened.truncate(max(stop for _, stop in ranges.values()))
        weight_map |= dict.fromkeys(headers, file)
        total += sum(tensor_nbytes(*header) for header in headers.values())
    if (len(weight_map), total) != (TENSORS, BYTES):
        sys.exit(f"{len(weight_map)} tensors of {total} bytes, not {TENSORS} of {BYTES}")
    index = {"metadata": {"total_size": total}, "weight_map": weight_map}
    (target / "model.safetensors.index.json").write_text(json.dumps(index, indent=2) + "\n")
    write_kimi_drafter(directory / "drafter")
    print(f"{target}: {len(weight_map):,} tensors, {total:,} bytes in {SHARDS} files")


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one run took, as /usr/bin/time -v says."""

    wall_s: float
    processor_s: float
    peak_mb: float


def measure(directory: Path, runs: int) -> None:
    """Run each command `runs` times and print the medians."""
    drafter, target = str(directory / "drafter"), str(directory / "target")
    engines = ["--engine", "sglang@0.5.23,vllm@0.33.0"]
    eyas = [sys.executable, "-c", "from eyas.cli import main; raise SystemExit(main())"]
    commands = {
        "check DRAFT --target KIMI": [*eyas, "check", drafter, "--target", target, *engines],
        "check DRAFT": [*eyas, "check", drafter, *engines],
        "inspect DRAFT": [*eyas, "inspect", drafter],
        "eyas --version": [*eyas, "--version"],
        "python -c pass": [sys.executable, "-c", "pass"],
    }
    print(f"{'median of ' + str(runs):60} wall s  user+sys s  peak MB")
    for name, command in commands.items():
        _cost(command)  # Python compiles its modules once
        costs = [_cost(command) for _ in range(runs)]
        wall, processor, peak = (
            statistics.median(getattr(cost, field) for cost in costs)
            for field in ("wall_s", "processor_s", "peak_mb")
        )
        print(f"{name:60} {wall:6.2f}  {processor:10.2f}  {peak:7.0f}")


def _cost(command: Sequence[str]) -> Cost:
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    timed = ["/usr/bin/time", "-v", *command]
    done = subprocess.run(timed, capture_output=True, text=True, check=False, env=environment)
    if done.returncode not in (0, 1, 2) or "Traceback" in done.stderr:
        sys.exit(done.stderr)

    def value(label: str) -> str:
        match = re.search(re.escape(label) + r".*: (\S+)$", done.stderr, re.MULTILINE)
        if match is None:
            sys.exit(f"/usr/bin/time does not say {label!r}: {done.stderr}")
        return match[1]

    minutes, seconds = value("Elapsed (wall clock)").split(":")[-2:]
    return Cost(
        wall_s=60 * int(minutes) + float(seconds),
        processor_s=float(value("User time")) + float(value("System time")),
        peak_mb=int(value("Maximum resident set size")) / 1024,
    )


def main() -> None:
    """Build or measure."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("stage", choices=["build", "measure"])
    parser.add_argument("directory", type=Path)
    parser.add_argument("--runs", type=int, default=7)
    arguments = parser.parse_args()
    if arguments.stage == "build":
        build(arguments.directory)
    else:
        measure(arguments.directory, arguments.runs)


if __name__ == "__main__":
    main()

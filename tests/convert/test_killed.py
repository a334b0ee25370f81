"""kill -9 at any moment of a conversion: its result is whole or absent."""

from __future__ import annotations

import math
import random
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic

from eyas import dialects
from eyas.checkpoint import Checkpoint, TensorBytes, open_checkpoint, write_checkpoint
from eyas.checks import check
from eyas.engines import EngineRef, Launch

ENGINE = "sglang@0.5.10.post1"
ROUNDS, KILLS = 4, 5
HIDDEN, INNER, VOCAB, DRAFTED = 2048, 8192, 32000, 16000
SHAPES = {
    "fc.weight": (HIDDEN, 3 * HIDDEN),
    "norm.weight": (HIDDEN,),
    "lm_head.weight": (DRAFTED, HIDDEN),
    "layers.0.hidden_norm.weight": (HIDDEN,),
    "layers.0.input_layernorm.weight": (HIDDEN,),
    "layers.0.post_attention_layernorm.weight": (HIDDEN,),
    "layers.0.self_attn.q_proj.weight": (HIDDEN, 2 * HIDDEN),
    "layers.0.self_attn.k_proj.weight": (HIDDEN // 4, 2 * HIDDEN),
    "layers.0.self_attn.v_proj.weight": (HIDDEN // 4, 2 * HIDDEN),
    "layers.0.self_attn.o_proj.weight": (HIDDEN, HIDDEN),
    "layers.0.mlp.gate_proj.weight": (INNER, HIDDEN),
    "layers.0.mlp.up_proj.weight": (INNER, HIDDEN),
    "layers.0.mlp.down_proj.weight": (HIDDEN, INNER),
}
CONFIG = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": INNER,
    "num_hidden_layers": 1,
    "num_attention_heads": 16,
    "num_key_value_heads": 4,
    "head_dim": 128,
    "hidden_act": "silu",
    "vocab_size": VOCAB,
    "draft_vocab_size": DRAFTED,
    "rms_norm_eps": 1e-5,
    "rope_theta": 10000.0,
    "max_position_embeddings": 512,
    "norm_before_residual": False,
    "attention_bias": False,
    "tie_word_embeddings": False,
}


def write_drafter(directory: Path, generator: random.Random) -> Checkpoint:
    """A drafter of 220 MB of random bytes, under names that the engine loses."""
    tensors = {
        name: TensorBytes(dtype="BF16", shape=shape, data=generator.randbytes(2 * math.prod(shape)))
        for name, shape in SHAPES.items()
    }
    offsets = b"".join(i.to_bytes(8, "little") for i in range(DRAFTED))  # draft i is target 2i
    tensors["d2t"] = TensorBytes(dtype="I64", shape=(DRAFTED,), data=offsets)
    tensors["t2d"] = TensorBytes(dtype="BOOL", shape=(VOCAB,), data=b"\x01\x00" * DRAFTED)
    return open_checkpoint(write_checkpoint(directory, CONFIG, tensors))


def by_role(checkpoint: Checkpoint) -> dict[str, str]:
    return {role: name for name, role in dialects.recognise(checkpoint).roles(checkpoint).items()}


def require_whole(out: Path, source: Checkpoint) -> None:
    written = open_checkpoint(out)
    report = check(written, [EngineRef.parse(ENGINE)], launch=Launch())
    assert [engine.outcome.value for engine in report.engines] == ["pass"]
    before, after = by_role(source), by_role(written)
    assert before.keys() == after.keys()
    for role, name in before.items():
        assert source.read_bytes(name) == written.read_bytes(after[role]), role


def start(source: Checkpoint, out: Path) -> subprocess.Popen[bytes]:
    run = "from eyas.cli import main; raise SystemExit(main())"
    command = [sys.executable, "-c", run, "convert", source.location, str(out), "--to", ENGINE]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)


def whole_run(source: Checkpoint, out: Path) -> float:
    """How many seconds a conversion takes that nobody stops; it leaves `out` and nothing else."""
    begin = monotonic()
    process = start(source, out)
    _, told = process.communicate()
    seconds = monotonic() - begin
    assert process.returncode == 0, told
    assert [path.name for path in out.parent.iterdir()] == ["out"]
    require_whole(out, source)
    return seconds


def test_what_kill_9_leaves_is_whole_or_absent(
    tmp_path: Path, measured: Callable[[str], None]
) -> None:
    generator = random.Random(20)
    source = write_drafter(tmp_path / "source", generator)
    place = tmp_path / "place"
    out = place / "out"
    place.mkdir()
    whole_run(source, out)  # Python compiles its modules once
    shutil.rmtree(out)
    # One moment in each twentieth of the run, in any order.
    moments = [(i + generator.random()) / (ROUNDS * KILLS) for i in range(ROUNDS * KILLS)]
    generator.shuffle(moments)
    hit = left = whole = 0

    for _ in range(ROUNDS):
        # How long it takes is asked again, for the machine may have other work; and the run removes
        # the siblings that were left before it.
        seconds = whole_run(source, out)
        shutil.rmtree(out)
        siblings = set()
        for _ in range(KILLS):
            process = start(source, out)
            with suppress(subprocess.TimeoutExpired):
                process.wait(moments.pop() * seconds)
            process.kill()
            process.communicate()
            hit += process.returncode == -signal.SIGKILL
            sibling = f".eyas-out.{process.pid}.partial"
            siblings.add(sibling)
            names = {path.name for path in place.iterdir()}
            assert names <= {"out", *siblings}
            if "out" in names:
                assert sibling not in names
                require_whole(out, source)
                shutil.rmtree(out)
                whole += 1
            left += sibling in names
    whole_run(source, out)

    measured(f"{hit} of 20 kills hit, {left} left a sibling, {whole} came after the rename")
    assert moments == []
    assert hit >= 15
    assert left >= 3

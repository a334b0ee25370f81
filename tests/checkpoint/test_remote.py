"""A drafter on the Hub: what is asked of it, and how many bytes come."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tests.checkpoint.hub_server import COMMIT, Hub
from tests.checkpoint.torch_archive import PICKLE

from eyas.checkpoint import open_checkpoint, open_target, write_sparse
from eyas.checkpoint.layout import lay_out
from eyas.cli.program import main
from eyas.errors import CheckpointError

CONFIG = {
    "architectures": ["LlamaForCausalLMEagle3"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 4096,
    "num_hidden_layers": 1,
    "num_attention_heads": 8,
    "num_key_value_heads": 8,
    "vocab_size": 64000,
    "draft_vocab_size": 4,
    "rms_norm_eps": 1e-5,
    "hidden_act": "silu",
    "norm_before_residual": True,
}
SHAPES = {
    "fc.weight": (1024, 3072),
    "midlayer.self_attn.q_proj.weight": (1024, 2048),
    "midlayer.self_attn.k_proj.weight": (1024, 2048),
    "midlayer.self_attn.v_proj.weight": (1024, 2048),
    "midlayer.self_attn.o_proj.weight": (1024, 1024),
    "midlayer.mlp.gate_proj.weight": (4096, 1024),
    "midlayer.mlp.up_proj.weight": (4096, 1024),
    "midlayer.mlp.down_proj.weight": (1024, 4096),
    "midlayer.input_layernorm.weight": (1024,),
    "midlayer.hidden_norm.weight": (1024,),
    "midlayer.post_attention_layernorm.weight": (1024,),
    "norm.weight": (1024,),
    "lm_head.weight": (4, 1024),
}
D2T = struct.pack("<4q", 0, 5, 9, 60)
INDEX = "model.safetensors.index.json"


@pytest.fixture
def files(tmp_path: Path) -> dict[str, bytes | Path]:
    """The files of a drafter of 60 MB, and more that are none of ours."""
    headers: dict[str, tuple[str, tuple[int, ...]]] = {n: ("BF16", s) for n, s in SHAPES.items()}
    place = write_sparse(tmp_path / "made", CONFIG, headers | {"d2t": ("I64", (4,))}, {"d2t": D2T})
    return {
        "README.md": b"a drafter",
        "config.json": place / "config.json",
        "model.safetensors": place / "model.safetensors",
        "onnx/model.safetensors": b"another",
        "pytorch_model.bin": b"a pickle",
    }


def header_bytes(files: dict[str, bytes | Path], name: str = "model.safetensors") -> int:
    content = files[name]
    raw = content if isinstance(content, bytes) else content.read_bytes()
    return 8 + int.from_bytes(raw[:8], "little")


def test_opening_costs_a_header(hub_of: Callable[..., Hub], files: dict[str, bytes | Path]) -> None:
    hub = hub_of(files)

    checkpoint = open_checkpoint("org/drafter@v1.0")

    assert checkpoint.revision == COMMIT
    assert checkpoint.config == CONFIG
    assert checkpoint.files == ("model.safetensors",)
    assert checkpoint.other_files == ()
    assert {name: t.shape for name, t in checkpoint.tensors.items() if name != "d2t"} == SHAPES
    size = header_bytes(files)
    assert hub.ranges("model.safetensors") == ["bytes=0-7", f"bytes=8-{size - 1}"]
    assert hub.sent("model.safetensors") == size
    assert hub.sent("README.md") == hub.sent("pytorch_model.bin") == 0
    assert len(hub.asked) == 6  # the description, config.json (HEAD, HEAD, GET), two ranges


@pytest.mark.parametrize("offline", [False, True])
def test_a_pickle_is_read_once_it_was_downloaded(
    hub_of: Callable[..., Hub], tmp_path: Path, offline: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    from huggingface_hub import constants, snapshot_download

    ids = torch.arange(4)
    torch.save({"d2t": ids}, tmp_path / PICKLE)
    hub = hub_of({"config.json": b"{}", PICKLE: tmp_path / PICKLE})
    with pytest.raises(CheckpointError, match=f"has its weights only as {PICKLE}"):
        open_checkpoint("org/drafter")
    assert hub.sent(PICKLE) == 0
    snapshot_download("org/drafter")  # as hf download does
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", offline)

    checkpoint = open_checkpoint("org/drafter")

    assert checkpoint.read_integers("d2t") == ids.tolist()
    assert checkpoint.revision == COMMIT


def test_a_second_look_takes_the_config_from_the_cache(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path]
) -> None:
    hub = hub_of(files)
    open_checkpoint("org/drafter")
    hub.asked.clear()

    open_checkpoint("org/drafter")

    assert len(hub.asked) == 3  # the description, two ranges


def test_one_tensor_costs_its_bytes_and_once(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path]
) -> None:
    hub = hub_of(files)
    checkpoint = open_checkpoint("org/drafter")
    hub.asked.clear()

    assert checkpoint.read_integers("d2t") == [0, 5, 9, 60]
    assert checkpoint.read_integers("d2t") == [0, 5, 9, 60]
    assert [asked.sent for asked in hub.asked] == [len(D2T)]
    assert checkpoint.read_bytes("norm.weight") == bytes(2048)


def test_a_weight_is_read_in_pieces(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path]
) -> None:
    hub_of(files)
    checkpoint = open_checkpoint("org/drafter")

    sizes = [len(piece) for piece in checkpoint.chunks("fc.weight")]

    assert sum(sizes) == checkpoint.tensors["fc.weight"].nbytes
    assert max(sizes) < sum(sizes)


def test_check_judges_without_weights(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path], capsys: pytest.CaptureFixture[str]
) -> None:
    hub = hub_of(files)
    hub.others["org/target"] = {"config.json": b'{"hidden_size": 1024, "vocab_size": 64000}'}
    command = ["check", "hf://org/drafter", "--target", "org/target@main", "--format", "json"]

    code = main([*command, "--engine", "sglang@0.5.23,vllm@0.33.0"])

    report = json.loads(capsys.readouterr().out)
    assert code in (0, 1)
    assert {engine["outcome"] for engine in report["engines"]} <= {"pass", "warn", "fail"}
    assert report["subject"]["revision"] == report["target_revision"] == COMMIT
    weights = report["subject"]["files"][1]
    assert (weights["name"], weights["sha256"]) == ("model.safetensors", None)
    assert weights["bytes"] == Path(str(files["model.safetensors"])).stat().st_size
    assert hub.sent("model.safetensors") == header_bytes(files) + len(D2T)
    assert len(hub.asked) == 7 + 4


def test_shards_of_the_index_alone_are_asked_for(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path]
) -> None:
    shards = {}
    for i, (name, shape) in enumerate({"fc.weight": (2, 6), "norm.weight": (2,)}.items()):
        prefix, ranges = lay_out({name: ("BF16", shape)})
        shards[f"model-{i}.safetensors"] = prefix + bytes(ranges[name][1] - len(prefix))
    weight_map = {"fc.weight": "model-0.safetensors", "norm.weight": "model-1.safetensors"}
    index = json.dumps({"weight_map": weight_map}).encode()
    hub = hub_of(
        {"config.json": b'{"hidden_size": 2}', INDEX: index, **shards, "a.safetensors": b""}
    )

    checkpoint = open_checkpoint("org/drafter")

    assert checkpoint.files == tuple(shards)
    assert checkpoint.other_files == ("a.safetensors",)
    assert checkpoint.rival is None
    assert checkpoint.place("norm.weight") == "model-1.safetensors :: norm.weight"
    assert [hub.sent(name) for name in shards] == [header_bytes(shards, name) for name in shards]
    assert hub.ranges("a.safetensors") == []


def test_a_file_at_hand_is_not_asked_for(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path]
) -> None:
    hub = hub_of(files)
    whole = open_checkpoint("org/drafter", weights=True)
    size = Path(str(files["model.safetensors"])).stat().st_size
    fetched = hub.sent("model.safetensors")
    hub.asked.clear()

    checkpoint = open_checkpoint("org/drafter")

    assert fetched == size
    assert checkpoint.remote == whole.remote == {}
    assert hub.ranges("model.safetensors") == []
    assert checkpoint.read_integers("d2t") == [0, 5, 9, 60]


def test_a_target_costs_its_config(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path]
) -> None:
    hub = hub_of(files | {"config.json": b'{"hidden_size": 7168}', INDEX: b"{}"})

    target = open_target("org/drafter@main")

    assert (target.hidden_size, target.revision) == (7168, COMMIT)
    assert len(hub.asked) == 4
    assert hub.sent("model.safetensors") == hub.sent(INDEX) == 0


def test_a_store_elsewhere_gets_the_range_and_no_token(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_secret")
    hub = hub_of(files, redirects=True)

    open_checkpoint("org/drafter").read_integers("d2t")

    stored = [asked for asked in hub.asked if asked.path.startswith("/store/")]
    assert [asked.token for asked in stored] == [None] * 3
    assert sum(asked.sent for asked in stored) == header_bytes(files) + len(D2T)
    others = [asked for asked in hub.asked if not asked.path.startswith("/store/")]
    assert {asked.token for asked in others} == {"Bearer hf_secret"}


def test_the_environment_is_heeded(
    hub_of: Callable[..., Hub], files: dict[str, bytes | Path], tmp_path: Path
) -> None:
    hub = hub_of(files | {"config.json": b'{"hidden_size": 7168}'})
    environment = os.environ | {
        "HF_ENDPOINT": hub.address,
        "HF_HOME": str(tmp_path / "home"),
        "HF_TOKEN": "hf_mine",
    }
    environment.pop("HF_HUB_CACHE", None)
    code = (
        "from eyas.checkpoint import open_target;"
        "t = open_target('org/drafter'); print(t.revision, t.directory)"
    )

    def run(**more: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", code],
            env=environment | more,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    told = run()
    assert told.split() == [
        COMMIT,
        str(tmp_path / "home" / "hub" / "models--org--drafter" / "snapshots" / COMMIT),
    ]
    assert {asked.token for asked in hub.asked if "/api/models/" in asked.path} == {
        "Bearer hf_mine"
    }
    hub.asked.clear()
    assert run(HF_HUB_OFFLINE="1") == told
    assert hub.asked == []

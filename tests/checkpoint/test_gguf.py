"""The header of a GGUF file, against the gguf package, and against files that lie."""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np
import pytest

from eyas import dialects
from eyas.checkpoint import Format, LongList, open_checkpoint
from eyas.checkpoint.gguf import GgufValue, read_typed
from eyas.errors import CheckpointError
from eyas.spec import Eagle3Spec, Fused, Mha, Origin, Ownership, Recognised, VocabMap, VocabOrder

TOKENS = [f"t{i}" for i in range(300)]
KEPT = np.array([0, 5, 10, 290], dtype=np.int64)
SHAPES = {
    "fc.weight": (8, 24),
    "output_norm.weight": (8,),
    "output.weight": (4, 8),
    "blk.0.attn_norm.weight": (8,),
    "blk.0.attn_norm_2.weight": (8,),
    "blk.0.attn_q.weight": (8, 16),
    "blk.0.attn_k.weight": (4, 16),
    "blk.0.attn_v.weight": (4, 16),
    "blk.0.attn_output.weight": (8, 8),
    "blk.0.ffn_norm.weight": (8,),
    "blk.0.ffn_gate.weight": (12, 8),
    "blk.0.ffn_up.weight": (12, 8),
    "blk.0.ffn_down.weight": (8, 12),
}


@pytest.fixture
def drafter(tmp_path: Path) -> Path:
    """A drafter as llama.cpp's converter writes it, through the gguf package."""
    import gguf

    path = tmp_path / "draft.gguf"
    writer = gguf.GGUFWriter(path, "eagle3")
    writer.add_block_count(1)
    writer.add_embedding_length(8)
    writer.add_feed_forward_length(12)
    writer.add_head_count(2)
    writer.add_head_count_kv(1)
    writer.add_key_length(4)
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_context_length(512)
    writer.add_rope_freq_base(500000.0)
    writer.add_array("eagle3.target_layers", [2, 6, 9])
    writer.add_uint32("eagle3.target_hidden_size", 8)
    writer.add_bool("eagle3.norm_before_residual", True)
    writer.add_token_list(TOKENS)
    writer.add_token_scores([0.5] * len(TOKENS))
    for name, shape in SHAPES.items():
        writer.add_tensor(name, np.ones(shape, dtype=np.float16))
    quantised = np.zeros((3, 34), dtype=np.uint8)
    writer.add_tensor("spare.weight", quantised, raw_dtype=gguf.GGMLQuantizationType.Q8_0)
    writer.add_tensor("d2t", KEPT)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def test_headers_are_those_that_the_gguf_package_reads(drafter: Path) -> None:
    import gguf

    checkpoint = open_checkpoint(drafter)

    assert checkpoint.format is Format.GGUF
    assert (checkpoint.config_file, checkpoint.files) == ("draft.gguf", ("draft.gguf",))
    reference = gguf.GGUFReader(drafter)
    assert {t.name for t in reference.tensors} == set(checkpoint.tensors)
    for tensor in reference.tensors:
        header = checkpoint.tensors[tensor.name]
        assert header.dtype == tensor.tensor_type.name
        assert header.shape == tuple(reversed(tensor.shape.tolist()))
        assert (header.start, header.nbytes) == (tensor.data_offset, tensor.n_bytes)
    assert checkpoint.config["eagle3.target_layers"] == [2, 6, 9]
    assert checkpoint.config["tokenizer.ggml.tokens"] == LongList(length=300)
    assert checkpoint.config["tokenizer.ggml.scores"] == LongList(length=300)
    assert checkpoint.read_integers("d2t") == KEPT.tolist()


def test_it_is_read_to_a_spec(drafter: Path) -> None:
    checkpoint = open_checkpoint(drafter)

    dialect, spec = dialects.read(checkpoint)

    assert dialect.name == "gguf"
    assert isinstance(spec, Eagle3Spec)
    assert isinstance(spec.attention, Mha)
    assert isinstance(spec.conditioning, Fused)
    assert spec.conditioning.boundaries.value == (2, 6, 9)
    assert spec.conditioning.boundaries.key == "draft.gguf :: eagle3.target_layers"
    assert spec.norm_before_residual.value is True
    assert spec.conditioning.input_norm.origin is Origin.ASSUMED
    assert (spec.vocab_size.value, spec.draft_vocab_size.value) == (300, 4)
    assert (spec.vocab_map.value, spec.vocab_order.value) == (
        VocabMap.ABSOLUTE,
        VocabOrder.SORTED,
    )
    assert (spec.embedding.value, spec.head.value) == (Ownership.TARGET, Ownership.OWN)
    assert spec.rope.value.theta == 500000.0
    assert spec.rms_norm_eps.value == pytest.approx(1e-5)
    roles = dialect.roles(checkpoint)
    assert roles["blk.0.attn_norm_2.weight"] == "layers.0.hidden_norm.weight"
    assert set(checkpoint.tensors) - set(roles) == {"spare.weight"}


def text(value: str | bytes) -> bytes:
    raw = value.encode() if isinstance(value, str) else value
    return struct.pack("<Q", len(raw)) + raw


def key(name: str | bytes, kind: int, value: bytes) -> bytes:
    return text(name) + struct.pack("<I", kind) + value


def info(name: str, dims: tuple[int, ...], kind: int, offset: int) -> bytes:
    sizes = struct.pack(f"<{len(dims)}Q", *dims)
    return text(name) + struct.pack("<I", len(dims)) + sizes + struct.pack("<IQ", kind, offset)


def file_of(
    *,
    version: int = 3,
    keys: tuple[bytes, ...] = (),
    tensors: tuple[bytes, ...] = (),
    data: int = 0,
    counts: tuple[int, int] | None = None,
    magic: bytes = b"GGUF",
) -> bytes:
    said = (len(tensors), len(keys)) if counts is None else counts
    head = magic + struct.pack("<IQQ", version, *said) + b"".join(keys) + b"".join(tensors)
    return head + bytes(-len(head) % 32) + bytes(data)


ARCHITECTURE = key("general.architecture", 8, text("eagle3"))
ONE = (info("a", (4,), 0, 0),)
MANY = 2**62


@pytest.mark.parametrize(
    ("raw", "reason"),
    [
        (b"", "it ends within the magic number"),
        (file_of(magic=b"GGML"), "it does not begin with GGUF"),
        (file_of(version=1), "its version is 1"),
        (file_of(version=0x03000000), "its version is 50331648"),
        (file_of(counts=(MANY, 0)), "it claims 4611686018427387904 tensors, more than fit"),
        (file_of(counts=(0, MANY)), "it claims 4611686018427387904 keys, more than fit"),
        (file_of(counts=(0, 2)), "a key is ''"),
        (file_of(counts=(0, 70000), data=10**6), "it claims 70000 keys, and eyas reads 65536"),
        (file_of(keys=(ARCHITECTURE, ARCHITECTURE)), "it has the key 'general.architecture' twice"),
        (file_of(keys=(key("k", 13, b""),)), "the value of 'k' has the unknown type 13"),
        (file_of(keys=(struct.pack("<Q", MANY),)), "a key is 4611686018427387904 bytes long"),
        (file_of(keys=(key(b"\xff\xfe", 4, bytes(4)),)), "a key is no UTF-8"),
        (file_of(keys=(key("\x1b[31m", 4, bytes(4)),)), "a key is "),
        (
            file_of(keys=(key("k", 8, struct.pack("<Q", MANY)),)),
            "the value of 'k' is 4611686018427387904 bytes long",
        ),
        (
            file_of(keys=(key("k", 9, struct.pack("<IQ", 5, MANY)),)),
            "the list 'k' claims 4611686018427387904 elements, more than fit",
        ),
        (
            file_of(keys=(key("k", 9, struct.pack("<IQ", 9, 1)),)),
            "the list 'k' has elements of type 9",
        ),
        (
            file_of(keys=(key("k", 9, struct.pack("<IQ", 8, 300) + bytes([255]) * 2400),)),
            "a text in 'k' is longer than the file",
        ),
        (file_of(keys=(key("k", 6, struct.pack("<f", float("nan"))),)), "the value of 'k' is nan"),
        (file_of(keys=(key("general.alignment", 4, struct.pack("<I", 24)),)), "alignment is 24"),
        (file_of(keys=(key("general.alignment", 4, bytes(4)),)), "alignment is 0"),
        (file_of(tensors=(info("a", (1,) * 5, 0, 0),)), "tensor 'a' has 5 dimensions"),
        (file_of(tensors=(info("a", (4,), 4, 0),)), "tensor 'a' has the type 4"),
        (file_of(tensors=(info("a", (MANY, MANY), 0, 0),)), "tensor 'a' claims"),
        (file_of(tensors=(info("a", (31,), 8, 0),), data=64), "no whole number of Q8_0's blocks"),
        (file_of(tensors=ONE), "tensor 'a' ends beyond the end of the file"),
        (
            file_of(tensors=(*ONE, info("a", (4,), 0, 32)), data=64),
            "it names tensor 'a' twice",
        ),
        (
            file_of(tensors=(*ONE, info("b", (4,), 0, 16)), data=64),
            "tensor 'b' begins at 16, where those before it end at 32",
        ),
        (
            file_of(tensors=(*ONE, info("b", (4,), 0, 2**40)), data=64),
            "tensor 'b' begins at 1099511627776, where those before it end at 32",
        ),
    ],
)
def test_a_file_that_lies_is_refused_in_one_sentence(
    tmp_path: Path, raw: bytes, reason: str
) -> None:
    path = tmp_path / "d.gguf"
    path.write_bytes(raw)

    with pytest.raises(CheckpointError) as refused:
        open_checkpoint(path)

    assert reason in refused.value.message
    assert refused.value.message.startswith(f"{path} is no sound GGUF file: ")
    assert "\n" not in refused.value.message
    assert refused.value.hint


def test_every_cut_of_a_sound_file_is_refused(drafter: Path, tmp_path: Path) -> None:
    raw = drafter.read_bytes()
    cut = tmp_path / "cut.gguf"
    for length in range(0, len(raw) - 64, 97):
        cut.write_bytes(raw[:length])
        with pytest.raises(CheckpointError, match="no sound GGUF file"):
            open_checkpoint(cut)


def test_another_architecture_is_known_by_name(tmp_path: Path) -> None:
    path = tmp_path / "d.gguf"
    path.write_bytes(file_of(keys=(key("general.architecture", 8, text("dflash")),)))
    checkpoint = open_checkpoint(path)

    dialect, spec = dialects.read(checkpoint)

    assert dialect.name == "gguf"
    assert isinstance(spec, Recognised)
    assert spec.name == "dflash in GGUF"
    assert dialect.roles(checkpoint) == {}


def test_a_long_list_is_skipped_where_it_spans_chunks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("eyas.checkpoint.gguf._CHUNK", 64)
    tokens = b"".join(text("x" * (i % 50)) for i in range(500))
    listed = key("tokens", 9, struct.pack("<IQ", 8, 500) + tokens)
    path = tmp_path / "d.gguf"
    path.write_bytes(file_of(keys=(listed, ARCHITECTURE), tensors=ONE, data=16))

    checkpoint = open_checkpoint(path)

    assert checkpoint.config == {
        "tokens": LongList(length=500),
        "general.architecture": "eagle3",
    }
    assert checkpoint.tensors["a"].shape == (4,)


@pytest.mark.parametrize("missing", ["eagle3.attention.head_count", "eagle3.target_layers"])
def test_a_key_that_is_needed_is_named(drafter: Path, missing: str) -> None:
    raw = drafter.read_bytes().replace(missing.encode(), missing.encode()[:-1] + b"_")
    drafter.write_bytes(raw)

    with pytest.raises(CheckpointError, match=f"draft.gguf :: {missing} is missing"):
        dialects.read(open_checkpoint(drafter))


def test_a_name_that_is_a_page_long_is_not_repeated(tmp_path: Path) -> None:
    long = b"x" * 60_000
    key = struct.pack("<Q", len(long)) + long + struct.pack("<I", 99)  # of an unknown type
    head = b"GGUF" + struct.pack("<IQQ", 3, 0, 1)
    (tmp_path / "key.gguf").write_bytes(head + key)
    with pytest.raises(CheckpointError) as caught:
        open_checkpoint(tmp_path / "key.gguf")
    assert len(caught.value.message) < 500
    tensor = struct.pack("<Q", 64) + b"x" * 64 + struct.pack("<IQIQ", 1, 4, 0, 0)
    head = b"GGUF" + struct.pack("<IQQ", 3, 1, 0)
    (tmp_path / "tensor.gguf").write_bytes(head + tensor + bytes(64))
    with pytest.raises(CheckpointError, match="a tensor's name is 64 bytes long"):
        open_checkpoint(tmp_path / "tensor.gguf")


def test_layers_that_would_take_for_ever_are_refused(drafter: Path) -> None:
    key = b"eagle3.block_count" + (4).to_bytes(4, "little")
    raw = drafter.read_bytes()
    assert raw.count(key) == 1
    at = raw.index(key) + len(key)
    drafter.write_bytes(raw[:at] + (10**9).to_bytes(4, "little") + raw[at + 4 :])

    with pytest.raises(CheckpointError, match="block_count is 1000000000, and eyas reads"):
        open_checkpoint(drafter)


def test_no_other_engine_takes_it_for_safetensors(drafter: Path) -> None:
    from eyas.checks import check
    from eyas.engines import EngineRef, Launch

    checkpoint = open_checkpoint(drafter)

    report = check(checkpoint, [EngineRef.parse("sglang@0.5.23")], launch=Launch())

    assert report.exit_code() == 2
    assert "is a GGUF file" in str(report.engines[0].reason)
    assert [file.name for file in report.subject.files] == ["draft.gguf"]


def test_a_list_is_read_whole_where_it_is_asked_for(drafter: Path) -> None:
    typed = read_typed(drafter.parent, drafter.name, "tokenizer.")

    assert typed["tokenizer.ggml.tokens"] == GgufValue(value=TOKENS, kind=9, of=8)
    assert typed["tokenizer.ggml.scores"] == GgufValue(value=[0.5] * len(TOKENS), kind=9, of=6)
    assert all(key.startswith("tokenizer.") for key in typed)


@pytest.mark.parametrize(
    ("held", "given"),
    [(1e-5, 1e-5), (1e-6, 1e-6), (500000.0, 500000.0), (0.1, 0.1), (1 / 3, 0.33333334), (0.0, 0.0)],
)
def test_a_float32_is_given_as_the_shortest_decimal(
    tmp_path: Path, held: float, given: float
) -> None:
    path = tmp_path / "d.gguf"
    path.write_bytes(file_of(keys=(ARCHITECTURE, key("k", 6, struct.pack("<f", held)))))

    assert open_checkpoint(path).config["k"] == given
    assert np.float32(given) == np.float32(held)

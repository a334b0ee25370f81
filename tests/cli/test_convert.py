"""eyas convert as it is typed: formats, sizes, wishes that contradict each other, names of OUT."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable
from pathlib import Path
from shutil import copytree

import pytest

from eyas.checkpoint import open_checkpoint
from eyas.cli import program
from eyas.cli.convert import size_of
from eyas.convert import NO_WISHES, Share, Wishes
from eyas.convert.edits.vocabulary import Pruning
from eyas.convert.elsewhere import instead
from eyas.engines import EngineRef
from eyas.errors import UsageError

Make = Callable[..., Path]
Captured = pytest.CaptureFixture[str]


def run(capsys: Captured, *arguments: object) -> tuple[int, str, str]:
    code = program.main([str(argument) for argument in ("convert", *arguments)])
    out, err = capsys.readouterr()
    return code, out, err


def test_a_plan_and_a_result_for_a_program(
    make_drafter: Make, tmp_path: Path, capsys: Captured
) -> None:
    arguments = (make_drafter(), tmp_path / "out", "--to", "speculators", "--format", "json")
    code, out, _ = run(capsys, *arguments, "--dry-run")
    plan = json.loads(out)
    assert code == 0
    assert (plan["from"], plan["to"], plan["goal"]) == ("specforge", "speculators", "speculators")
    assert not (tmp_path / "out").exists()
    code, out, _ = run(capsys, *arguments)
    done = json.loads(out)
    assert code == 0
    assert {key: done[key] for key in plan} == plan
    assert done["directory"] == str(tmp_path / "out")
    assert done["bytes_compared"] == sum(
        header.nbytes for header in open_checkpoint(tmp_path / "out").tensors.values()
    )


def test_there_and_back_through_gguf(
    trained_here: Path, smollm2: Path, tmp_path: Path, capsys: Captured
) -> None:
    gguf, back = tmp_path / "draft.gguf", tmp_path / "back"
    code, out, err = run(capsys, trained_here, gguf, "--to", "llamacpp", "--target", smollm2)
    assert (code, "llama.cpp's order" in out) == (0, True)
    assert f"next: llama-server --model TARGET.gguf --spec-draft-model {gguf} " in err
    code, out, _ = run(capsys, gguf, back, "--to", "speculators", "--target", smollm2)
    assert (code, "none is rounded" in out) == (0, True)
    weights = "model.safetensors"
    assert (back / weights).read_bytes() == (trained_here / weights).read_bytes()


def test_a_file_is_asked_a_files_name_for(
    trained_here: Path, smollm2: Path, make_drafter: Make, tmp_path: Path, capsys: Captured
) -> None:
    code, _, err = run(
        capsys, trained_here, tmp_path / "x", "--to", "llamacpp", "--target", smollm2
    )
    assert (code, "name it x.gguf" in err) == (2, True)
    code, _, err = run(capsys, make_drafter(), tmp_path / "x.gguf", "--to", "sglang")
    assert (code, "a directory is written" in err) == (2, True)
    assert [path.name for path in tmp_path.iterdir()] == ["draft"]


def test_llama_cpp_needs_the_targets_tokenizer(
    trained_here: Path, tmp_path: Path, capsys: Captured
) -> None:
    code, _, err = run(capsys, trained_here, tmp_path / "x.gguf", "--to", "llamacpp")
    assert code == 2
    assert "holds the target's tokenizer" in err
    assert "--target" in err


def test_a_vocabulary_cut_by_a_corpus(
    trained_here: Path, smollm2: Path, tmp_path: Path, capsys: Captured
) -> None:
    corpus = tmp_path / "corpus.txt"
    corpus.write_text("The falcon flies over the hill.\n" * 3)
    arguments = (trained_here, tmp_path / "out", "--to", "vllm", "--target", smollm2)
    code, out, _ = run(capsys, *arguments, "--draft-vocab", 64, "--corpus", corpus)
    assert code == 0
    # one token of the sentence is none of the drafter's
    assert "cut from 8192 tokens to 64, which are 87.50% of those counted" in out
    assert open_checkpoint(tmp_path / "out").tensors["lm_head.weight"].shape == (64, 576)


def hinted(err: str) -> list[str]:
    """The words after ``eyas convert`` in the hint of a refusal."""
    assert err.count("\n") == 1
    _, command, typed = err.rpartition("; eyas convert ")
    assert command, err
    return shlex.split(typed)


@pytest.mark.parametrize("extra", [(), ("--dry-run",)])
def test_a_refusal_gives_the_command_for_an_engine_that_can(
    make_drafter: Make, tmp_path: Path, capsys: Captured, extra: tuple[str, ...]
) -> None:
    draft, made = make_drafter("my draft", norm_before_residual=True), tmp_path / "made of it"
    counts = tmp_path / "my counts"
    counts.write_text("1 5\n2 3\n")
    wishes = ("--dtype", "float32", "--draft-vocab", "8", "--counts", str(counts))
    asked = (draft, made, "--to", "sglang@0.5.23", *wishes, "--shard-size", "1KB")
    code, _, err = run(capsys, *asked, *extra)
    assert (code, made.exists()) == (2, False)
    again = hinted(err)
    assert again[:4] == [str(draft), str(made), "--to", "vllm@0.33.0:v1"]
    assert again[4:] == [*wishes, "--shard-size", "1000"]
    code, out, _ = run(capsys, *again)
    assert (code, "for vllm@0.33.0:v1" in out) == (0, True)
    written = open_checkpoint(made)
    head = written.tensors["lm_head.weight"]
    assert (head.dtype, head.shape) == ("F32", (8, 8))
    assert len(list(made.glob("*.safetensors"))) > 1


def test_that_command_repeats_the_target_as_it_was_typed(
    make_drafter: Make,
    tmp_path: Path,
    capsys: Captured,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    draft = make_drafter(norm_before_residual=True)
    (tmp_path / "the target").mkdir()
    sizes = {"model_type": "llama", "hidden_size": 8, "num_hidden_layers": 12, "vocab_size": 32}
    (tmp_path / "the target" / "config.json").write_text(json.dumps(sizes))
    monkeypatch.chdir(tmp_path)
    asked = ("./draft/", "./made", "--to", "sglang", "--target", "./the target")
    code, _, err = run(capsys, *asked, "--launch", "speculative_algorithm=EAGLE3")
    assert code == 2
    again = hinted(err)
    assert again == ["./draft/", "./made", "--to", "vllm@0.33.0:v1", "--target", "./the target"]
    assert run(capsys, *again)[0] == 0
    assert open_checkpoint(tmp_path / "made").config["norm_before_residual"] is True
    assert draft.is_dir()


def test_that_command_names_no_directory_as_a_file(
    trained_here: Path, smollm2: Path, tmp_path: Path, capsys: Captured
) -> None:
    draft = tmp_path / "draft"
    copytree(trained_here, draft)
    config = json.loads((draft / "config.json").read_text())
    (draft / "config.json").write_text(json.dumps(config | {"norm_output": True}))
    code, _, err = run(capsys, draft, f"{draft}.gguf", "--to", "llamacpp", "--target", smollm2)
    assert (code, "llama.cpp's eagle3 feeds back the state before" in err) == (2, True)
    again = hinted(err)
    assert again[:4] == [str(draft), f"{draft}-sglang", "--to", "sglang@0.5.23"]
    assert run(capsys, *again)[0] == 0


@pytest.mark.parametrize(
    ("out", "engine", "named"),
    [
        ("made", "llamacpp@11549", "made.gguf"),
        ("./made/", "llamacpp@11549", "./made.gguf"),
        ("made.gguf", "llamacpp@11549", "made.gguf"),
        ("./made", "vllm@0.33.0:v2", "./made"),
        ("made.gguf", "vllm@0.33.0:v2", "made-vllm"),
    ],
)
def test_what_an_engine_reads_has_a_fitting_name(out: str, engine: str, named: str) -> None:
    said = instead("draft", out, EngineRef.parse(engine), None, NO_WISHES)
    assert said == f"eyas convert draft {named} --to {engine}"


def test_that_command_repeats_every_wish() -> None:
    pruning = Pruning(size=8, counts={})
    every = Wishes(embedding=Share.ADD, head=Share.LEAVE, dtype="float16", pruning=pruning)
    words = "--embedding add --head leave --dtype float16 --draft-vocab 8 --counts FILE"
    assert " ".join(every.options()) == words
    assert NO_WISHES.options() == ()


@pytest.mark.parametrize(
    ("wishes", "said"),
    [
        (("--draft-vocab", "8"), "with either --counts or --corpus"),
        (("--counts", "file"), "with either --counts or --corpus"),
        (("--draft-vocab", "8", "--counts", "/nowhere"), "cannot be read"),
        (("--shard-size", "many"), "'many' is no size"),
        (("--dtype", "int4"), "'int4' is no type"),
        (("--embedding", "add"), "the embedding is the target's, which is not named"),
        (("--head", "leave"), "the head has the rows of a reduced vocabulary"),
    ],
)
def test_wishes_that_cannot_be_granted(
    make_drafter: Make, tmp_path: Path, capsys: Captured, wishes: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, make_drafter(), tmp_path / "out", "--to", "sglang", *wishes)
    assert (code, out) == (2, "")
    assert said in err
    assert err.count("\n") == 1
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("typed", "size"), [("5GB", 5 * 10**9), ("500 MiB".replace(" ", ""), 500 * 2**20), ("7", 7)]
)
def test_sizes(typed: str, size: int) -> None:
    assert size_of(typed) == size


@pytest.mark.parametrize("typed", ["", "0GB", "-1GB", "5TB", "GB", "1.5GB"])
def test_sizes_that_are_none(typed: str) -> None:
    with pytest.raises(UsageError, match="is no size"):
        size_of(typed)

"""A Hub that refuses, lies or breaks off: one sentence, what to do, and exit code 2."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tests.checkpoint.hub_server import COMMIT, Fault, Hub

from eyas.checkpoint import open_checkpoint, write_sparse
from eyas.checkpoint.repository import MAX_HEADER
from eyas.cli.program import main
from eyas.errors import CheckpointError, EyasError, FetchError, UsageError

WEIGHTS = r"/model\.safetensors$"
CONFIG = r"/config\.json$"
DESCRIPTION = r"^/api/models/"


@pytest.fixture
def hub(hub_of: Callable[..., Hub], tmp_path: Path) -> Hub:
    """A Hub with a drafter of 16 MB."""
    place = write_sparse(
        tmp_path / "made", {"hidden_size": 4}, {"fc.weight": ("BF16", (2048, 4096))}
    )
    return hub_of({name: place / name for name in ("config.json", "model.safetensors")})


def refused(kind: type[EyasError], location: str = "org/drafter") -> EyasError:
    with pytest.raises(EyasError) as caught:
        open_checkpoint(location)
    error = caught.value
    assert type(error) is kind, repr(error)
    assert error.message.isprintable()
    assert len(error.message) < 400
    assert not error.message.endswith(".")
    assert error.hint
    return error


@pytest.mark.parametrize("path", [WEIGHTS, CONFIG, DESCRIPTION])
@pytest.mark.parametrize(
    ("fault", "kind", "says"),
    [
        (Fault(path="", status=401), CheckpointError, "only to those it knows (401)"),
        (Fault(path="", status=403), CheckpointError, "forbids the reading of"),
        (
            Fault(path="", status=403, headers={"X-Error-Code": "GatedRepo"}),
            CheckpointError,
            "is gated",
        ),
        (Fault(path="", status=404), CheckpointError, "(404)"),
        (Fault(path="", status=429), FetchError, "too many requests"),
        (Fault(path="", status=500), FetchError, "the Hub failed, asked for"),
        (Fault(path="", status=503), FetchError, "(503)"),
        (Fault(path="", status=302, headers={"Location": "?"}), FetchError, "redirects"),
        (Fault(path="", status=418), FetchError, "answered 418"),
    ],
    ids=lambda value: str(value.status) if isinstance(value, Fault) else "",
)
def test_a_status(hub: Hub, path: str, fault: Fault, kind: type[EyasError], says: str) -> None:
    hub.faults.append(
        Fault(path=path, status=fault.status, headers=fault.headers, body=b"<html>\x1b[2J</html>")
    )

    assert says in refused(kind).message


def test_who_is_not_known_is_told_of_the_token(hub: Hub) -> None:
    hub.faults.append(Fault(path=WEIGHTS, status=401))

    assert "HF_TOKEN" in str(refused(CheckpointError).hint)


def test_how_long_to_wait_is_said(hub: Hub) -> None:
    hub.faults.append(Fault(path=WEIGHTS, status=429, headers={"Retry-After": "120"}))

    assert refused(FetchError).hint == "try again in 120 seconds, or set HF_TOKEN"


@pytest.mark.parametrize("location", ["org/other", "other/drafter"])
def test_an_unknown_repository(hub: Hub, location: str) -> None:
    error = refused(CheckpointError, location)

    assert error.message.startswith(f"there is no local path {location}, and no Hub repository")
    assert len(hub.asked) == 1


def test_an_unknown_revision(hub: Hub) -> None:
    error = refused(CheckpointError, "org/drafter@v9")

    assert error.message == "the Hub repository org/drafter has no revision v9"


def test_a_repository_without_a_config(hub: Hub) -> None:
    del hub.files["config.json"]

    assert refused(CheckpointError).message == "the Hub repository org/drafter has no config.json"


def test_a_repository_without_weights(hub: Hub) -> None:
    del hub.files["model.safetensors"]
    hub.files["pytorch_model.bin"] = b"a pickle"

    error = refused(CheckpointError)
    assert "only as pytorch_model.bin" in error.message
    assert error.hint == f"run: hf download org/drafter --revision {COMMIT}"
    assert hub.ranges("pytorch_model.bin") == []


@pytest.mark.parametrize("body", [b"<html>Log in</html>", b"[]", b"{}", b'{"id": "org/drafter"}'])
def test_an_address_that_is_no_hub(hub: Hub, body: bytes) -> None:
    hub.describes = body

    error = refused(FetchError)

    assert "does not describe org/drafter as the Hub does" in error.message
    assert "HF_ENDPOINT" in str(error.hint)


def test_a_repository_that_moves_on_meanwhile(hub: Hub) -> None:
    other = COMMIT[::-1].replace("d", "0")
    hub.describes = f'{{"id": "org/drafter", "sha": "{other}", "siblings": []}}'.encode()

    error = refused(FetchError)

    assert error.message == f"org/drafter is at {other}, and its config.json came from {COMMIT}"


def test_a_server_that_names_no_commit(hub: Hub) -> None:
    hub.faults.append(Fault(path=CONFIG, status=200, headers={"ETag": '"x"'}, body=b"{}"))

    assert "is missing the 'X-Repo-Commit' header" in refused(FetchError).message


def test_a_server_without_ranges_is_not_listened_to(hub: Hub) -> None:
    hub.faults.append(Fault(path=WEIGHTS, whole=True))

    error = refused(FetchError)

    assert error.message.startswith("the server does not answer in ranges: it would send all of")
    assert "hf download" in str(error.hint)
    assert hub.ranges("model.safetensors") == ["bytes=0-7"]


@pytest.mark.parametrize(
    "stated", ["bytes 1-8/16777304", "bytes 0-7/*", "bytes 0-7", "pages 0-7/9", "bytes 0-7/-1"]
)
def test_another_range_than_the_one_asked_for(hub: Hub, stated: str) -> None:
    hub.faults.append(Fault(path=WEIGHTS, headers={"Content-Range": stated}))

    assert "with another range of model.safetensors" in refused(FetchError).message


@pytest.mark.parametrize("cut", [1, 8])
def test_an_answer_that_breaks_off(hub: Hub, cut: int) -> None:
    hub.faults.append(Fault(path=WEIGHTS, cut=cut))

    assert "fetching model.safetensors of org/drafter" in refused(FetchError).message


@pytest.mark.parametrize(("length", "word"), [("7", "fewer"), ("3", "fewer")])
def test_an_answer_that_is_short(hub: Hub, length: str, word: str) -> None:
    hub.faults.append(Fault(path=WEIGHTS, cut=8 - int(length), headers={"Content-Length": length}))

    assert f"sent {word} bytes of model.safetensors" in refused(FetchError).message


def test_an_answer_that_is_long(hub: Hub) -> None:
    total = Path(str(hub.files["model.safetensors"])).stat().st_size
    hub.faults.append(
        Fault(
            path=WEIGHTS,
            status=206,
            headers={"Content-Range": f"bytes 0-7/{total}"},
            body=bytes(9),
        )
    )

    assert "sent more bytes of model.safetensors" in refused(FetchError).message


@pytest.mark.parametrize(
    ("raw", "says"),
    [
        (b"", "has 0 bytes, too few"),
        (b"1234567", "has 7 bytes, too few"),
        ((2**63).to_bytes(8, "little") + b"{}", "does not fit into its 10 bytes"),
        ((2).to_bytes(8, "little") + b"{}x", "has 11 bytes where its header accounts for 10"),
        ((2).to_bytes(8, "little") + b"{{", "is not valid JSON"),
        ((2).to_bytes(8, "little") + b"\xff\xff", "is not UTF-8"),
    ],
)
def test_a_file_that_is_not_sound(hub: Hub, raw: bytes, says: str) -> None:
    hub.files["model.safetensors"] = raw

    error = refused(CheckpointError)

    assert says in error.message
    assert "org/drafter/model.safetensors" in error.message


def test_a_header_of_gigabytes_is_not_asked_for(hub: Hub, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.write((MAX_HEADER + 1).to_bytes(8, "little"))
        file.truncate(2**32)
    hub.files["model.safetensors"] = tmp_path / "large"

    assert f"is longer than {MAX_HEADER}" in refused(CheckpointError).message
    assert hub.sent("model.safetensors") == 8


def test_a_file_that_was_cut_since_is_noticed(hub: Hub) -> None:
    checkpoint = open_checkpoint("org/drafter")
    hub.files["model.safetensors"] = bytes(100)

    with pytest.raises(EyasError, match="has 100 bytes where"):
        checkpoint.read_bytes("fc.weight")


def test_a_hub_that_is_away(hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
    from huggingface_hub import constants

    open_checkpoint("org/drafter")
    monkeypatch.setattr(constants, "ENDPOINT", "http://127.0.0.1:9")

    error = refused(FetchError)

    assert "model.safetensors of the Hub repository org/drafter is not in the" in error.message
    assert "while the Hub cannot be reached (" in error.message


@pytest.mark.parametrize("endpoint", ["hub.example", "ftp://hub.example", "http://", "http://[1"])
def test_an_endpoint_that_is_no_address(
    hub: Hub, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "ENDPOINT", endpoint)

    assert f"HF_ENDPOINT is {endpoint!r}" in refused(UsageError).message


@pytest.mark.parametrize(
    "fault",
    [
        Fault(path=WEIGHTS, status=500),
        Fault(path=CONFIG, status=500),
        Fault(path=DESCRIPTION, status=500),
        Fault(path=WEIGHTS, whole=True),
        Fault(path=WEIGHTS, cut=4),
    ],
)
def test_the_command_says_one_line_and_exits_with_2(
    hub: Hub, capsys: pytest.CaptureFixture[str], fault: Fault
) -> None:
    hub.faults.append(fault)

    code = main(["check", "org/drafter", "--engine", "sglang@0.5.23"])

    printed = capsys.readouterr()
    assert (code, printed.out) == (2, "")
    assert printed.err.count("\n") == 1
    assert printed.err.startswith("error: ")

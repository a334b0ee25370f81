"""Hub ids and the files behind them, through huggingface_hub."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from eyas.checkpoint.answer import connection_error, failure, one_line, refusal
from eyas.checkpoint.repository import ANSWER_SECONDS, Repository
from eyas.errors import CheckpointError, FetchError, UsageError

if TYPE_CHECKING:
    from huggingface_hub.errors import HfHubHTTPError

_ID = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[A-Za-z0-9][\w./-]*))?"
)
INDEX = "model.safetensors.index.json"
PICKLE = "pytorch_model.bin"
PICKLE_INDEX = "pytorch_model.bin.index.json"
_WEIGHTS = ("config.json", "*.safetensors", INDEX)


class Part(StrEnum):
    """How much of a model is wanted: its weights come whole only where they are computed with."""

    CONFIG = "config"
    HEADERS = "headers"
    WEIGHTS = "weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubId:
    """A model repository and, where given, a branch, tag or commit."""

    repo: str
    revision: str | None

    def __str__(self) -> str:
        """As it is written, without ``hf://``."""
        return self.repo if self.revision is None else f"{self.repo}@{self.revision}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HubFiles:
    """A snapshot directory in the Hub's cache, its commit, and the repository it is a part of.

    `repository` is None while the Hub is out of reach: what is not in the directory is missing.
    """

    directory: Path
    commit: str
    repository: Repository | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Away:
    """Why the Hub is out of reach, so that its cache has to serve."""

    reason: str


def parse_hub_id(text: str) -> HubId | None:
    """`text` as ``org/name`` or ``org/name@revision``, with or without ``hf://``; else None."""
    match = _ID.fullmatch(text.removeprefix("hf://"))
    if match is None or ".." in text or len(match["repo"]) > 96:
        return None
    return HubId(repo=match["repo"], revision=match["revision"])


def fetch(hub_id: HubId, part: Part, *, also: Sequence[str] = ()) -> HubFiles:
    """The snapshot of a repository in the Hub's cache, with the files that `part` needs.

    With the weights come the files whose names are like one of `also`. Where the Hub is out of
    reach the cache serves.
    Raises CheckpointError when the repository or a file does not exist, may not be read, or is not
    in the cache while HF_HUB_OFFLINE is set; FetchError when the Hub or the connection fails.
    """
    answer = _ask(hub_id)
    repository = None if isinstance(answer, Away) else answer
    config = _small_file(hub_id, "config.json", answer)
    directory = config.parent
    if part is Part.WEIGHTS and repository is not None:
        _download_weights(hub_id, also)
    elif part is Part.HEADERS and repository is not None and INDEX in repository.files:
        _small_file(hub_id, INDEX, repository)
    kinds = ("*.safetensors", PICKLE, PICKLE_INDEX)
    weightless = not any(True for kind in kinds for _ in directory.glob(kind))
    if part is not Part.CONFIG and isinstance(answer, Away) and weightless:
        raise _not_cached(hub_id, "model.safetensors", answer)
    return HubFiles(directory=directory, commit=directory.name, repository=repository)


def _small_file(hub_id: HubId, name: str, answer: Repository | Away) -> Path:
    """The path of the file `name` in the Hub's cache, fetched where it is not there."""
    from huggingface_hub import (
        get_hf_file_metadata,
        hf_hub_download,
        hf_hub_url,
        try_to_load_from_cache,
    )

    repo, revision = hub_id.repo, hub_id.revision
    with _explained(hub_id, name):
        cached = try_to_load_from_cache(repo, name, revision=revision)
        path = Path(cached) if isinstance(cached, str) else None
        if isinstance(answer, Away):
            if path is None:
                raise _not_cached(hub_id, name, answer)
            return path
        if path is None or path.parent.name != answer.commit:
            # The download would try for half a minute before it gave up.
            get_hf_file_metadata(hf_hub_url(repo, name, revision=revision), timeout=ANSWER_SECONDS)
            path = Path(hf_hub_download(repo, name, revision=revision))
    if path.parent.name != answer.commit:
        raise FetchError(
            f"{hub_id} is at {answer.commit}, and its {name} came from {path.parent.name}",
            hint="try again",
        )
    return path


def _download_weights(hub_id: HubId, also: Sequence[str]) -> None:
    from huggingface_hub import snapshot_download

    with _explained(hub_id, "model.safetensors"):
        snapshot_download(
            hub_id.repo,
            revision=hub_id.revision,
            allow_patterns=[*_WEIGHTS, *also],
            ignore_patterns="*/*",  # other forms of the same weights lie in folders
        )


@contextmanager
def _explained(hub_id: HubId, name: str) -> Iterator[None]:
    """Turns what huggingface_hub raises about the file `name` into one sentence."""
    from huggingface_hub.errors import (
        EntryNotFoundError,
        HfHubHTTPError,
        HFValidationError,
        LocalEntryNotFoundError,
    )

    what = f"{name} of {hub_id}"
    try:
        yield
    except LocalEntryNotFoundError as error:
        if isinstance(error.__cause__, HfHubHTTPError):
            raise _refused(error.__cause__, what) from None
        cause = error.__cause__ if isinstance(error.__cause__, Exception) else error
        raise failure(cause, what) from None
    except EntryNotFoundError:
        raise CheckpointError(
            f"the Hub repository {hub_id} has no {name}", hint="check the name"
        ) from None
    except HFValidationError as error:
        raise _no_id(hub_id, error) from None
    except HfHubHTTPError as error:
        raise _refused(error, what) from None
    except (connection_error(), OSError, ValueError) as error:
        raise failure(error, what) from None


def _ask(hub_id: HubId) -> Repository | Away:
    """The repository as the Hub describes it.

    The library's own download would retry for long before it said so.
    """
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    if constants.HF_HUB_OFFLINE:
        return Away(reason="HF_HUB_OFFLINE is set")
    _require_address(constants.ENDPOINT)
    try:
        info = HfApi().model_info(hub_id.repo, revision=hub_id.revision, timeout=ANSWER_SECONDS)
    except RevisionNotFoundError:
        raise CheckpointError(
            f"the Hub repository {hub_id.repo} has no revision {hub_id.revision}",
            hint="check the part after @",
        ) from None
    except GatedRepoError as error:
        raise _refused(error, f"the Hub repository {hub_id}") from None
    except RepositoryNotFoundError:
        raise CheckpointError(
            f"there is no local path {hub_id}, and no Hub repository of that name that you may"
            " read",
            hint="check the name, or set HF_TOKEN for a private one",
        ) from None
    except HFValidationError as error:
        raise _no_id(hub_id, error) from None
    except HfHubHTTPError as error:
        raise _refused(error, f"the Hub repository {hub_id}") from None
    except (connection_error(), OSError) as error:
        return Away(reason=f"the Hub cannot be reached ({one_line(error)})")
    except (ValueError, TypeError, KeyError, AttributeError):
        # The library takes the answer apart without a look: a login page, or another JSON.
        info = None
    if info is None or info.sha is None or info.siblings is None:
        raise FetchError(
            f"{constants.ENDPOINT} does not describe {hub_id} as the Hub does",
            hint="check HF_ENDPOINT and the connection",
        )
    files = frozenset(sibling.rfilename for sibling in info.siblings)
    return Repository(name=hub_id.repo, commit=info.sha, files=files)


def _no_id(hub_id: HubId, error: Exception) -> CheckpointError:
    return CheckpointError(
        f"{str(hub_id)!r} is no Hub id: {one_line(error)}", hint="check the name"
    )


def _refused(error: HfHubHTTPError, what: str) -> CheckpointError | FetchError:
    return refusal(error.response.status_code, error.response.headers, what)


def _require_address(endpoint: str) -> None:
    try:
        parts = urlsplit(endpoint)
        sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        sound = False
    if not sound:
        raise UsageError(
            f"HF_ENDPOINT is {endpoint[:80]!r}, which is no address of a Hub",
            hint="unset it, or give one such as https://huggingface.co",
        )


def _not_cached(hub_id: HubId, file: str, away: Away) -> CheckpointError | FetchError:
    from huggingface_hub import constants

    missing = (
        f"there is no local path {hub_id}, and {file} of the Hub repository {hub_id} is not in the"
        f" local cache while {away.reason}"
    )
    if constants.HF_HUB_OFFLINE:
        revision = "" if hub_id.revision is None else f" --revision {hub_id.revision}"
        return CheckpointError(
            missing, hint=f"unset HF_HUB_OFFLINE, or run: hf download {hub_id.repo}{revision}"
        )
    return FetchError(missing, hint="check the path, or the connection")

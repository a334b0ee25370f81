"""Hub ids and the files behind them, through huggingface_hub."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from eyas.errors import CheckpointError, FetchError

_ID = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[A-Za-z0-9][\w./-]*))?"
)
_WEIGHTS = ("config.json", "*.safetensors", "model.safetensors.index.json")
_ANSWER_SECONDS = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class HubId:
    """A model repository and, where given, a branch, tag or commit."""

    repo: str
    revision: str | None

    def __str__(self) -> str:
        """As it is written, without ``hf://``."""
        return self.repo if self.revision is None else f"{self.repo}@{self.revision}"


def parse_hub_id(text: str) -> HubId | None:
    """`text` as ``org/name`` or ``org/name@revision``, with or without ``hf://``; else None."""
    match = _ID.fullmatch(text.removeprefix("hf://"))
    if match is None or ".." in text or len(match["repo"]) > 96:
        return None
    return HubId(repo=match["repo"], revision=match["revision"])


def fetch(hub_id: HubId, *, weights: bool, also: Sequence[str] = ()) -> tuple[Path, str]:
    """The snapshot directory of a repository and its commit.

    Only config.json is fetched unless `weights`, and with them the files like `also`. Where the
    Hub is out of reach the cache serves.
    Raises CheckpointError when the repository or a file does not exist or is not in the cache
    while HF_HUB_OFFLINE is set, FetchError when the Hub or the connection fails.
    """
    from huggingface_hub import hf_hub_download, snapshot_download
    from huggingface_hub.errors import EntryNotFoundError, HfHubHTTPError, LocalEntryNotFoundError

    online = _is_reachable(hub_id)
    repo, revision = hub_id.repo, hub_id.revision
    try:
        config = hf_hub_download(
            repo, "config.json", revision=revision, local_files_only=not online
        )
        if weights:
            snapshot_download(
                repo,
                revision=revision,
                allow_patterns=[*_WEIGHTS, *also],
                local_files_only=not online,
            )
    except LocalEntryNotFoundError:
        raise _not_cached(hub_id, "config.json") from None
    except EntryNotFoundError:
        raise CheckpointError(
            f"the Hub repository {hub_id} has no config.json", hint="check the name"
        ) from None
    except (HfHubHTTPError, OSError, ValueError) as error:
        raise FetchError(
            f"fetching {hub_id} from the Hub failed: {_line(error)}", hint="try again"
        ) from None
    directory = Path(config).parent
    if weights and not online and not any(directory.glob("*.safetensors")):
        raise _not_cached(hub_id, "model.safetensors")
    return directory, directory.name


def _is_reachable(hub_id: HubId) -> bool:
    """Whether the Hub answers and has the repository; its own download would retry for long."""
    from huggingface_hub import HfApi, constants
    from huggingface_hub.errors import (
        GatedRepoError,
        HfHubHTTPError,
        HFValidationError,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    # The client library differs by version; this is what its connection errors derive from.
    connection_error: type[Exception] = HfHubHTTPError.__bases__[0]
    if constants.HF_HUB_OFFLINE:
        return False
    try:
        HfApi().model_info(hub_id.repo, revision=hub_id.revision, timeout=_ANSWER_SECONDS)
    except GatedRepoError:
        raise CheckpointError(
            f"the Hub repository {hub_id} is gated", hint="accept its terms and set HF_TOKEN"
        ) from None
    except RevisionNotFoundError:
        raise CheckpointError(
            f"the Hub repository {hub_id.repo} has no revision {hub_id.revision}",
            hint="check the part after @",
        ) from None
    except RepositoryNotFoundError:
        raise CheckpointError(
            f"there is no local path {hub_id}, and no Hub repository of that name that you may"
            " read",
            hint="check the name, or set HF_TOKEN for a private one",
        ) from None
    except HFValidationError as error:
        raise CheckpointError(
            f"{str(hub_id)!r} is no Hub id: {_line(error)}", hint="check the name"
        ) from None
    except HfHubHTTPError as error:
        raise FetchError(
            f"asking the Hub for {hub_id} failed: {_line(error)}", hint="try again"
        ) from None
    except (connection_error, OSError):
        return False
    return True


def _not_cached(hub_id: HubId, file: str) -> CheckpointError | FetchError:
    from huggingface_hub import constants

    missing = (
        f"there is no local path {hub_id}, and {file} of the Hub repository {hub_id} is not in the"
        " local cache"
    )
    if constants.HF_HUB_OFFLINE:
        return CheckpointError(
            f"{missing} while HF_HUB_OFFLINE is set",
            hint=f"unset HF_HUB_OFFLINE, or run: hf download {hub_id.repo}",
        )
    return FetchError(
        f"{missing} while the Hub cannot be reached", hint="check the path, or the connection"
    )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200].rstrip(".")

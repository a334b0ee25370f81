"""Hub ids and the files behind them, through huggingface_hub."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from eyas.errors import CheckpointError, FetchError

_ID = re.compile(
    r"(?P<repo>[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@(?P<revision>[A-Za-z0-9][\w./-]*))?"
)
_WEIGHTS = ("config.json", "*.safetensors", "model.safetensors.index.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class HubId:
    """A model repository and, where given, a branch, tag or commit."""

    repo: str
    revision: str | None


def parse_hub_id(text: str) -> HubId | None:
    """`text` as ``org/name`` or ``org/name@revision``, with or without ``hf://``; else None."""
    match = _ID.fullmatch(text.removeprefix("hf://"))
    if match is None or ".." in text:
        return None
    return HubId(repo=match["repo"], revision=match["revision"])


def fetch(hub_id: HubId, *, weights: bool) -> tuple[Path, str]:
    """The snapshot directory of a repository and its commit.

    Only config.json is fetched unless `weights`. Raises CheckpointError when the repository or
    the file does not exist or, offline, is not in the cache; FetchError when the Hub fails.
    """
    from huggingface_hub import constants, hf_hub_download, snapshot_download
    from huggingface_hub.errors import (
        EntryNotFoundError,
        GatedRepoError,
        HFValidationError,
        LocalEntryNotFoundError,
        OfflineModeIsEnabled,
        RepositoryNotFoundError,
        RevisionNotFoundError,
    )

    repo, revision = hub_id.repo, hub_id.revision
    name = repo if revision is None else f"{repo}@{revision}"
    try:
        config = hf_hub_download(repo, "config.json", revision=revision)
        if weights:
            snapshot_download(repo, revision=revision, allow_patterns=list(_WEIGHTS))
    except GatedRepoError:
        raise CheckpointError(
            f"the Hub repository {name} is gated", hint="accept its terms and set HF_TOKEN"
        ) from None
    except RevisionNotFoundError:
        raise CheckpointError(
            f"the Hub repository {repo} has no revision {revision}", hint="check the part after @"
        ) from None
    except RepositoryNotFoundError:
        raise CheckpointError(
            f"there is no local path {name} and no Hub repository of that name that you may read",
            hint="check the name, or set HF_TOKEN for a private one",
        ) from None
    except (LocalEntryNotFoundError, OfflineModeIsEnabled) as error:
        if constants.HF_HUB_OFFLINE:
            raise CheckpointError(
                f"there is no local path {name}, and config.json of the Hub repository {name} is"
                " not in the local cache while HF_HUB_OFFLINE is set",
                hint=f"unset HF_HUB_OFFLINE, or run: hf download {repo}",
            ) from None
        raise FetchError(
            f"there is no local path {name}, and the Hub could not be asked for {name}:"
            f" {_line(error)}",
            hint="check the path, or the connection",
        ) from None
    except EntryNotFoundError:
        raise CheckpointError(
            f"the Hub repository {name} has no config.json", hint="check the name"
        ) from None
    except HFValidationError as error:
        raise CheckpointError(f"{name!r} is no Hub id: {_line(error)}") from None
    except (OSError, ValueError) as error:
        raise FetchError(
            f"fetching {name} from the Hub failed: {_line(error)}", hint="try again"
        ) from None
    directory = Path(config).parent
    return directory, directory.name


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:200]

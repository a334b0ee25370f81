"""A Hub on this machine, and huggingface_hub pointed at it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from tests.checkpoint.hub_server import Hub, serve


@pytest.fixture(scope="session")
def client() -> Iterator[None]:
    """huggingface_hub's HTTP client, which is slow to make and wants to be closed."""
    from huggingface_hub import close_session

    yield
    close_session()


@pytest.fixture
def hub_of(
    client: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Callable[..., Hub]]:
    """Serves files as the repository org/drafter, with an empty cache and no token."""
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "no-token"))
    monkeypatch.delenv("HF_TOKEN", raising=False)
    monkeypatch.chdir(tmp_path)
    with ExitStack() as stack:

        def start(files: dict[str, bytes | Path], *, redirects: bool = False) -> Hub:
            storage = stack.enter_context(serve(Hub(files=files))) if redirects else None
            hub = Hub(files=files)
            if storage is not None:
                hub.asked, hub.faults, hub.storage = storage.asked, storage.faults, storage.address
            stack.enter_context(serve(hub))
            template = hub.address + "/{repo_id}/resolve/{revision}/{filename}"
            monkeypatch.setattr(constants, "ENDPOINT", hub.address)
            monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
            return hub

        yield start

"""What the Hub says when it does not give a file, or the connection breaks, as one sentence."""

from __future__ import annotations

from collections.abc import Mapping

from eyas.errors import CheckpointError, FetchError

_TOKEN = "set HF_TOKEN to a token that may read it"


def refusal(status: int, headers: Mapping[str, str], what: str) -> CheckpointError | FetchError:
    """The error for an answer of HTTP `status` and `headers` to the question for `what`."""
    if headers.get("X-Error-Code") == "GatedRepo":
        return CheckpointError(
            f"{what} is gated ({status})", hint="accept its terms on the Hub and set HF_TOKEN"
        )
    if status == 401:
        return CheckpointError(f"the Hub gives {what} only to those it knows (401)", hint=_TOKEN)
    if status == 403:
        return CheckpointError(f"the Hub forbids the reading of {what} (403)", hint=_TOKEN)
    if status == 404:
        return CheckpointError(f"the Hub does not have {what} (404)", hint="check the name")
    if status == 429:
        wait = headers.get("Retry-After", "")
        when = f"in {wait} seconds" if wait.isdecimal() and len(wait) < 6 else "in some minutes"
        return FetchError(
            f"the Hub has had too many requests, asked for {what} (429)",
            hint=f"try again {when}, or set HF_TOKEN",
        )
    if status >= 500:
        return FetchError(f"the Hub failed, asked for {what} ({status})", hint="try again later")
    return FetchError(
        f"the Hub answered {status}, asked for {what}", hint="check HF_ENDPOINT, or try again"
    )


def connection_error() -> type[Exception]:
    """What the errors of the HTTP client derive from; which client it is differs by version."""
    from huggingface_hub.errors import HfHubHTTPError

    base: type[Exception] = HfHubHTTPError.__bases__[0]
    return base


def failure(error: Exception, what: str) -> FetchError:
    """The error for a connection that broke, or an answer without sense."""
    return FetchError(f"fetching {what} from the Hub failed: {one_line(error)}", hint="try again")


def one_line(error: Exception) -> str:
    """The text of `error`, short enough for a sentence."""
    return " ".join(str(error).split())[:200].rstrip(".") or type(error).__name__

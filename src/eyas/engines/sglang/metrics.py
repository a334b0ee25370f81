"""What SGLang would report of given rounds, by version: log line, gauges, server and request.

SGLang's N (speculative_num_draft_tokens) counts the root of the draft, so a chain of K drafts has
N = K + 1.
"""

from __future__ import annotations

from eyas.engines.metric import Metric, MetricValue, Tally, ratio
from eyas.engines.version import Version, version_of
from eyas.spec import Claim


def _claim(text: str, version: str, file: str, lines: str) -> Claim:
    return Claim(
        text=text, project="sglang", version=version, file=f"sglang/srt/{file}", lines=lines
    )


LENGTH = _claim(
    "accept len is (accepted drafts + one bonus a verification) / verifications, of one log window",
    "0.5.23",
    "managers/scheduler_components/metrics_reporter.py",
    "973",
)
LENGTH_CUT = _claim(
    "drafts accepted past the end of an answer are taken out of accept len again",
    "0.5.10.post1",
    "speculative/eagle_info.py",
    "396-436",
)
RATE = _claim(
    "accept rate is accepted drafts / (verifications × (N - 1)): a dead drafter shows 0",
    "0.5.11",
    "observability/scheduler_metrics_mixin.py",
    "531-543",
)
RATE_WITH_BONUS = _claim(
    "accept rate is (accepted drafts + bonus tokens) / (verifications × N): a dead drafter shows"
    " 1/N",
    "0.5.10.post1",
    "observability/scheduler_metrics_mixin.py",
    "614-628",
)
GAUGES = _claim(
    "the gauges hold the last log window; 0.0 is shown before one has closed",
    "0.5.23",
    "observability/metrics_collector.py",
    "511-521, 1674-1675",
)
LIFETIME = _claim(
    "avg_spec_accept_length is over all closed log windows since the start, the warm-up request"
    " included; absent before one has closed",
    "0.5.23",
    "managers/scheduler_components/internal_state.py",
    "123-125",
)
VERIFY_CALLS = _claim(
    "verifications are counted when a request finishes, the warm-up request included",
    "0.5.23",
    "observability/metrics_collector.py",
    "1865-1869, 2112",
)
REQUEST_LENGTH = _claim(
    "a request's spec_accept_length is completion_tokens / verifications: the token of the"
    " prompt's forward pass is in it, tokens cut at the end are not",
    "0.5.23",
    "managers/tokenizer_manager.py",
    "3166-3168",
)
REQUEST_OLD = _claim(
    "a request tells spec_accept_token_num and spec_draft_token_num",
    "0.5.10.post1",
    "managers/tokenizer_manager.py",
    "1927-1943",
)
REQUEST_MIDDLE = _claim(
    "a request tells spec_accepted_drafts and spec_proposed_drafts",
    "0.5.11",
    "managers/tokenizer_manager.py",
    "2100-2120",
)
REQUEST_BOTH = _claim(
    "a request tells spec_num_correct_drafts and spec_num_proposed_drafts, and the same again"
    " under the names of 0.5.11",
    "0.5.12",
    "managers/tokenizer_manager.py",
    "2127-2155",
)
REQUEST_NEW = _claim(
    "a request tells spec_num_correct_drafts and spec_num_proposed_drafts alone",
    "0.5.23",
    "managers/tokenizer_manager.py",
    "3162-3172",
)

_LOG, _ENDPOINT, _SERVER, _REQUEST = "log line", "/metrics", "/server_info", "meta_info"
_WINDOW = "of the last log window alone, which may be a few rounds"
_UNRECORDED = "whether tokens cut at the end of an answer count was not observed for this version"


def metrics(version: Version, tally: Tally) -> tuple[Metric, ...]:
    """The numbers of SGLang `version`, were all of `tally` one log window."""
    length, length_claim = _length(version, tally)
    rate, rate_claim = _rate(version, tally)
    caution = None
    if version_of("0.5.12") <= version < version_of("0.5.16"):
        caution = _UNRECORDED
    shown = [
        Metric(where=_LOG, name="accept len", value=length, claim=length_claim, caution=caution),
        Metric(where=_LOG, name="accept rate", value=rate, claim=rate_claim),
        Metric(
            where=_ENDPOINT,
            name="sglang:spec_accept_length",
            value=0.0 if length is None else length,
            claim=GAUGES,
            caution=_WINDOW,
        ),
        Metric(
            where=_ENDPOINT,
            name="sglang:spec_accept_rate",
            value=0.0 if rate is None else rate,
            claim=GAUGES,
            caution=_WINDOW,
        ),
        Metric(where=_SERVER, name="avg_spec_accept_length", value=length, claim=LIFETIME),
    ]
    if version >= version_of("0.5.13"):
        shown.append(
            Metric(
                where=_ENDPOINT,
                name="sglang:spec_verify_calls_total",
                value=tally.rounds or None,
                claim=VERIFY_CALLS,
            )
        )
    return (*shown, *_of_a_request(version, tally))


def _length(version: Version, tally: Tally) -> tuple[float | None, Claim]:
    if version < version_of("0.5.12"):
        return ratio(tally.delivered - tally.requests, tally.rounds), LENGTH_CUT
    return ratio(tally.rounds + tally.accepted, tally.rounds), LENGTH


def _rate(version: Version, tally: Tally) -> tuple[float | None, Claim]:
    if version < version_of("0.5.11"):
        kept = tally.delivered - tally.requests
        return ratio(kept, tally.rounds * (tally.steps + 1)), RATE_WITH_BONUS
    if version < version_of("0.5.12"):
        return ratio(tally.delivered - tally.requests - tally.rounds, tally.drafted), RATE
    return ratio(tally.accepted, tally.drafted), RATE


def _of_a_request(version: Version, tally: Tally) -> tuple[Metric, ...]:
    """The keys of meta_info; a request without a round has none of them."""
    claim, counts, histograms = _request_keys(version)
    present = tally.rounds > 0

    def metric(name: str, value: MetricValue | None, claim: Claim, caution: str | None) -> Metric:
        shown = value if present else None
        return Metric(where=_REQUEST, name=name, value=shown, claim=claim, caution=caution)

    filled = max((i + 1 for i, n in enumerate(tally.histogram) if n), default=0)
    return (
        metric(
            "spec_accept_length",
            ratio(tally.delivered, tally.rounds),
            REQUEST_LENGTH,
            "counts the prompt's own token: a dead drafter reads a little over 1",
        ),
        metric("spec_accept_rate", ratio(tally.accepted, tally.drafted), claim, None),
        *(metric(accepted, tally.accepted, claim, None) for accepted, _ in counts),
        *(metric(drafted, tally.drafted, claim, None) for _, drafted in counts),
        metric("spec_verify_ct", tally.rounds, claim, None),
        *(metric(name, tally.histogram[:filled], claim, None) for name in histograms),
    )


_OLD = ("spec_accept_token_num", "spec_draft_token_num")
_MIDDLE = ("spec_accepted_drafts", "spec_proposed_drafts")
_NEW = ("spec_num_correct_drafts", "spec_num_proposed_drafts")
_OLD_HISTOGRAM, _NEW_HISTOGRAM = "spec_accept_histogram", "spec_correct_drafts_histogram"


def _request_keys(
    version: Version,
) -> tuple[Claim, tuple[tuple[str, str], ...], tuple[str, ...]]:
    """The names for accepted and drafted, and for the histogram, with the line that sets them."""
    if version < version_of("0.5.11"):
        histogram = (_OLD_HISTOGRAM,) if version >= version_of("0.5.9") else ()
        return REQUEST_OLD, (_OLD,), histogram
    if version < version_of("0.5.12"):
        return REQUEST_MIDDLE, (_MIDDLE,), (_OLD_HISTOGRAM,)
    if version < version_of("0.5.21"):
        return REQUEST_BOTH, (_NEW, _MIDDLE), (_NEW_HISTOGRAM, _OLD_HISTOGRAM)
    return REQUEST_NEW, (_NEW,), (_NEW_HISTOGRAM,)

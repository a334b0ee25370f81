"""What vLLM would report of given rounds: counters, the log line, the numbers of a request."""

from __future__ import annotations

from eyas.engines.metric import Metric, MetricValue, Tally, ratio
from eyas.engines.version import Version
from eyas.spec import Claim

_METRICS = "vllm/v1/spec_decode/metrics.py"
_STATS = "vllm/v1/metrics/stats.py"


def _claim(text: str, file: str, lines: str) -> Claim:
    return Claim(text=text, project="vllm", version="0.32.0", file=file, lines=lines)


COUNTERS = _claim(
    "drafts, draft tokens and accepted tokens are counted over the server's life, a step that"
    " drafts nothing not at all",
    _METRICS,
    "228-232, 266-280",
)
PER_POSITION = _claim(
    "accepted tokens are counted per draft position, from position 0", _METRICS, "253-264"
)
LOG_LENGTH = _claim(
    "mean acceptance length is 1 + accepted / drafts: the bonus token included", _METRICS, "114"
)
LOG_RATE = _claim(
    "draft acceptance rate is accepted / draft tokens, in per cent", _METRICS, "107-111"
)
LOG_POSITIONS = _claim(
    "the rate of a position is its accepted tokens / drafts, not conditional on the position"
    " before it",
    _METRICS,
    "116-118",
)
REQUEST = _claim(
    "a request's metrics hold rounds, drafts and accepted drafts; without a round the length is"
    " given as 1.0",
    _STATS,
    "406-417",
)

_ENDPOINT, _LOG, _REQUEST = "/metrics", "log line", "metrics.speculative_decoding of a request"
_WINDOW = "the log line covers ten seconds at a time, the counters the server's life"


def metrics(version: Version, tally: Tally) -> tuple[Metric, ...]:
    """The numbers of vLLM `version`, as 0.32.0 computes them."""
    length = 1 + tally.accepted / tally.rounds if tally.rounds else None
    rate = ratio(tally.accepted, tally.drafted)
    positions = tuple(n / tally.rounds for n in tally.accepted_at) if tally.rounds else None
    counters = {
        "vllm:spec_decode_num_drafts_total": tally.rounds,
        "vllm:spec_decode_num_draft_tokens_total": tally.drafted,
        "vllm:spec_decode_num_accepted_tokens_total": tally.accepted,
    }
    return (
        *(
            Metric(where=_ENDPOINT, name=name, value=value, claim=COUNTERS)
            for name, value in counters.items()
        ),
        Metric(
            where=_ENDPOINT,
            name="vllm:spec_decode_num_accepted_tokens_per_pos_total",
            value=tally.accepted_at,
            claim=PER_POSITION,
        ),
        Metric(
            where=_LOG,
            name="Mean acceptance length",
            value=length,
            claim=LOG_LENGTH,
            caution=_WINDOW,
        ),
        Metric(
            where=_LOG, name="Per-position acceptance rate", value=positions, claim=LOG_POSITIONS
        ),
        Metric(
            where=_LOG,
            name="Avg Draft acceptance rate (%)",
            value=None if rate is None else 100 * rate,
            claim=LOG_RATE,
        ),
        *_of_a_request(tally, length),
    )


def _of_a_request(tally: Tally, length: float | None) -> tuple[Metric, ...]:
    values: dict[str, MetricValue] = {
        "num_spec_steps": tally.rounds,
        "num_draft_tokens": tally.drafted,
        "num_accepted_draft_tokens": tally.accepted,
        "draft_acceptance_rate": ratio(tally.accepted, tally.drafted) or 0.0,
        "acceptance_histogram": tally.histogram,
    }
    return (
        Metric(
            where=_REQUEST,
            name="mean_acceptance_length",
            value=1.0 if length is None else length,
            claim=REQUEST,
            caution="1.0 with num_spec_steps 0 is a request without a round, not a dead drafter",
        ),
        *(
            Metric(where=_REQUEST, name=name, value=value, claim=REQUEST)
            for name, value in values.items()
        ),
    )

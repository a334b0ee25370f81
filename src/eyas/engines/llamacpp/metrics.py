"""What llama.cpp's server would report of given rounds: counters, the log line, a response."""

from __future__ import annotations

from eyas.engines.llamacpp.claims import claim
from eyas.engines.metric import Metric, MetricValue, Tally, ratio
from eyas.engines.version import Version

COUNTERS = claim(
    "verification steps, draft tokens and accepted tokens are counted over the server's life",
    "tools/server/server-task.cpp",
    "1553-1565",
)
PER_POSITION = claim(
    "accepted tokens are counted per draft position, from position 0; without a draft there is no"
    " series",
    "tools/server/server-task.cpp",
    "1605-1614",
)
LOG = claim(
    "draft acceptance is accepted / generated draft tokens, mean len is 1 + accepted / verification"
    " steps; nothing is said where nothing was drafted",
    "tools/server/server-context.cpp",
    "633-649",
)
TIMINGS = claim(
    "the timings of a response have draft_n and draft_n_accepted, unless nothing was drafted",
    "tools/server/server-common.cpp",
    "99-102",
)

_ENDPOINT, _LOG, _RESPONSE = "/metrics", "log line", "timings of a response"
_SHORTER = "drafts are shortened to what is left of an answer: there are fewer than rounds x steps"


def metrics(version: Version, tally: Tally) -> tuple[Metric, ...]:
    """The numbers of build `version`."""
    del version  # one build is known
    drafted = tally.drafted > 0
    length = 1 + tally.accepted / tally.rounds if tally.rounds else None
    counters: dict[str, int] = {
        "llamacpp:spec_decode_num_drafts_total": tally.rounds,
        "llamacpp:spec_decode_num_draft_tokens_total": tally.drafted,
        "llamacpp:spec_decode_num_accepted_tokens_total": tally.accepted,
    }
    timings: dict[str, MetricValue | None] = {
        "draft_n": tally.drafted if drafted else None,
        "draft_n_accepted": tally.accepted if drafted else None,
    }
    return (
        *(
            Metric(where=_ENDPOINT, name=name, value=value, claim=COUNTERS, caution=_SHORTER)
            for name, value in counters.items()
        ),
        Metric(
            where=_ENDPOINT,
            name="llamacpp:spec_decode_num_accepted_tokens_per_pos_total",
            value=tally.accepted_at if drafted else None,
            claim=PER_POSITION,
        ),
        Metric(
            where=_LOG,
            name="draft acceptance",
            value=ratio(tally.accepted, tally.drafted),
            claim=LOG,
        ),
        Metric(where=_LOG, name="mean len", value=length, claim=LOG),
        *(
            Metric(where=_RESPONSE, name=name, value=value, claim=TIMINGS, caution=_SHORTER)
            for name, value in timings.items()
        ),
    )

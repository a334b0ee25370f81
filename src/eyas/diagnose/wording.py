"""What a cause says, and what to type against it where no rule of `eyas check` advises better."""

from __future__ import annotations

from shlex import quote

from eyas.checks import Report
from eyas.diagnose.causes import RULES, CauseId

SENTENCES: dict[CauseId, str] = {
    CauseId.REFUSED: "the engine does not start with this drafter",
    CauseId.ARCHITECTURE: "no reader knows this class of drafter",
    CauseId.LAYER_LOST: "a decoder layer of the drafter is not loaded",
    CauseId.FUSION_LOST: "fc, which fuses the target's states, is not there",
    CauseId.MATRIX_LOST: "matrices of the drafter are not there",
    CauseId.NORM_LOST: "norms of the drafter are not there",
    CauseId.HEAD_LOST: "the drafter's head is not there",
    CauseId.STALE_FILE: "weights of another file are read over the drafter's",
    CauseId.FUSION_BYPASSED: "the target's states are not fused: fc never runs",
    CauseId.BOUNDARIES: "the drafter is given other states of the target than it was trained on",
    CauseId.TOKEN_SHIFT: "tokens are paired with states of another position than in training",
    CauseId.MAP_LOST: "draft ids are taken for the target's: there is no map",
    CauseId.MAP_ABSOLUTE: "d2t is read in another form than it was written in",
    CauseId.MAP_WRONG: "d2t is not the map of this head",
    CauseId.HEAD_ROWS: "the rows of the head are not in the order of the map",
    CauseId.HEAD_REPLACED: "the drafter's head is replaced by the target's",
    CauseId.HEAD_TIED: "the head is another matrix than in training",
    CauseId.EMBEDDING_WRONG: "the drafter's embedding is not the target's",
    CauseId.EMBEDDING_REPLACED: "the drafter's own embedding is replaced by the target's",
    CauseId.RESIDUAL: "norm_before_residual is not as in training",
    CauseId.FEEDBACK: "the state that is fed back is not the one of training (norm_output)",
    CauseId.ROPE: "the rotary positions are not those of training",
    CauseId.NORMS: "norms are computed otherwise than in training",
    CauseId.NORMS_SWAPPED: "hidden_norm and input_layernorm have changed places",
    CauseId.ACTIVATION: "another activation is used than in training",
    CauseId.HEADS: "the attention's heads are counted otherwise than in training",
    CauseId.SHAPES: "sizes in the config are not those of the weights",
    CauseId.DEPTH: "another number of decoder layers is built than was trained",
    CauseId.WEIGHTS_AT_INIT: "matrices hold noise: they were never trained",
    CauseId.WEIGHTS_ZERO: "weights hold nothing but zeros",
    CauseId.WEIGHTS_NAN: "weights hold numbers that are NaN or infinite",
    CauseId.WEIGHTS_REPEATED: "matrices are copies of a few rows",
    CauseId.ROWS_PERMUTED: "the rows of q and k are in another order (llama.cpp's)",
    CauseId.GATE_UP_SWAPPED: "gate_proj and up_proj have changed places",
    CauseId.KV_SWAPPED: "k_proj and v_proj have changed places",
    CauseId.UNSCALED: "weights are stored quantised, without their scale",
    CauseId.WEAK_DRAFTER: "the drafter itself is weak: no other reading of it drafts better",
    CauseId.ENGINE: "the engine accepts less than this drafter gives as it is served",
    CauseId.ENGINE_COST: "a round costs more than it should",
    CauseId.NONE: "nothing was found wrong, and no other reading is better",
}
_AGAIN = "export the drafter again from the training run"
_ADVICE: dict[CauseId, str] = {
    CauseId.WEAK_DRAFTER: "train it longer, on the target's own answers",
    CauseId.ENGINE: "compare with graphs off and at batch 1; report it with: {measure}",
    CauseId.ENGINE_COST: "look at graphs, tree width and the attention backend",
    CauseId.NONE: "{measure}",
    CauseId.EMBEDDING_WRONG: "write the target's embedding into {draft}, or leave it out",
}
_OF_WEIGHTS = frozenset(
    {
        CauseId.WEIGHTS_AT_INIT,
        CauseId.WEIGHTS_ZERO,
        CauseId.WEIGHTS_NAN,
        CauseId.WEIGHTS_REPEATED,
        CauseId.UNSCALED,
        CauseId.HEAD_ROWS,
        CauseId.MAP_WRONG,
        CauseId.ROWS_PERMUTED,
        CauseId.GATE_UP_SWAPPED,
        CauseId.KV_SWAPPED,
        CauseId.NORMS_SWAPPED,
    }
)


def command(cause: CauseId, report: Report | None, *, draft: str, target: str, config: str) -> str:
    """What to type against `cause`: what a rule advises, or where to correct it.

    `draft` and `target` are as the user typed them, and are quoted for a shell here.
    """
    draft, target = quote(draft), quote(target)
    for code in RULES.get(cause, ()):
        for finding in () if report is None else report.findings:
            if finding.code == code:
                return finding.help
    if cause in _ADVICE:
        measure = f"eyas eval {draft} --target {target} --prompts FILE"
        return _ADVICE[cause].format(draft=draft, measure=measure)
    if cause in _OF_WEIGHTS:
        return f"{_AGAIN}, then: eyas check {draft} --values"
    return f"correct it in {config}, then: eyas check {draft} --target {target}"


def places(cause: CauseId, report: Report | None) -> tuple[str, ...]:
    """What the rules found that speak of `cause`, each in a line."""
    codes = RULES.get(cause, ())
    found = () if report is None else report.findings
    return tuple(f"{f.code} {f.place}: {f.message}" for f in found if f.code in codes)[:3]

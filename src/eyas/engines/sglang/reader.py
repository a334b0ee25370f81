"""Reading a checkpoint as SGLang does: config, launch, load, and what it then computes."""

from __future__ import annotations

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.answer import Answer
from eyas.engines.launch import Settings, context_of
from eyas.engines.sglang import claims
from eyas.engines.sglang.architecture import ModelClass, model_class
from eyas.engines.sglang.contract import Contract, contract_of
from eyas.engines.sglang.drafter import draft_config, drafter_of
from eyas.engines.sglang.eagle3 import read_eagle3
from eyas.engines.sglang.latent_drafter import latent_drafter_of
from eyas.engines.sglang.launch import CONTEXT, LONGER, LONGER_KEY, WINDOW_KEY
from eyas.engines.sglang.llama import read_llama
from eyas.engines.sglang.request import Request
from eyas.engines.stop import NotCovered, Refused
from eyas.engines.version import version_of
from eyas.spec import Claim, Fact, LongContext, Served, assumed, declared


def read(
    version: str,
    runner: str | None,
    checkpoint: Checkpoint,
    target: TargetFacts | None,
    settings: Settings,
) -> Served:
    """What SGLang `version` makes of `checkpoint`; raises NotCovered."""
    contract = contract_of(version_of(version), version)
    request = Request(checkpoint=checkpoint, target=target, settings=settings, contract=contract)
    answer = Answer()
    _require_order(request)
    try:
        _read(request, answer)
    except Refused as end:
        answer.refuse(end)
    answer.long_context, why = _long_context(settings, contract)
    answer.claims.append(why)
    return answer.served("sglang", version, runner, context=context_of(settings, CONTEXT))


def _long_context(settings: Settings, contract: Contract) -> tuple[Fact[LongContext], Claim]:
    """What becomes of a target that serves more tokens than the drafter has positions."""
    whose = f"sglang {contract.version}"
    if not contract.refuses_longer:
        unguarded = assumed(LongContext.UNGUARDED, LONGER_KEY, whose=whose)
        return unguarded, claims.LONGER_CONTEXT_PASSES
    typed = settings.get(LONGER)
    if typed is None:
        return assumed(LongContext.REFUSED, LONGER_KEY, whose=whose), claims.LONGER_CONTEXT
    allowed = LongContext.EXTENDED if typed == "1" else LongContext.REFUSED
    return declared(allowed, LONGER_KEY), claims.LONGER_CONTEXT


def _require_order(request: Request) -> None:
    """Raise NotCovered for weight files that are read in whatever order the directory has them.

    All .safetensors of a directory without an index are read, and of equal names the last one
    stays. Two of them are sorted from 0.5.6.post1 on (model_loader/weight_utils.py:604), more from
    0.5.13 on (environ.py:206, model_loader/loader.py:504).
    """
    checkpoint, contract = request.checkpoint, request.contract
    several = len(checkpoint.files) + len(checkpoint.other_files)
    if checkpoint.rival is None or contract.sorts_files:
        return
    if several == 2 and contract.sorts_two_files:
        return
    raise NotCovered(
        f"{checkpoint.location} also holds {checkpoint.rival}, and SGLang {contract.version} loads"
        f" {several} files in the order of the directory: remove what is not the drafter"
    )


def _read(request: Request, answer: Answer) -> None:
    contract = request.contract
    config = draft_config(request.checkpoint, contract)
    built = model_class(config, request.checkpoint, contract)
    if request.windowed and not (contract.draft_window and built is ModelClass.EAGLE3):
        raise NotCovered(
            f"{WINDOW_KEY} is known of SGLang's {ModelClass.EAGLE3.value} alone, from 0.5.12 on"
        )
    match built:
        case ModelClass.EAGLE3:
            read_eagle3(request, drafter_of(config, contract), answer)
        case ModelClass.LATENT_EAGLE3:
            read_eagle3(request, latent_drafter_of(config, contract), answer)
        case ModelClass.LLAMA | ModelClass.EAGLE:
            read_llama(request, config, answer, eagle=built is ModelClass.EAGLE)

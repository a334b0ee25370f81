"""Which states of the target reach a drafter in vLLM, and whether fc runs over them."""

from __future__ import annotations

from eyas.checkpoint import TargetFacts
from eyas.engines.capture import Capture, target_width
from eyas.engines.stop import Refused
from eyas.engines.version import version_of
from eyas.engines.vllm import claims
from eyas.engines.vllm.drafter import Drafter
from eyas.engines.vllm.launch import METHOD_KEY
from eyas.spec import Claim, Fused, LastState, Stage, Unfused, assumed, declared

_SWITCH_IN_V2 = "0.33.0"  # the first version whose V2 runner reads use_aux_hidden_state


def conditioning_of(
    drafter: Drafter, capture: Capture, *, method: str, runner: str, version: str
) -> tuple[Fused | LastState | Unfused, list[Claim]]:
    """What the drafter is conditioned on, and the claims that say so."""
    whose = drafter.config.whose
    if method == "eagle":
        last = LastState(
            reason=declared(
                "launched with method eagle: one state, and fc is never called", METHOD_KEY
            ),
            after_final_norm=assumed(True, METHOD_KEY, whose=whose),
        )
        return last, [claims.METHOD_EAGLE, claims.LAST_STATE]
    if drafter.has_fc.value:
        fused = Fused(
            boundaries=capture.boundaries,
            count=drafter.count,
            input_norm=drafter.input_norm,
            fc_norm=drafter.fc_norm,
            bias=assumed(False, drafter.config.key("bias"), whose=whose),
        )
        return fused, [*capture.claims, claims.WIDTH]
    if captures(drafter, method=method, runner=runner, version=version):
        unfused = Unfused(
            reason=drafter.uses_states.map(
                lambda _: "use_aux_hidden_state is false: the captured states, and no fc"
            ),
            boundaries=capture.boundaries,
        )
        return unfused, [claims.AUX_OFF, claims.AUX_OFF_V2, *capture.claims]
    last = LastState(
        reason=drafter.uses_states.map(
            lambda _: "use_aux_hidden_state is false: one state, and no fc"
        ),
        after_final_norm=assumed(True, drafter.uses_states.key, whose=whose),
    )
    newer = runner == "v2"
    return last, [claims.AUX_OFF, *([claims.AUX_OFF_0330] if newer else []), claims.LAST_STATE]


def captures(drafter: Drafter, *, method: str, runner: str, version: str) -> bool:
    """Whether the target is asked for captured states; method eagle3 alone reads the switch.

    vLLM 0.32.0, v1/worker/gpu_model_runner.py 638-648 and v1/worker/gpu/model_runner.py 293-307.
    """
    if method != "eagle3":
        return method == "dflash"
    reads_switch = runner == "v1" or version_of(version) >= version_of(_SWITCH_IN_V2)
    return drafter.uses_states.value or not reads_switch


def require_width(
    drafter: Drafter,
    capture: Capture,
    conditioning: Fused | LastState | Unfused,
    target: TargetFacts | None,
    *,
    captured: bool,
) -> None:
    """Refuse where the width of the states makes the first request raise."""
    one = target_width(drafter.sizes, target)
    hidden = drafter.sizes.hidden_size.value
    if isinstance(conditioning, Unfused):
        if capture.count * one != hidden:
            raise Refused(
                Stage.FIRST_REQUEST,
                f"without fc the target still hands over {capture.count} states of {one}, together"
                f" {capture.count * one} wide, and the drafter is {hidden}",
                claims.AUX_OFF_V2,
            )
        return
    if isinstance(conditioning, LastState):
        if one != hidden:
            raise Refused(
                Stage.FIRST_REQUEST,
                f"the target's last state is {one} wide and the drafter {hidden}",
                claims.WIDTH,
            )
        return
    wanted = drafter.count.value * drafter.sizes.target_hidden_size.value
    if not captured:
        if one != wanted:
            raise Refused(
                Stage.FIRST_REQUEST,
                f"{drafter.uses_states.key} is false: the target hands over one state of {one}, and"
                f" fc takes {wanted}",
                claims.AUX_OFF_LATENT,
            )
        return
    require_captured(capture, one, wanted, claims.WIDTH)


def require_captured(capture: Capture, one: int, wanted: int, claim: Claim) -> None:
    """Refuse captured states that together are not as wide as fc takes."""
    if capture.count * one != wanted:
        raise Refused(
            Stage.FIRST_REQUEST,
            f"the target hands over {capture.count} states of {one}, together"
            f" {capture.count * one} wide, and fc takes {wanted}",
            claim,
        )

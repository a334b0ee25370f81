"""Flags and numbers of the config that steer the arithmetic, and two norms exchanged."""

from __future__ import annotations

from typing import Any

import numpy as np
from benchmarks.faults.draft import NORMS, Draft
from benchmarks.faults.kind import Draw, Kind, Part, Sign, anywhere, choose
from benchmarks.faults.setting import Setting
from benchmarks.faults.weights import held

_STATES = 3


def residual_flipped(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config says that the residual is normed, and it was not."""
    draft.config["norm_before_residual"] = not draft.config.get("norm_before_residual", False)
    return {"norm_before_residual": draft.config["norm_before_residual"]}


def feedback_flipped(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config says that the normed state is fed back, and it was not."""
    draft.config["norm_output"] = not draft.config.get("norm_output", False)
    return {"norm_output": draft.config["norm_output"]}


def norms_before_fusion(draft: Draft, draw: Draw) -> dict[str, Any]:
    """Each captured state is normed, as EAGLE-3.1 does, before an fc that knows no norms."""
    width = draft.facts()["hidden_size"]
    draft.config["fc_norm"] = True
    for number in range(_STATES):
        draft.weights[f"fc_norm.{number}.weight"] = held(np.ones(width, np.float32), "BF16")
    return {"fc_norm": True}


def norms_exchanged(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The norms of token and state stand under each other's name."""
    draft.swap("hidden_norm.weight", "input_layernorm.weight")
    return {"exchanged": NORMS[:2]}


def epsilon_of_another_scale(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The norms' epsilon is not small beside the squares that it is added to."""
    epsilon = float(np.round(10 ** draw.uniform(0, 1.5), 2))
    draft.sizes["rms_norm_eps"] = epsilon
    return {"rms_norm_eps": epsilon}


def theta_of_another_model(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The rotary base is another model's."""
    near = draft.theta
    theta = choose(
        draw, [t for t in (1e3, 1e4, 1e5, 5e5, 1e6, 1e7) if max(t / near, near / t) >= 10]
    )
    draft.set_rope(theta=theta, scaling=None)
    return {"rope_theta": theta}


def scaling_never_trained(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config scales the rotary frequencies, and training did not."""
    factor = choose(draw, (8.0, 16.0, 32.0))
    made = {
        "yarn": {"rope_type": "yarn", "factor": factor, "original_max_position_embeddings": 2048},
        "linear": {"rope_type": "linear", "factor": factor},
        "llama3": {
            "rope_type": "llama3",
            "factor": factor,
            "low_freq_factor": 1.0,
            "high_freq_factor": 4.0,
            "original_max_position_embeddings": 256,
        },
    }
    name = choose(draw, tuple(made))
    draft.set_rope(theta=draft.theta, scaling=made[name])
    return {"rope_scaling": made[name]}


def heads_of_another_width(draft: Draft, draw: Draw) -> dict[str, Any]:
    """The config cuts the same matrices into more or fewer heads."""
    sizes = draft.sizes
    width = sizes.get("head_dim") or sizes["hidden_size"] // sizes["num_attention_heads"]
    heads, shared = sizes["num_attention_heads"], sizes["num_key_value_heads"]
    fitting = [
        new
        for new in (16, 32, 64, 96, 128, 192)
        if new != width and heads * width % new == 0 and shared * width % new == 0
    ]
    new = choose(draw, fitting)
    sizes["num_attention_heads"] = heads * width // new
    sizes["num_key_value_heads"] = shared * width // new
    sizes["head_dim"] = new
    return {"head_dim": new}


def _applied(setting: Setting) -> bool:
    """Whether the engine reads norm_before_residual."""
    return setting.engine == "vllm" and (setting.nested or setting.form == "specforge")


def _fed_back(setting: Setting) -> bool:
    """Whether the engine reads norm_output."""
    if setting.engine == "vllm":
        return setting.nested or setting.form == "specforge"
    return setting.form == "specforge" and setting.since("0.5.12")


def _normed(setting: Setting) -> bool:
    return _fed_back(setting)


def _plain(setting: Setting) -> bool:
    return setting.form != "eagle"  # whose code states no rotary base


KINDS = (
    Kind(
        name="residual-flipped",
        stands_for="K11",
        reports=("sglang#32226",),
        part=Part.RESIDUAL,
        sign=Sign.REPLAY,
        plant=residual_flipped,
        shows=_applied,
    ),
    Kind(
        name="feedback-flipped",
        stands_for="K11",
        reports=("SpecForge#879", "vllm#46488"),
        part=Part.FEEDBACK,
        sign=Sign.REPLAY,
        plant=feedback_flipped,
        shows=_fed_back,
    ),
    Kind(
        name="norms-before-fusion",
        stands_for="K11",
        reports=("vllm#38111", "speculators#670"),
        part=Part.FUSION,
        sign=Sign.REPLAY,
        plant=norms_before_fusion,
        shows=_normed,
    ),
    Kind(
        name="norms-exchanged",
        stands_for="K11",
        reports=("vllm#11672",),
        part=Part.NORMS,
        sign=Sign.REPLAY,
        plant=norms_exchanged,
        shows=anywhere,
    ),
    Kind(
        name="epsilon-of-another-scale",
        stands_for="K11",
        reports=("vllm#11672",),
        part=Part.NORMS,
        sign=Sign.REPLAY,
        plant=epsilon_of_another_scale,
        shows=anywhere,
    ),
    Kind(
        name="theta-of-another-model",
        stands_for="K17",
        reports=("sfllm#32", "SpecForge#270"),
        part=Part.ROPE,
        sign=Sign.REPLAY,
        plant=theta_of_another_model,
        shows=_plain,
    ),
    Kind(
        name="scaling-never-trained",
        stands_for="K17",
        reports=("Model-Optimizer#917", "speculators#574"),
        part=Part.ROPE,
        sign=Sign.REPLAY,
        plant=scaling_never_trained,
        shows=_plain,
    ),
    Kind(
        name="heads-of-another-width",
        stands_for="K5",
        reports=("EAGLE#223", "Model-Optimizer#398"),
        part=Part.HEADS,
        sign=Sign.REPLAY,
        plant=heads_of_another_width,
        shows=anywhere,
        silences=frozenset({Part.ROPE}),
    ),
)

"""The target as SGLang's drafter meets it: what it captures, and its embedding and head."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import sglang_world
import torch
from outcome import Unknown

# A class that looks for what leaves its last layer, when the loop over the layers has ended.
_AFTER_LOOP = re.compile(r"(end_layer|num_layers|len\(self\.layers\)) in self\.layers_to_capture")
_MARK = -1.0  # what the target's matrices hold: no code is negative


def built(config: Any, arguments: Any) -> Any:
    """The target's own class, without memory for its weights.

    Its embedding and head are one number, expanded.
    """
    sglang_world.publish(arguments)
    kind = sglang_world.class_of(config)
    try:
        sglang_world.forget_rotations()
        with torch.device("meta"):
            target = kind(config=config.hf_config, quant_config=None)
        sglang_world.forget_rotations()
    except Exception as error:
        raise Unknown(f"{kind.__name__} cannot be built on the CPU: {error}") from error
    return target


def captured(arguments: Any, config: Any, target: Any, draft: Any) -> dict[str, Any]:
    """Sets what the target captures, as the engine's runner does it, and says what that is.

    ``layer_ids`` are what the class is told to look for: k is the state that enters layer k.
    ``states`` counts those that come.
    """
    algorithm = _algorithm(arguments)
    wanted, ids = _wanted(arguments, config, draft, algorithm)
    facts: dict[str, Any] = {"captures": wanted, "layer_ids": None, "boundaries": None}
    facts["graphs_reset_ids"] = sglang_world.source_says(
        "sglang.srt.model_executor.cuda_graph_runner", "set_eagle3_layers_to_capture()"
    )
    if not wanted:
        return {**facts, "states": 1}
    configure = sglang_world.optional(
        "sglang.srt.model_executor.model_runner_components.attention_backend_setup",
        "configure_aux_hidden_state_capture",
    )
    if configure is None:
        target.set_eagle3_layers_to_capture(ids)
    else:
        configure(
            model=target,
            eagle_use_aux_hidden_state=True,
            eagle_aux_hidden_state_layer_ids=ids,
            dflash_use_aux_hidden_state=False,
            dflash_target_layer_ids=None,
            is_dspark=False,
        )
    told: list[int] = []
    end = config.num_hidden_layers
    for module in target.modules():
        if hasattr(module, "layers_to_capture"):
            told = [int(k) for k in module.layers_to_capture]
            end += bool(_AFTER_LOOP.search(inspect.getsource(type(module))))
            break
    facts["layer_ids"] = told
    facts["boundaries"] = sorted({k for k in told if 0 <= k < end})
    return {**facts, "states": len(facts["boundaries"])}


def _algorithm(arguments: Any) -> Any:
    from sglang.srt.speculative.spec_info import SpeculativeAlgorithm

    return SpeculativeAlgorithm.from_string(arguments.speculative_algorithm)


def _wanted(arguments: Any, config: Any, draft: Any, algorithm: Any) -> tuple[bool, Any]:
    """Whether the runner asks the target for states, and for which."""
    resolve = sglang_world.optional(
        "sglang.srt.speculative.spec_aux_hidden_state", "resolve_spec_aux_hidden_state_config"
    ) or sglang_world.optional(
        "sglang.srt.model_executor.model_runner_components.spec_aux_hidden_state",
        "resolve_spec_aux_hidden_state_config",
    )
    if resolve is not None:
        found = resolve(
            server_args=arguments,
            model_config=config,
            spec_algorithm=algorithm,
            is_draft_worker=False,
        )
        return bool(found.eagle_use_aux_hidden_state), found.eagle_aux_hidden_state_layer_ids
    if not algorithm.is_eagle3():
        return False, None
    # Up to 0.5.11 this is a part of ModelRunner.__init__ (0.5.8, model_executor/model_runner.py:315
    # to 338): a config without eagle_config, or without ids in it, leaves the defaults.
    table = getattr(draft.hf_config, "eagle_config", None)
    runner = "sglang.srt.model_executor.model_runner"
    if not isinstance(table, dict):
        return True, None
    switched = sglang_world.source_says(runner, '"use_aux_hidden_state"')
    wanted = table.get("use_aux_hidden_state", True) if switched else True
    return bool(wanted), table.get("eagle_aux_hidden_state_layer_ids")


@contextmanager
def shared(target: Any) -> Iterator[dict[str, torch.Tensor]]:
    """The target's embedding and head by name, for a while as one number each, expanded."""
    embed, head = (None if w is None else _marker(w) for w in target.get_embed_and_head())
    target.get_embed_and_head = lambda **_: (embed, head)
    try:
        yield {"embed_tokens.weight": embed, "lm_head.weight": head}
    finally:
        del target.get_embed_and_head


def join(arguments: Any, config: Any, target: Any, drafter: Any) -> None:
    """Puts the target's embedding and head where the engine's worker puts them."""
    worker = sglang_world.optional("sglang.srt.speculative.eagle_worker_v2", "EagleDraftWorker")
    runner = SimpleNamespace(
        model=target, model_config=config, load_config=sglang_world.load_config(arguments)
    )
    fake = SimpleNamespace(
        target_worker=SimpleNamespace(model_runner=runner),
        draft_runner=SimpleNamespace(model=drafter),
        speculative_algorithm=_algorithm(arguments),
        hot_token_id=None,
    )
    if worker is None:
        _join_as_before(fake, *target.get_embed_and_head())
        return
    resolve = getattr(worker, "_resolve_shared_embed_and_head", None)
    if resolve is not None:
        fake._resolve_shared_embed_and_head = lambda: resolve(fake)
    worker.init_lm_head(fake)


def _join_as_before(fake: Any, embed: Any, head: Any) -> None:
    """What EAGLEWorker.__init__ did before it had a method for it (0.5.4, eagle_worker.py:125)."""
    drafter = fake.draft_runner.model
    if not fake.speculative_algorithm.is_eagle3():
        drafter.set_embed_and_head(embed, head)
        return
    if getattr(drafter, "load_lm_head_from_target", False):
        drafter.set_embed_and_head(embed, head)
    else:
        drafter.set_embed(embed)
    if drafter.hot_token_id is not None:
        fake.hot_token_id = drafter.hot_token_id.to(embed.device)


def _marker(weight: torch.Tensor) -> torch.nn.Parameter:
    return torch.nn.Parameter(torch.full((1, 1), _MARK).expand(weight.shape), False)

"""vLLM serving one drafter, in a process of its own: its answers, its counters, its states.

    python vllm_serve.py JOBS.json OUT.jsonl

Run by the Python that vLLM is installed for; needs nothing of eyas. JOBS.json is a list of one job:
``target`` and ``draft`` (directories; without a draft the target answers alone), ``method`` (None:
vLLM guesses), ``steps``, ``prompts`` (token ids), ``max_new``, and ``states``, a file for what goes
through the drafter, or None. OUT.jsonl gets one JSON object: how far vLLM came (``status``,
``stage``, ``error``), the answers' tokens, and what its own counters say.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

# Before vLLM is imported: nothing leaves this machine, and no other process is started.
os.environ.update(
    HF_HUB_OFFLINE="1",
    TRANSFORMERS_OFFLINE="1",
    VLLM_NO_USAGE_STATS="1",
    DO_NOT_TRACK="1",
    VLLM_ENABLE_V1_MULTIPROCESSING="0",
    VLLM_CPU_KVCACHE_SPACE="1",
    VLLM_CPU_OMP_THREADS_BIND="nobind",
    VLLM_TARGET_DEVICE="cpu",
    CUDA_VISIBLE_DEVICES="",
)

_NO_ENGINE = 3
_COUNTERS = "vllm:spec_decode_num_"


def main(jobs: str, out: str) -> int:
    """Answers the job; 3 where vLLM cannot be imported."""
    (job,) = json.loads(Path(jobs).read_text(encoding="utf-8"))
    try:
        import vllm
    except Exception as error:  # noqa: BLE001 - told by the parent as one sentence
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return _NO_ENGINE
    record: dict[str, Any] = {"status": "ok", "stage": None, "error": None}
    stage = "load"
    try:
        engine = started(vllm, job)
        stage = "first request"
        record |= answered(vllm, engine, job)
    except Exception as error:  # noqa: BLE001 - what vLLM does is what is asked
        message = " ".join(str(error).split())[:1000]
        record |= {"status": "raises", "stage": stage}
        record["error"] = {"type": type(error).__name__, "message": message}
    Path(out).write_text(json.dumps(record) + "\n", encoding="utf-8")
    sys.stdout.flush()
    os._exit(0)  # its threads do not always end


def started(vllm: Any, job: dict[str, Any]) -> Any:
    """vLLM in float32 without compiled graphs; greedy answers are then the target's own."""
    speculative = None
    if job["draft"] is not None:
        speculative = {"model": job["draft"], "num_speculative_tokens": job["steps"]}
        if job["method"] is not None:
            speculative["method"] = job["method"]
    return vllm.LLM(
        model=job["target"],
        speculative_config=speculative,
        dtype="float32",
        enforce_eager=True,
        enable_prefix_caching=False,
        max_model_len=1024,
        max_num_seqs=8,
        max_num_batched_tokens=2048,
        disable_log_stats=False,
        per_request_spec_decode_metrics="none" if speculative is None else "detailed",
        seed=0,
    )


def answered(vllm: Any, engine: Any, job: dict[str, Any]) -> dict[str, Any]:
    """The answers and the counters; the first prompt's states go to a file where one is named."""
    sampling = vllm.SamplingParams(
        temperature=0.0, max_tokens=job["max_new"], ignore_eos=True, detokenize=False
    )
    prompts = [{"prompt_token_ids": ids} for ids in job["prompts"]]
    if job["states"] is not None:
        seen = Seen(runner_of(engine).drafter.model)
        engine.generate(prompts[:1], sampling, use_tqdm=False)
        seen.write(Path(job["states"]))
    before = counters(engine)
    outputs = engine.generate(prompts, sampling, use_tqdm=False)
    after = counters(engine)
    counted = {name: _difference(after[name], before.get(name)) for name in after}
    answers = [output.outputs[0] for output in outputs]
    rounds = [answer.spec_decode_metrics for answer in answers]
    return {
        "tokens": [list(answer.token_ids) for answer in answers],
        "accepted_by_round": [r.per_step_accepted for r in rounds if r is not None],
        "rounds": counted.get("drafts"),
        "drafted": counted.get("draft_tokens"),
        "accepted": counted.get("accepted_tokens"),
        "accepted_at": counted.get("accepted_tokens_per_pos"),
    }


def counters(engine: Any) -> dict[str, Any]:
    """vLLM's own spec_decode counters, by the end of their names."""
    found = {}
    for metric in engine.get_metrics():
        if metric.name.startswith(_COUNTERS):
            value = getattr(metric, "values", None)
            found[metric.name.removeprefix(_COUNTERS)] = metric.value if value is None else value
    return found


def _difference(after: Any, before: Any) -> Any:
    if isinstance(after, list):
        return [a - b for a, b in zip(after, before or [0] * len(after), strict=True)]
    return after - (before or 0)


def runner_of(engine: Any) -> Any:
    """The runner of the one worker that is in this process."""
    return engine.llm_engine.model_executor.driver_worker.worker.model_runner


class Seen:
    """What goes through a drafter: each call's tensors, in order."""

    def __init__(self, drafter: Any) -> None:
        self._tensors: dict[str, Any] = {}
        self._calls = 0
        self._restore = [self._wrap(drafter, "combine_hidden_states", self._combined)]
        self._restore.append(self._wrap(drafter, "forward", self._forwarded))

    def write(self, file: Path) -> None:
        """Writes the tensors as safetensors, and listens no longer."""
        from safetensors.torch import save_file

        for restore in self._restore:
            restore()
        save_file(self._tensors, file)

    def _wrap(self, drafter: Any, name: str, hear: Any) -> Any:
        real = getattr(drafter, name)

        def heard(*args: Any, **kwargs: Any) -> Any:
            result = real(*args, **kwargs)
            hear(result, *args, **kwargs)
            return result

        setattr(drafter, name, heard)
        return lambda: setattr(drafter, name, real)

    def _keep(self, **tensors: Any) -> None:
        for name, tensor in tensors.items():
            self._tensors[f"{self._calls}.{name}"] = tensor.detach().clone().contiguous()

    def _combined(self, fused: Any, hidden_states: Any) -> None:
        self._keep(captured=hidden_states, fused=fused)

    def _forwarded(
        self,
        result: Any,
        input_ids: Any,
        positions: Any,
        hidden_states: Any,
        inputs_embeds: Any = None,
    ) -> None:
        post_norm, pre_norm = result
        self._keep(ids=input_ids, positions=positions, post_norm=post_norm, pre_norm=pre_norm)
        self._keep(hidden=hidden_states)
        self._calls += 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

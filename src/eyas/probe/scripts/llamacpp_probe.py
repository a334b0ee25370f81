"""Whether llama.cpp's own loader really takes a GGUF drafter.

    python llamacpp_probe.py JOBS.json OUT.jsonl

Run by the Python that xllamacpp is installed for; needs nothing of eyas. JOBS.json is a list of
jobs: ``draft`` (a .gguf file) and ``target`` (a directory with a config.json, or null). llama.cpp
loads all of a file or refuses it: a tensor that is missing, of another shape, or not asked for ends
the load. So the record has no account of parameters, and says whether and where it ends, in
llama.cpp's own words. Beside a Llama, for which llamacpp_target.py stands in, its server is started
with the drafter and answers a prompt; beside another target, or none, ``joined`` says that what the
graph asks for was not seen. A file that makes it abort ends a process of its own.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import os
import re
import signal
import sys
import tempfile
import traceback
from pathlib import Path
from typing import Any

from llamacpp_target import Target, write_target

_ERROR = 4  # GGML_LOG_LEVEL_ERROR
_WARNING = 3
_KEPT = 12  # lines of the log
_ABORT = re.compile(r"GGML_ASSERT|terminate called|what\(\):|GGML_ABORT|\.(c|cpp|h):\d+: ")
_SERVERS = re.compile(r"^[\d.]+ E ")  # a line of the server's log that tells an error
_NO_CAUSE = re.compile(r"ctx_other to be set|exiting due to|failed to load (draft )?model, ")
_TELLING = re.compile(f"(?i:error)|{_ABORT.pattern}|{_SERVERS.pattern}")
_JOIN, _REQUEST = "joining the target", "first request"
_STEPS, _TOKENS, _CONTEXT = 3, 6, 64
_TENSORS = "loading model tensors"  # what it says once it has read the keys
_Log = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)


class _Parameters(ctypes.Structure):
    """A struct of llama.h, passed through as it is: longer than any version's, and never read."""

    _fields_ = (("content", ctypes.c_ubyte * 1024),)


class Library:
    """llama.cpp as the wheel carries it."""

    def __init__(self) -> None:
        import xllamacpp

        # 2026.10.11549 carries build 11549, which llama.cpp itself calls b11549.
        self.version = "b" + importlib.metadata.version("xllamacpp").rpartition(".")[2]
        module = Path(xllamacpp.__file__).parent
        self.calls = ctypes.CDLL(str(next(module.glob("xllamacpp*.so"))))
        for name, result, arguments in (
            ("llama_model_default_params", _Parameters, ()),
            ("llama_model_load_from_file", ctypes.c_void_p, (ctypes.c_char_p, _Parameters)),
            ("llama_model_n_params", ctypes.c_uint64, (ctypes.c_void_p,)),
            ("llama_model_n_layer", ctypes.c_int32, (ctypes.c_void_p,)),
            ("llama_model_n_embd", ctypes.c_int32, (ctypes.c_void_p,)),
            ("llama_model_n_ctx_train", ctypes.c_int32, (ctypes.c_void_p,)),
            ("llama_log_set", None, (_Log, ctypes.c_void_p)),
            ("llama_backend_init", None, ()),
        ):
            call = getattr(self.calls, name)
            call.restype, call.argtypes = result, arguments

    def ask(self, file: str, target: Target | None, say: Any) -> None:
        """Loads `file`, and serves it beside `target`; `say` is told what came of it."""
        log = _Log(lambda level, text, _: say(("log", level, text.decode("utf-8", "replace"))))
        self.calls.llama_log_set(log, None)
        self.calls.llama_backend_init()
        model = self.calls.llama_model_load_from_file(
            os.fsencode(file), self.calls.llama_model_default_params()
        )
        if not model:
            say(("raised",))
            return
        facts = {
            "parameters": self.calls.llama_model_n_params(model),
            "num_hidden_layers": self.calls.llama_model_n_layer(model),
            "hidden_size": self.calls.llama_model_n_embd(model),
            "max_position_embeddings": self.calls.llama_model_n_ctx_train(model),
        }
        say(("facts", facts))
        if target is not None:
            self.calls.llama_log_set(_Log(), None)  # its threads do not call Python
            _serve(file, target, say)


def _serve(file: str, target: Target, say: Any) -> None:
    """Starts llama.cpp's server beside `target`, and lets it answer a prompt with its last id."""
    import xllamacpp

    say(("stage", _JOIN))
    params = xllamacpp.CommonParams()
    params.model.path = str(target.path)
    params.n_ctx, params.n_parallel, params.warmup = _CONTEXT, 1, False
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    kinds = xllamacpp.common_speculative_type
    params.speculative.types = [kinds.COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3]
    drafts = params.speculative.draft
    drafts.mparams.path = file
    drafts.n_max, drafts.n_min, drafts.p_min = _STEPS, 0, 0.0
    drafts.cpuparams.n_threads = drafts.cpuparams_batch.n_threads = 1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        say(("raised", str(error)))
        return
    say(("stage", _REQUEST))
    prompt = [0, target.tokens - 1] * 2
    greedy = {"n_predict": _TOKENS, "temperature": 0.0, "ignore_eos": True}
    given = server.handle_completions({"prompt": prompt, **greedy})
    answer = given if isinstance(given, dict) else json.loads(given)
    if "choices" not in answer:
        say(("raised", json.dumps(answer)[:500]))
    else:
        say(("served",))


def main(arguments: list[str]) -> int:
    """Does every job; 3 where xllamacpp cannot be imported."""
    jobs = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    try:
        library = Library()
    except Exception as error:  # noqa: BLE001 - told by the parent as one sentence
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        return 3
    with Path(arguments[1]).open("a", encoding="utf-8") as out:
        for job in jobs:
            with tempfile.TemporaryDirectory() as folder:
                record = record_of(library, job["draft"], job["target"], Path(folder))
            out.write(json.dumps(record) + "\n")
            out.flush()
    return 0


def record_of(library: Library, file: str, target: str | None, folder: Path) -> dict[str, Any]:
    """What a child of its own does with `file`, beside `target` where it can be stood in for."""
    beside = None if target is None else write_target(Path(target), folder / "target.gguf")
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        os.dup2(theirs, 2)  # what it says when it aborts comes the same way
        os.environ["GGML_NO_BACKTRACE"] = "1"  # which would be a debugger's
        _tell(library, file, beside, theirs)
    os.close(theirs)
    with os.fdopen(ours, "r", encoding="utf-8", errors="replace") as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    return record(library.version, lines, status)


def _tell(library: Library, file: str, target: Target | None, descriptor: int) -> None:
    def say(event: Any) -> None:
        # on a line of its own, whatever the server's log has left open
        os.write(descriptor, f"\n{json.dumps(event)}\n".encode())

    failed = True
    try:
        library.ask(file, target, say)
        failed = False
    finally:
        if failed:  # to standard error, which the record reads
            traceback.print_exc()
        os._exit(int(failed))


class Told:
    """What a child told of itself, line by line."""

    def __init__(self) -> None:
        self.facts: dict[str, Any] = {}
        self.log: list[str] = []
        self.stage: str | None = None  # beside a target
        self.reached = "config"
        self.raised = self.served = False

    def take(self, line: str) -> None:
        """One line: an event of ours, or what its server or a dying process says."""
        try:
            kind, *values = json.loads(line)
        except (ValueError, TypeError):
            if _ABORT.search(line) or (_SERVERS.search(line) and not _NO_CAUSE.search(line)):
                self.log.append(line.strip()[:500])
            return
        if kind == "log":
            self._logged(*values)
        elif kind == "facts":
            self.facts = values[0]
        elif kind == "stage":
            self.stage = values[0]
        elif kind == "served":
            self.served = True
        elif kind == "raised":
            self.raised = True
            self.log += values if not self.log else []

    def _logged(self, level: int, text: str) -> None:
        if _TENSORS in text:
            self.reached = "load"
        elif level in (_ERROR, _WARNING):
            self.log.append(text.strip()[:500])

    @property
    def words(self) -> str:
        """The last that it said of an error."""
        telling = [text for text in self.log if _TELLING.search(text)]
        return telling[-1] if telling else "it says nothing"


def record(version: str, lines: list[str], status: int) -> dict[str, Any]:
    """The record of a child that told `lines` and ended with `status`, as waitpid has it."""
    told = Told()
    for line in lines:
        told.take(line)
    end, joined = None, told.stage is not None
    if os.WIFSIGNALED(status):
        told.raised, end = True, signal.Signals(os.WTERMSIG(status)).name
    known = (told.raised or (bool(told.facts) and told.served == joined)) and end != "SIGKILL"
    raised = told.raised
    return {
        "engine": "llamacpp",
        "version": version,
        "runner": None,
        "status": ("raises" if raised else "ok") if known else "unknown",
        "stage": (told.stage or told.reached) if raised else None,
        "error": {"type": end or "error", "message": told.words} if raised or not known else None,
        "joined": joined,
        "architecture": None,
        "facts": told.facts,
        "parameters": {},
        "tensors": {},
        "overwritten": {},
        "log": told.log[-_KEPT:],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

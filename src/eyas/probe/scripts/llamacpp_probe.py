"""Whether llama.cpp's own loader really takes a GGUF drafter.

    python llamacpp_probe.py JOBS.json OUT.jsonl

Run by the Python that xllamacpp is installed for; needs nothing of eyas. JOBS.json is a list of
jobs: ``draft`` (a .gguf file). llama.cpp loads all of a file or refuses it: a tensor that is
missing, of another shape, or not asked for ends the load. So the record has no account of
parameters, and says whether and where it ends, in llama.cpp's own words. What the graph asks for is
not seen: it is drawn beside the target's. A file that makes it abort ends a process of its own.
"""

from __future__ import annotations

import ctypes
import importlib.metadata
import json
import os
import re
import signal
import sys
from pathlib import Path
from typing import Any

_ERROR = 4  # GGML_LOG_LEVEL_ERROR
_WARNING = 3
_KEPT = 12  # lines of the log
_ABORT = re.compile(r"GGML_ASSERT|terminate called|what\(\):|GGML_ABORT")
# What llama.cpp says of keys, which come before tensors.
_KEYS = re.compile(r"error loading model (hyperparameters|vocabulary|architecture)|gguf_init")
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

    def ask(self, file: str, say: Any) -> None:
        """Loads `file`; `say` is told what came of it."""
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
            out.write(json.dumps(record_of(library, job["draft"])) + "\n")
            out.flush()
    return 0


def record_of(library: Library, file: str) -> dict[str, Any]:
    """What a child of its own does with `file`."""
    ours, theirs = os.pipe()
    child = os.fork()
    if not child:
        os.close(ours)
        os.dup2(theirs, 2)  # what it says when it aborts comes the same way
        _tell(library, file, theirs)
    os.close(theirs)
    with os.fdopen(ours, "r", encoding="utf-8", errors="replace") as pipe:
        lines = pipe.read().splitlines()
    _, status = os.waitpid(child, 0)
    return record(library.version, lines, status)


def _tell(library: Library, file: str, descriptor: int) -> None:
    def say(event: Any) -> None:
        os.write(descriptor, (json.dumps(event) + "\n").encode())

    try:
        library.ask(file, say)
    finally:
        os._exit(0)


def record(version: str, lines: list[str], status: int) -> dict[str, Any]:
    """The record of a child that told `lines` and ended with `status`, as waitpid has it."""
    facts: dict[str, Any] = {}
    log: list[str] = []
    raised = False
    for line in lines:
        try:
            kind, *values = json.loads(line)
        except ValueError:  # what a dying process says
            if _ABORT.search(line):
                log.append(line.strip()[:500])
            continue
        if kind == "log" and values[0] in (_ERROR, _WARNING):
            log.append(values[1].strip()[:500])
        elif kind == "raised":
            raised = True
        elif kind == "facts":
            facts = values[0]
    end = None
    if os.WIFSIGNALED(status):
        raised, end = True, signal.Signals(os.WTERMSIG(status)).name
    words = next((text for text in reversed(log) if "error" in text.lower()), None)
    if end is not None or words is None:
        words = log[-1] if log else "it says nothing"
    return {
        "engine": "llamacpp",
        "version": version,
        "runner": None,
        "status": "raises" if raised else "ok",
        "stage": ("config" if _KEYS.search(words) else "load") if raised else None,
        "error": {"type": end or "error", "message": words} if raised else None,
        "architecture": None,
        "facts": facts,
        "parameters": {},
        "tensors": {},
        "overwritten": {},
        "log": log[-_KEPT:],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

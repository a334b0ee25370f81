"""What stands around SGLang's loader in its probe, without SGLang."""

import contextlib
import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest
import torch

import eyas.probe

SCRIPTS = Path(eyas.probe.__file__).parent / "scripts"


@pytest.fixture
def scripts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(SCRIPTS))


@pytest.fixture
def stubs(scripts: None) -> Iterator[ModuleType]:
    module = importlib.import_module("sglang_stubs")
    before = list(sys.meta_path)
    module.add("no_such_kernels")
    module.install()
    yield module
    sys.meta_path[:] = before
    module.ROOTS.remove("no_such_kernels")
    for name in [n for n in sys.modules if n.partition(".")[0] == "no_such_kernels"]:
        del sys.modules[name]


def test_a_stub_can_be_imported_decorate_and_be_a_base(stubs: ModuleType) -> None:
    deep = importlib.import_module("no_such_kernels.deep.down")

    @deep.compiled
    def doubled(number: int) -> int:
        return 2 * number

    class Layer(deep.Base):  # type: ignore[misc, name-defined]
        """A class of a stub."""

    assert doubled(4) == 8
    assert Layer.__mro__ == (Layer, object)
    assert not deep.is_there()


def test_what_is_really_installed_is_no_stub(stubs: ModuleType) -> None:
    stubs.add("struct")
    try:
        assert importlib.import_module("struct").calcsize("<q") == 8
    finally:
        stubs.ROOTS.remove("struct")


def test_a_stub_that_is_called_while_loading_is_told_even_where_that_is_caught(
    stubs: ModuleType,
) -> None:
    unknown = importlib.import_module("outcome").Unknown
    kernel = importlib.import_module("no_such_kernels").pack
    kernel()  # while the engine is imported
    with (
        pytest.raises(unknown, match=r"no_such_kernels\.pack is not installed"),
        stubs.forbid(),
        contextlib.suppress(stubs.StubCalled),
    ):
        kernel()
    with stubs.forbid():
        pass


def test_a_sum_is_traced_to_the_tensor_that_was_delivered(scripts: None) -> None:
    sums = importlib.import_module("sglang_probe").Sums()
    tensors = {"t2d": torch.ones(3), "d2t": torch.tensor([0, 5, 7])}
    with sums:
        delivered = dict(sums.deliver(tensors.items()))
        total = delivered["d2t"] + torch.arange(3)
        other = torch.arange(3) + torch.arange(3)
    assert total.tolist() == [0, 6, 9]
    assert sums.source_of(total) == "d2t"
    assert sums.source_of(other) is None
    assert sums.source_of(None) is None


def test_a_launch_line_is_taken_apart(scripts: None) -> None:
    split = importlib.import_module("sglang_launch").split
    line = ["A=1", "B=x=y", "python", "-m", "sglang.launch_server", "--model-path", "M"]
    assert split(line) == ({"A": "1", "B": "x=y"}, ["--model-path", "M"])
    assert split(["sglang", "serve", "--tp", "2"]) == ({}, ["--tp", "2"])
    with pytest.raises(ValueError, match="is not how SGLang is launched"):
        split(["python", "serve.py"])


def test_llama_cpp_is_quoted_where_it_refuses_or_dies(scripts: None) -> None:
    record_of = importlib.import_module("llamacpp_probe").record
    facts = '["facts", {"hidden_size": 8}]'
    sound = record_of("1", ['["log", 3, "a warning"]', facts], 0)
    assert (sound["status"], sound["stage"], sound["error"]) == ("ok", None, None)
    assert (sound["facts"], sound["log"]) == ({"hidden_size": 8}, ["a warning"])

    keys = "error loading model hyperparameters: key not found in model: eagle3.block_count"
    lines = [f'["log", 4, "{keys}"]', '["log", 4, "failed to load"]', '["raised"]']
    refused = record_of("1", lines, 0)
    assert (refused["status"], refused["stage"]) == ("raises", "config")
    assert refused["error"] == {"type": "error", "message": keys}

    tensors = '["log", 2, "load_tensors: loading model tensors"]'
    died = record_of("1", ["junk", tensors, "f.cpp:3: GGML_ASSERT(n == 1) failed"], 6)
    assert (died["stage"], died["error"]["type"]) == ("load", "SIGABRT")
    assert died["error"]["message"] == "f.cpp:3: GGML_ASSERT(n == 1) failed"

import pytest

from eyas.engines import EngineRef, Version
from eyas.errors import EngineError


@pytest.mark.parametrize(
    "text", ["sglang@0.5.10.post1", "vllm@0.33.0:v2", "vllm@0.32.0", "sglang@0.5.8"]
)
def test_a_reference_is_printed_as_it_is_parsed(text: str) -> None:
    assert str(EngineRef.parse(text)) == text


def test_a_list_keeps_its_order() -> None:
    refs = EngineRef.parse_list("vllm@0.32.0:v1, sglang@0.5.8")
    assert [(r.name, r.version, r.runner) for r in refs] == [
        ("vllm", "0.32.0", "v1"),
        ("sglang", "0.5.8", None),
    ]


@pytest.mark.parametrize("text", ["sglang@0.5.8,,", "SGLang@0.5.8", "sglang@0.5.8,sglang@0.5.8"])
def test_commas_case_and_repetition_do_not_matter(text: str) -> None:
    assert list(map(str, EngineRef.parse_list(text))) == ["sglang@0.5.8"]


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("sglan@0.5.8", "did you mean sglang"),
        ("tgi@1.0", "known: sglang@"),
        ("vllm", "write for example vllm@0.33.0"),
        ("vllm@", "write for example vllm@0.33.0"),
        ("vllm@newest", "'newest'"),
        ("vllm@0.33.0:v3", "known: v1, v2"),
        ("vllm@0.33.0:", "known: v1, v2"),
        ("sglang@0.5.8:v1", "without a runner"),
        (",", "knows no engine"),
        ("", "knows no engine"),
    ],
)
def test_a_wrong_reference_is_told_what_to_type(text: str, named: str) -> None:
    with pytest.raises(EngineError, match=named):
        EngineRef.parse_list(text)


def test_versions_are_ordered_as_python_packages_are() -> None:
    spelled = ["0.5.8.dev1", "0.5.8rc1", "0.5.8", "0.5.8.post1", "0.5.9", "0.5.10", "0.5.10.post1"]
    versions = [Version.parse(text) for text in spelled]
    assert sorted(versions, key=lambda v: v or Version.parse("0.0")) == versions
    assert Version.parse("0.33") == Version.parse("0.33.0+cpu")
    assert Version.parse("0.5.x") is None

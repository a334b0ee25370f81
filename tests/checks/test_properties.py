"""What holds for every drafter: a landing is a partition, dialects invert, check never breaks."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from math import prod
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.checks.case_files import FOLDERS, written

from eyas import dialects
from eyas.checkpoint import Checkpoint, TensorHeader, open_checkpoint, open_target, write_sparse
from eyas.checks import check
from eyas.convert.recheck import changes
from eyas.dialects import specforge, speculators
from eyas.engines import EngineRef, Launch, read
from eyas.errors import ConversionError, EyasError
from eyas.spec import Fate, FromTensor, Landing, Served

pytestmark = pytest.mark.usefixtures("unsynced")

ENGINES = ("sglang@0.5.8", "sglang@0.5.11", "sglang@0.5.23", "vllm@0.33.0:v1", "vllm@0.33.0:v2")
WRITERS = {specforge.name: specforge.write, speculators.name: speculators.write}
SMALL = [f for f in FOLDERS if (f / "config.json").read_text().count('"hidden_size": 8,')]


def headers(checkpoint: Checkpoint, shapes: Mapping[str, tuple[int, ...]]) -> Checkpoint:
    """`checkpoint` with other tensors, headers without bytes."""
    tensors = {
        name: TensorHeader(name=name, dtype="BF16", shape=shape, file="f.safetensors", nbytes=0)
        for name, shape in shapes.items()
    }
    return Checkpoint(
        location="drafter",
        directory=Path("nowhere"),
        config=checkpoint.config,
        config_file="config.json",
        tensors=tensors,
        files=("f.safetensors",),
        revision=None,
    )


@pytest.fixture(scope="module")
def drafters(unsynced: None, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Checkpoint]:
    """The drafter of each small case, by the case's name."""
    scratch = tmp_path_factory.mktemp("drafters")
    return {f.name: open_checkpoint(written(f, scratch / f.name)) for f in SMALL[::4]}


@st.composite
def disturbed(draw: st.DrawFn, shapes: dict[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """`shapes` in another order, with names left out and changed and sizes moved."""
    found = {}
    for name in draw(st.permutations(sorted(shapes))):
        shape = shapes[name]
        fate = draw(st.integers(0, 19))
        if fate == 0:
            continue
        if fate == 1:
            name = draw(st.sampled_from(["model.", "other.", "layers.1."])) + name
        if fate in (2, 3) and shape:
            axis = draw(st.integers(0, len(shape) - 1))
            shape = (*shape[:axis], draw(st.integers(1, 40)), *shape[axis + 1 :])
        found[name] = shape
    return found


@settings(max_examples=150, deadline=None)
@given(data=st.data())
def test_a_landing_is_a_partition(drafters: dict[str, Checkpoint], data: st.DataObject) -> None:
    drafter = drafters[data.draw(st.sampled_from(sorted(drafters)))]
    shapes = {name: header.shape for name, header in drafter.tensors.items()}
    changed = data.draw(disturbed(shapes))
    engine = EngineRef.parse(data.draw(st.sampled_from(ENGINES)))
    served = read(engine, headers(drafter, changed), target=None, launch=Launch())
    if isinstance(served, Served) and served.landing is not None:
        assert_partition(served.landing, changed)


def assert_partition(landing: Landing, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Each tensor has one fate, each row of a parameter one source, each element one place."""
    assert Counter(t.name for t in landing.tensors) == dict.fromkeys(shapes, 1)
    assert len({p.name for p in landing.parameters}) == len(landing.parameters)
    held: dict[str, list[tuple[int, int, int]]] = {}  # tensor → from row, to row, elements
    for parameter in landing.parameters:
        rows = [row for s in parameter.segments for row in range(s.start, s.stop)]
        assert rows == list(range(parameter.shape[0])), parameter.name
        for segment in parameter.segments:
            count = segment.stop - segment.start
            elements = count * prod(parameter.shape[1:])
            assert 0 <= segment.zeros <= elements
            if isinstance(segment.source, FromTensor):
                taken = (segment.offset, segment.offset + count, elements - segment.zeros)
                held.setdefault(segment.source.tensor, []).append(taken)
            else:
                assert segment.zeros == 0
    for tensor in landing.tensors:
        places = sorted(held.pop(tensor.name, []))
        for (_, end, _), (start, _, _) in pairwise(places):
            assert end <= start, f"{tensor.name} lies in two places"
        landed = sum(elements for _, _, elements in places)
        if tensor.fate is Fate.LANDED:
            assert landed > 0 or not prod(tensor.shape)
            assert landed + tensor.cut == prod(tensor.shape), tensor.name
        else:
            assert (landed, tensor.cut) == (0, 0), tensor.name
    assert held == {}


def test_what_a_dialect_writes_it_reads_again(tmp_path: Path) -> None:
    kinds: Counter[str] = Counter()
    for folder in FOLDERS[::2]:
        first = open_checkpoint(written(folder, tmp_path / folder.name))
        dialect, spec = dialects.read(first)
        if dialect.name not in WRITERS:
            continue
        roles = dialect.roles(first)
        try:
            config, names = WRITERS[dialect.name](spec, tuple(roles.values()))
        except ConversionError:
            continue  # it says that it cannot state this drafter
        kinds[dialect.name] += 1
        stored = {role: first.tensors[name] for name, role in roles.items()}
        place = write_sparse(
            tmp_path / f"{folder.name}-again",
            config,
            {names[role]: (header.dtype, header.shape) for role, header in stored.items()},
            {names[r]: first.read_bytes(h.name) for r, h in stored.items() if r in ("d2t", "t2d")},
        )
        other, again = dialects.read(open_checkpoint(place))
        assert other.name == dialect.name
        assert list(changes(spec, again)) == [], folder.name
    assert kinds[specforge.name] > 40
    assert kinds[speculators.name] > 2


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 2**40)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.sampled_from(["", "llama", "re:(", "sliding_attention", "fp8", "bfloat16", "a/b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)
KEYS = (
    *("quantization_config", "layer_types", "sliding_window", "eagle_config", "dflash_config"),
    *("speculators_config", "architectures", "mask_token_id", "block_size", "torch_dtype"),
    *("initializer_range", "rope_scaling", "rope_parameters", "transformer_layer_config"),
    *("eagle_aux_hidden_state_layer_ids", "vocab_size", "norm_output", "_name_or_path"),
)
ANY = st.dictionaries(st.sampled_from(KEYS), JSON, max_size=3)


@settings(max_examples=80, deadline=None)
@given(data=st.data())
def test_a_config_of_any_values_gives_a_report_or_one_sentence(
    drafters: dict[str, Checkpoint], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    drafter = drafters[data.draw(st.sampled_from(sorted(drafters)))]
    drafter = replace(drafter, config={**drafter.config, **data.draw(ANY)})
    target = tmp_path_factory.getbasetemp() / "target.json"
    target.write_text(json.dumps({"hidden_size": 8, "num_hidden_layers": 12} | data.draw(ANY)))
    engines = [EngineRef.parse(engine) for engine in ENGINES[1:4]]
    try:
        facts = open_target(target)
        report = check(drafter, engines, target=facts, launch=Launch(), values=True)
    except EyasError as error:
        said = error.message
    else:
        said = report.subject.path
    assert said

"""A drafter that two dialects can state goes from one to the other and back, bit for bit."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.convert.drafter_on_disk import (
    MAPS,
    TYPES,
    VOCAB,
    Held,
    as_float32_bits,
    by_role,
    eagle3_spec,
    files,
    in_parallel,
    kept_ids,
    maps_of,
    random_numbers,
    shapes_of,
    write,
)
from tests.convert.reaches import EAGLE3, EVERY, PEAGLE, Facts, common, covering
from tests.dialects.conftest import values
from tests.dialects.drawn_block import block_drafters, block_headers

from eyas import dialects
from eyas.checkpoint import Checkpoint, open_checkpoint, open_target
from eyas.checkpoint.target import TargetFacts
from eyas.convert import DialectGoal, convert
from eyas.convert.recheck import changes
from eyas.convert.search import search
from eyas.dialects import WRITABLE
from eyas.errors import ConversionError
from eyas.spec import DefaultBoundaries, DraftSpec, Eagle3Spec, Ownership, PEagleSpec

# What can be said otherwise, and so goes there, but comes back in the other words: a tied head
# stored as its own, states in the order of the layers, the other name of a norm, zeros as a bias, a
# map made for the first ids or left out where it does nothing.
_OF_LAYERS = ("hidden_norm", "input_layernorm", "qkv")
RESTATED = (("own", "tied"), "descending", "prefix", "mapped whole", *_OF_LAYERS)
_FLAT = "specforge speculators eagle angelslim modelopt torchspec automodel"
# Where a drafter of each dialect can go, and come back from: the pairs that have one in common.
EXACT = {
    "EAGLE-3": {
        **{name: f"{_FLAT} gguf".replace(name, "") for name in _FLAT.split()},
        "speculators": f"{_FLAT} deepspec gguf".replace("speculators", ""),
        "deepspec": "speculators",
        "gguf": _FLAT,
    },
    "P-EAGLE": {
        "specforge": "speculators automodel",
        "speculators": "specforge automodel",
        "automodel": "specforge speculators",
    },
}
KINDS = {"EAGLE-3": EAGLE3, "P-EAGLE": PEAGLE}


def reaches_of(pair: tuple[str, str], kind: str) -> list[Any]:
    return common(*(KINDS[kind].get(name, ()) for name in pair))


@pytest.fixture(scope="session")
def target(tmp_path_factory: pytest.TempPathFactory) -> TargetFacts:
    """A target of 10 layers with a tokenizer, which a GGUF file has a copy of."""
    directory = tmp_path_factory.mktemp("target")
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 8,
        "intermediate_size": 8,
        "num_hidden_layers": 10,
        "num_attention_heads": 2,
        "vocab_size": VOCAB,
        "max_position_embeddings": 512,
    }
    (directory / "config.json").write_text(json.dumps(config))
    vocabulary = {text: i for i, text in enumerate(["a", "b", "ab"])}
    tokenizer = {
        "model": {"type": "BPE", "vocab": vocabulary, "merges": [["a", "b"]]},
        "pre_tokenizer": {"type": "ByteLevel", "use_regex": True},
    }
    (directory / "tokenizer.json").write_text(json.dumps(tokenizer))
    return open_target(str(directory))


def sorted_by_map(parts: dict[str, Held]) -> dict[str, Held]:
    """`parts`, whose d2t holds ids, with ascending ones and the rows of the head with them."""
    if "d2t" not in parts:
        return parts
    order = np.argsort(parts["d2t"].bits)
    moved = {
        r: Held(dtype=parts[r].dtype, bits=parts[r].bits[order]) for r in ("d2t", "lm_head.weight")
    }
    return parts | moved


def assert_same_numbers(one: dict[str, Held], other: dict[str, Held]) -> None:
    assert one.keys() == other.keys()
    for name, held in one.items():
        assert held.bits.shape == other[name].bits.shape, name
        assert np.array_equal(as_float32_bits(held), as_float32_bits(other[name])), name


def facts_of(spec: DraftSpec, depth: int | None) -> Any:
    """The values of a spec; a map's form and order are left out, which every conversion settles.

    With the `depth` of the target default boundaries are what they are there: GGUF states them.
    """
    found = values(spec)
    inner = found["drafter"] if isinstance(spec, PEagleSpec) else found
    del inner["target_name"]
    if inner["vocab_order"] is not None:
        inner |= {"vocab_map": "ids", "vocab_order": "sorted"}
    if depth is not None and inner["conditioning"]["boundaries"] == DefaultBoundaries():
        inner["conditioning"]["boundaries"] = DefaultBoundaries().of(depth)
    return found


def there_and_back(
    first: Checkpoint, pair: tuple[str, str], target: TargetFacts, folder: Path
) -> tuple[Checkpoint, Checkpoint]:
    found = []
    source = first
    for name, dialect in zip("BA", reversed(pair), strict=True):
        out = folder / (f"{name}.gguf" if dialect == "gguf" else name)
        convert(source, out, DialectGoal(dialect), target=target)
        source = open_checkpoint(out)
        found.append(source)
    return found[0], found[1]


def drafter(
    path: Path, dialect: str, facts: Facts, kind: str, target: TargetFacts, random: Random, i: int
) -> Checkpoint:
    """A random drafter of `facts` as `dialect` has it, with the map and the types of turn `i`."""
    spec: Eagle3Spec | PEagleSpec = eagle3_spec(facts, random)
    if kind == "P-EAGLE":
        spec = in_parallel(eagle3_spec(facts, random), random)
    order, types = MAPS[i % len(MAPS)], list(TYPES)[i % len(TYPES)]
    if facts["vocabulary"] == "mapped whole" and order != "sorted":
        order = "unsorted"  # offsets and absolute ids of a whole vocabulary could be either
    numbers = random_numbers(shapes_of(spec, facts["attention"]), types, random.randrange(2**32))
    absolute = order.startswith("absolute") and dialect != "gguf"
    maps = maps_of(kept_ids(spec, order, random), absolute=absolute)
    return write(path, dialect, spec, numbers | maps, target)


def run(
    pair: tuple[str, str], first: Checkpoint, target: TargetFacts, folder: Path, facts: Any
) -> None:
    """Assert that `first`, of the first dialect of `pair`, comes back as it was."""
    there, back = there_and_back(first, pair, target, folder)
    assert [dialects.read(c)[0].name for c in (first, there, back)] == [*pair, pair[0]]
    before, after = (dialects.read(c)[1] for c in (first, back))
    depth = target.num_layers if "gguf" in pair else None
    assert facts_of(before, depth) == facts_of(after, depth), facts
    wanted = sorted_by_map(by_role(first))
    assert_same_numbers(wanted, by_role(there))
    assert_same_numbers(wanted, by_role(back))
    assert files(first).keys() == files(back).keys()
    if "gguf" not in pair:  # which keeps vectors in float32
        types = [{n: h.dtype for n, h in files(c).items()} for c in (first, back)]
        assert types[0] == types[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", WRITABLE)
def test_what_both_can_say_comes_back_bit_for_bit(
    source: str,
    kind: str,
    target: TargetFacts,
    tmp_path: Path,
    measured: Callable[[str], None],
) -> None:
    random, turn, table = Random(f"{source} {kind}"), 0, {}
    for goal in WRITABLE:
        before = turn
        for reach in reaches_of((source, goal), kind) if goal != source else ():
            for facts in covering(reach, random, least=len(TYPES)):
                folder = tmp_path / str(turn)
                folder.mkdir()
                first = drafter(folder / "first", source, facts, kind, target, random, turn)
                run((source, goal), first, target, folder, facts)
                turn += 1
        table[goal] = turn - before
    exact = [f"{goal} {count}" for goal, count in table.items() if count]
    measured(f"{kind} from {source} and back, drafters: {', '.join(exact) or 'none in common'}")
    assert {goal for goal, count in table.items() if count} == set(
        EXACT[kind].get(source, "").split()
    )


def beyond(pair: tuple[str, str], kind: str, random: Random) -> Iterator[Facts]:
    """Drafters that the first of `pair` can say, each with a value that the second never can.

    Where they have a drafter in common, all else of it is what both can say.
    """
    mine, theirs = (KINDS[kind].get(name, ()) for name in pair)
    known = {fact: {v for reach in theirs for v in reach[fact]} for fact in EVERY}
    for reach in mine:
        narrowed = next(iter(common((reach,), theirs)), reach)
        for fact, choices in reach.items():
            for value in choices:
                if value not in known[fact] and value not in RESTATED:
                    facts = next(covering({**narrowed, fact: (value,)}, random))
                    if facts[fact] == value:
                        yield facts


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("source", WRITABLE)
def test_what_one_of_them_cannot_say_is_refused(
    source: str, kind: str, target: TargetFacts, tmp_path: Path
) -> None:
    """So no pair and no fact was left out above that could have come back as it was."""
    random, turn = Random(f"beyond {source} {kind}"), 0
    for goal in WRITABLE:
        for facts in beyond((source, goal), kind, random):
            first = drafter(tmp_path / str(turn), source, facts, kind, target, random, 0)
            with pytest.raises(ConversionError) as caught:
                search(first, DialectGoal(goal), target=target)
            assert "cannot be written so that" in caught.value.message, facts
            turn += 1


# What two dialects can both say of a DFlash or DSpark drafter, the narrower of them first.
BLOCKS: dict[tuple[str, str], Any] = {
    ("dflash", "specforge"): block_drafters(
        causal=("none", "sliding", "all"),
        heads=False,
        anchored=False,
        owns=(Ownership.TARGET,),
        reduced=False,
        lowest=1,
        block_sizes=st.integers(1, 32),
        one_width=True,
    ),
    ("dflash", "speculators"): block_drafters(
        causal=("none", "sliding"),
        heads=False,
        anchored=False,
        owns=(Ownership.TARGET,),
        reduced=False,
        lowest=1,
        block_sizes=st.integers(1, 32),
        one_width=True,
    ),
    ("specforge", "speculators"): block_drafters(
        causal=("none", "sliding"),
        by_markov=True,
        owns=(Ownership.TARGET,),
        reduced=False,
        lowest=1,
        block_sizes=st.integers(1, 32),
        one_width=True,
    ),
    ("deepspec", "speculators"): block_drafters(
        causal=("none",),
        anchored=True,
        owns=(Ownership.OWN,),
        reduced=False,
        sliding=False,
        block_sizes=st.integers(1, 32),
        one_width=True,
    ),
}


@pytest.mark.parametrize("turned", [False, True], ids=["there", "from there"])
@pytest.mark.parametrize("pair", BLOCKS, ids="-".join)
@settings(max_examples=6, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_block_drafters_come_back_bit_for_bit(
    pair: tuple[str, str], turned: bool, data: Any, target: TargetFacts, tmp_path: Path
) -> None:
    spec = data.draw(BLOCKS[pair])
    folder = Path(tempfile.mkdtemp(dir=tmp_path))
    shapes = {role: shape for role, (_, shape) in block_headers(spec).items()}
    types, seed = data.draw(st.sampled_from(list(TYPES))), data.draw(st.integers(0, 2**32 - 1))
    parts = random_numbers(shapes, types, seed)
    way = (pair[1], pair[0]) if turned else pair
    first = write(folder / "first", way[0], spec, parts, target)

    there, back = there_and_back(first, way, target, folder)

    assert [dialects.read(c)[0].name for c in (first, there, back)] == [*way, way[0]]
    assert list(changes(dialects.read(first)[1], dialects.read(back)[1])) == []
    assert_same_numbers(files(first), files(back))
    assert_same_numbers(files(first), files(there))  # no dialect of these renames a tensor

"""What is refused has no exact form: written anyway, it is served as another drafter."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial
from itertools import chain, combinations
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
from tests.convert.cases import CASES, LLAMACPP, OLD, REFUSED, refusals
from tests.convert.drafter_on_disk import Held, by_role, eagle3_spec, maps_of, shapes_of
from tests.convert.scene import PLAIN, WIDTH, Case, Scene, difference, save_target

from eyas.checkpoint import (
    Checkpoint,
    Format,
    TensorBytes,
    open_checkpoint,
    write_checkpoint,
)
from eyas.checkpoint.gguf_tokenizer import tokenizer_keys
from eyas.checkpoint.gguf_write import write_gguf
from eyas.checkpoint.rows import Made, tensor_bytes
from eyas.convert import plan
from eyas.convert.writers import FOR_ENGINES, Writer
from eyas.dialects.gguf_rows import made, stored
from eyas.engines import EngineRef
from eyas.errors import ConversionError, UnsupportedError
from eyas.model.trained import trained_drafter
from eyas.spec import Eagle3Spec, LaterNorm, VocabMap

APART = 1e-3
Parts = Mapping[str, Held]
# No form of latent attention is served there, so that there are no logits to see.
UNSERVED = {(name, e) for name in CASES if "latent" in name for e in (*OLD, *LLAMACPP)}


@pytest.fixture(scope="module")
def scene(tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene(save_target(tmp_path_factory.mktemp("target") / "model", tied=False))


def nearest(case: Case, parts: Parts) -> Iterator[tuple[Eagle3Spec, Parts]]:
    """The drafter of `case`, and those that are plain in some of the facts in which it is not."""
    facts = PLAIN | dict(case.facts)
    odd = [fact for fact, value in facts.items() if value != PLAIN[fact]]
    for given_up in chain.from_iterable(combinations(odd, n) for n in range(len(odd) + 1)):
        changed = facts | {fact: PLAIN[fact] for fact in given_up}
        if changed["vocabulary"] != facts["vocabulary"]:
            continue  # its head would be another
        if changed["owners"][1] != "own" and changed["vocabulary"] == "reduced":
            continue
        spec = eagle3_spec(changed, Random(f"{case}"), WIDTH)
        shapes = shapes_of(spec, changed["attention"])
        if spec.vocab_map.value is VocabMap.OFFSETS:
            shapes |= {"d2t": parts["d2t"].bits.shape}
        try:
            yield spec, {role: fitted(parts, role, shape) for role, shape in shapes.items()}
        except KeyError:  # a fact that has tensors of its own cannot be given up so
            continue


def fitted(parts: Parts, role: str, shape: tuple[int, ...]) -> Held:
    """The tensor of `role`: a later layer's norm by its other name, fc cut or padded with zeros."""
    other = {a: b for a in LaterNorm for b in LaterNorm if a is not b}
    for one, two in other.items():
        if role not in parts and role.endswith(f".{one}.weight"):
            role = role.replace(one, two)
    if role not in parts and role == "lm_head.weight":  # of a tied one
        role = "embed_tokens.weight"
    held = parts[role]
    if held.bits.shape == shape:
        return held
    assert role == "fc.weight"
    bits = np.zeros(shape, held.bits.dtype)
    width = min(shape[1], held.bits.shape[1])
    bits[:, :width] = held.bits[:, :width]
    return replace(held, bits=bits)


def ways(case: Case, parts: Parts) -> Iterator[Callable[[Path, Scene], Checkpoint]]:
    """Every way of writing `case` or what is nearest to it, over all writers for engines."""
    for spec, held in nearest(case, parts):
        for writer in FOR_ENGINES:
            for forced in (False, True):
                yield partial(written, writer, spec, held, forced)


def written(
    writer: Writer, spec: Eagle3Spec, parts: Parts, forced: bool, path: Path, scene: Scene
) -> Checkpoint:
    """One way; raises ConversionError where the form cannot even be written.

    `forced` states the target's width in the config too, which keeps an own embedding for some.
    """
    d2t = parts.get("d2t")
    maps = maps_of(None if d2t is None else [int(i) for i in d2t.bits], absolute=False)
    if not writer.masks:
        maps.pop("t2d", None)
    held = {**parts, **maps}
    config, names = writer(spec, tuple(held), dtype="float32", target_layers=scene.facts.num_layers)
    rows = {role: Made(h.dtype, h.bits.shape, h.bits.tobytes()) for role, h in held.items()}
    if writer.form is Format.GGUF:
        tensors = {n: tensor_bytes(stored(spec, role, rows[role])) for role, n in names.items()}
        tensors |= {name: tensor_bytes(row) for name, row in made(spec).items()}
        file = path.with_suffix(".gguf")
        write_gguf(
            file, {**config, **tokenizer_keys(scene.facts, len(scene.target.embedding_VH))}, tensors
        )
        return open_checkpoint(file)
    if forced:
        config = {**config, "target_hidden_size": spec.target_hidden_size.value}
    stored_as: dict[str, TensorBytes] = {n: tensor_bytes(rows[role]) for role, n in names.items()}
    return open_checkpoint(write_checkpoint(path, config, stored_as))


@pytest.mark.parametrize("name", REFUSED)
def test_every_way_of_writing_it_is_served_as_another_drafter(
    name: str, scene: Scene, tmp_path: Path, measured: Callable[[str], None]
) -> None:
    case, expected = CASES[name], refusals(name)
    first = scene.drafter(tmp_path / "first", case)
    trained = scene.logits(trained_drafter(first, scene.target))
    seen: dict[str, list[float]] = {engine: [] for engine in expected}
    for i, way in enumerate(ways(case, by_role(first))):
        try:
            checkpoint = way(tmp_path / str(i), scene)
        except ConversionError:
            continue
        for engine in seen:
            if (checkpoint.format is Format.GGUF) is engine.startswith("llamacpp"):
                seen[engine] += apart(scene, engine, checkpoint, trained)
    for engine, found in seen.items():
        assert (name, engine) in UNSERVED or found, engine
        assert all(distance >= APART for distance in found), (engine, found)
    served = {engine: f"{min(found):.0e}" for engine, found in seen.items() if found}
    measured(f"nearest of {sum(map(len, seen.values()))} served: {served}")


def apart(scene: Scene, engine: str, checkpoint: Checkpoint, trained: Any) -> list[float]:
    """How far the served logits are from `trained`; nothing where the engine does not serve it."""
    if scene.served(engine, checkpoint).refusal is not None:
        return []
    try:
        drafter = scene.as_served(engine, checkpoint)
        return [difference(trained, scene.logits(drafter))]
    except UnsupportedError:
        return []


@pytest.mark.parametrize("name", REFUSED)
def test_the_refusal_names_the_fact_and_who_could_serve_it(
    name: str, scene: Scene, tmp_path: Path
) -> None:
    first = scene.drafter(tmp_path / "first", CASES[name])
    expected = refusals(name)
    newest = ["sglang@0.5.23", "vllm@0.33.0:v1", "vllm@0.33.0:v2", "llamacpp@11549"]
    able = ", ".join(engine for engine in newest if engine not in expected)
    for engine, word in expected.items():
        with pytest.raises(ConversionError) as caught:
            plan(first, EngineRef.parse(engine), target=scene.facts)
        message = caught.value.message
        assert re.search(word, message), (engine, message)
        assert "\n" not in message
        assert message.endswith(f"; it can be written for {able}") or not able, (engine, message)
        assert able or "it can be written for" not in message

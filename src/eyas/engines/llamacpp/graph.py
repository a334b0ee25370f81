"""What llama.cpp finds once the weights are loaded: in drawing its graphs, and in running them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from eyas.checkpoint import Checkpoint, TargetFacts
from eyas.engines.config import ConfigView
from eyas.engines.llamacpp import claims
from eyas.engines.llamacpp.key_types import PREFIX
from eyas.engines.llamacpp.loader import EMBEDDING, HEAD, INPUT_NORM, MAP, Wanted
from eyas.engines.llamacpp.targets import require_capture
from eyas.engines.stop import NotCovered, Refused
from eyas.spec import Claim, Fact, Stage

_VECTORS = "F32"  # the one type that states in float32 are multiplied with, channel by channel
# Types without a dot product, and types whose rows are not read one by one.
_NO_PRODUCTS = ("I8", "I16", "I32", "I64", "F64", "Q8_1", "Q8_K")
_NO_ROWS = ("I8", "I16", "I64", "F64", "Q8_K")


@dataclass(frozen=True, slots=True, kw_only=True)
class Graph:
    """What decides about the graphs of a drafter that is loaded."""

    checkpoint: Checkpoint
    view: ConfigView
    wanted: Wanted
    boundaries: Fact[tuple[int, ...]]
    target: TargetFacts | None


def require_graph(graph: Graph) -> None:
    """Refuse where drawing or running a graph aborts: when the target is joined, then when asked.

    Raises NotCovered for what is served and computes another thing than a contract can say.
    """
    for wrong in (*_own(graph), *_beside(graph)):
        raise Refused(Stage.JOIN, *wrong)
    require_capture(graph.target)
    for wrong in _asked(graph):
        raise Refused(Stage.FIRST_REQUEST, *wrong)
    for reason in _unjudged(graph):
        raise NotCovered(reason)


def _own(graph: Graph) -> Iterator[tuple[str, Claim]]:
    """What aborts whatever the target is, once the contexts are made."""
    wanted, tensors, place = graph.wanted, graph.checkpoint.tensors, graph.checkpoint.place
    sizes = wanted.sizes
    if sizes.num_layers.value != 1:
        layers = sizes.num_layers
        yield f"{layers.key} is {layers.value}, and one layer is drawn", claims.ONE_LAYER
    if wanted.value_dim != sizes.head_dim.value:
        key = graph.view.key("value_length")
        yield f"{key} is {wanted.value_dim}, and keys are {sizes.head_dim.value}", claims.ONE_LAYER
    yield from _mapped(graph)
    if wanted.rotated % 2 or wanted.rotated > sizes.head_dim.value:
        key = graph.view.key("rotated")
        yield f"{key} is {wanted.rotated} of {sizes.head_dim.value} channels", claims.ROTATED
    if graph.view.real("rms_norm_eps").value < 0:
        yield f"{graph.view.key('rms_norm_eps')} is below 0", claims.EPSILON
    if EMBEDDING in tensors and tensors[EMBEDDING].dtype in _NO_ROWS:
        yield f"{place(EMBEDDING)} holds {tensors[EMBEDDING].dtype} numbers", claims.ROWS
    # Of the two tokens that it is tried with, one is handed back.
    yield from _handed_back(graph, at_most=2 * sizes.hidden_size.value)
    for name in tensors:
        if name.startswith("blk.") or name in (HEAD, "output_norm.weight"):
            yield from _typed(graph, name)


def _mapped(graph: Graph) -> Iterator[tuple[str, Claim]]:
    """What is wrong with the map: its type, or an id that the tokenizer in the file has not."""
    checkpoint, vocab = graph.checkpoint, graph.wanted.sizes.vocab_size
    header, place = checkpoint.tensors.get(MAP), checkpoint.place(MAP)
    if header is None:
        return
    if header.dtype != "I64":
        yield f"{place} holds {header.dtype} numbers, and must hold I64", claims.MAP
    elif checkpoint.has_bytes(MAP):
        for number in checkpoint.read_integers(MAP):
            if not 0 <= number < vocab.value:
                yield f"{place} has the id {number}, and {vocab.key} {vocab.value}", claims.MAP_IDS
                return


def _typed(graph: Graph, name: str) -> Iterator[tuple[str, Claim]]:
    """What is wrong with the type of a norm or a matrix, once it is multiplied with states."""
    dtype, place = graph.checkpoint.tensors[name].dtype, graph.checkpoint.place(name)
    if "norm" in name:
        if dtype != _VECTORS:
            yield f"{place} holds {dtype} numbers, and must hold {_VECTORS}", claims.VECTORS
    elif dtype in _NO_PRODUCTS:
        yield f"{place} holds {dtype} numbers, which are not multiplied", claims.PRODUCTS


def _beside(graph: Graph) -> Iterator[tuple[str, Claim]]:
    """What aborts when it is put beside `target`, whose facts may be unknown."""
    target, sizes, tensors = graph.target, graph.wanted.sizes, graph.checkpoint.tensors
    vocab, draft_vocab, hidden = sizes.vocab_size, sizes.draft_vocab_size, sizes.hidden_size
    known = None if target is None else target.vocab_size
    rows = vocab.value if known is None else known
    if HEAD not in tensors and MAP in tensors and draft_vocab.value != rows:
        yield (
            f"the file has no {HEAD}, the target's has {rows} rows, and {MAP} {draft_vocab.value}",
            claims.HEAD,
        )
    if target is None:
        return
    layers, boundaries = target.num_layers, graph.boundaries
    for k in boundaries.value:
        if layers is not None and not 0 <= k <= layers:
            yield f"{boundaries.key} has {k}, and the target has {layers} layers", claims.LAYER_IDS
    for name, claim in ((EMBEDDING, claims.EMBEDDING), (HEAD, claims.HEAD)):
        wide = target.hidden_size
        if name not in tensors and wide is not None and wide != hidden.value:
            yield (
                f"the file has no {name}, the target's is {wide} wide, and {hidden.key} is"
                f" {hidden.value}",
                claim,
            )


def _asked(graph: Graph) -> Iterator[tuple[str, Claim]]:
    """What aborts at the first request: the encoder's graph runs then, and ids come in."""
    yield from _typed(graph, "fc.weight")
    if graph.wanted.input_norm:
        yield from _typed(graph, INPUT_NORM)
    yield from _handed_back(graph, at_most=graph.wanted.sizes.hidden_size.value)
    if graph.target is None:
        return
    states, wide = graph.wanted.sizes.target_hidden_size, graph.target.hidden_size
    if wide is not None and wide != states.value:
        yield (
            f"the target's states are {wide} wide, and {states.key} is {states.value}",
            claims.WIDTH,
        )
    yield from _beyond(graph, graph.target.vocab_size)


def _handed_back(graph: Graph, *, at_most: int) -> Iterator[tuple[str, Claim]]:
    out = _number(graph, "embedding_length_out")
    if out > at_most:
        key = f"{graph.checkpoint.config_file} :: {PREFIX}embedding_length_out"
        yield f"{key} is {out}, wider than the states that are handed back", claims.STATES


def _beyond(graph: Graph, tokens: int | None) -> Iterator[tuple[str, Claim]]:
    """What the target's later ids abort at."""
    vocab, rows = graph.wanted.sizes.vocab_size, graph.wanted.embedding_rows
    if tokens is None:
        return
    if vocab.value < tokens:
        yield f"{vocab.key} counts {vocab.value}, and the target {tokens} tokens", claims.IDS
    if EMBEDDING in graph.checkpoint.tensors and rows < tokens:
        place = graph.checkpoint.place(EMBEDDING)
        yield f"{place} has {rows} rows, and the target {tokens} tokens", claims.ROWS


def _unjudged(graph: Graph) -> Iterator[str]:
    """Keys that no converter writes, and that change what is computed."""
    file, hidden = graph.checkpoint.config_file, graph.wanted.sizes.hidden_size.value
    if graph.wanted.rotated != graph.wanted.sizes.head_dim.value:
        yield f"{file} has RoPE turn {graph.wanted.rotated} channels of each head"
    if 0 < _number(graph, "embedding_length_out") < hidden:
        yield f"{file} has states narrower than its embedding_length handed back"
    if _number(graph, "pooling_type"):
        yield f"{file} has its states pooled"
    if graph.checkpoint.config.get(f"{PREFIX}attention.causal") is False:
        yield f"{file} has an attention that is not causal"


def _number(graph: Graph, name: str) -> int:
    value = graph.checkpoint.config.get(PREFIX + name, 0)
    return value if isinstance(value, int) else 0

"""Whatever tensors a checkpoint has, both sides of the landing add up."""

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.engines.drafters import drafter, flat_config, shapes, target

from eyas.engines import EngineRef, Launch, read
from eyas.spec import Served

_NAMES = sorted(shapes()) + sorted(shapes("layers.0")) + sorted(shapes("layers.1", "model."))
_OTHERS = ("midlayer.self_attn.qkv_proj.weight", "embed_tokens.weight", "fc.bias", "extra", "t2d")
_ENGINES = ("sglang@0.5.8", "sglang@0.5.11", "sglang@0.5.23", "vllm@0.33.0:v1", "vllm@0.33.0:v2")
_SHAPES = {**shapes(), **shapes("layers.0"), **shapes("layers.1", "model.")}


@st.composite
def tensors(draw: st.DrawFn) -> dict[str, tuple[int, ...]]:
    """A subset of known and unknown names, most of them with the right shape."""
    chosen = draw(st.lists(st.sampled_from([*_NAMES, *_OTHERS]), unique=True))
    found = {}
    for name in chosen:
        shape = _SHAPES.get(name, (32, 32))
        if draw(st.integers(0, 9)) == 0:
            shape = tuple(draw(st.lists(st.integers(0, 50), max_size=3)))
        elif draw(st.integers(0, 4)) == 0:
            axis = draw(st.integers(0, len(shape) - 1))
            shape = (*shape[:axis], draw(st.integers(1, 60)), *shape[axis + 1 :])
        found[name] = shape
    return found


@settings(max_examples=120, deadline=None)
@given(
    tensors=tensors(),
    engine=st.sampled_from(_ENGINES),
    flags=st.dictionaries(
        st.sampled_from(
            [
                "attention_bias",
                "bias",
                "mlp_bias",
                "tie_word_embeddings",
                "fc_norm",
                "norm_before_fc",
            ]
        ),
        st.booleans(),
    ),
    layers=st.integers(0, 3),
)
def test_a_landing_adds_up(
    tensors: dict[str, tuple[int, ...]], engine: str, flags: dict[str, bool], layers: int
) -> None:
    config = flat_config(num_hidden_layers=layers, **flags)
    result = read(
        EngineRef.parse(engine),
        drafter(config, tensors),
        target=target(),
        launch=Launch(),
    )
    assert isinstance(result, Served)
    assert (result.landing is None) <= (result.refusal is not None)
    if result.landing is not None:
        assert result.landing.imbalance() == ()
        assert {t.name for t in result.landing.tensors} == set(tensors)

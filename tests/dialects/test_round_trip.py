"""What a dialect writes, it reads back as the same drafter."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.dialects.drawn import LAST, MLA, drafters, fused, mha

from eyas import dialects
from eyas.checkpoint import open_checkpoint, write_sparse
from eyas.dialects import specforge, speculators
from eyas.spec import Eagle3Spec, LaterNorm


def read_back(spec: Eagle3Spec, kit: Any, config: dict[str, Any], names: dict[str, str]) -> Any:
    headers = kit.headers_of(spec)
    with tempfile.TemporaryDirectory() as folder:
        place = write_sparse(
            Path(folder) / "drafter",
            config,
            {names[role]: header for role, header in headers.items()},
            {names[role]: raw for role, raw in kit.maps_of(spec).items()},
        )
        checkpoint = open_checkpoint(place)
        dialect, again = dialects.read(checkpoint)
        roles = {role: name for name, role in dialect.roles(checkpoint).items()}
    assert roles == names
    return dialect.name, kit.values(again)


@settings(max_examples=150, deadline=None)
@given(
    spec=drafters(
        attention=mha(qk_norm=True),
        conditioning=fused(lowest=0, bias=False),
        layers=3,
        later_norms=(LaterNorm.INPUT_LAYERNORM,),
        target_name=st.none() | st.text("abc/-. é", min_size=1),
    )
)
def test_speculators(kit: Any, spec: Eagle3Spec) -> None:
    config, names = speculators.write(spec, kit.headers_of(spec))

    assert read_back(spec, kit, config, names) == ("speculators", kit.values(spec))


@settings(max_examples=150, deadline=None)
@given(
    spec=drafters(
        attention=st.one_of(mha(qk_norm=False), MLA),
        conditioning=st.one_of(fused(lowest=1, bias=True), LAST),
        layers=3,
        later_norms=tuple(LaterNorm),
        target_name=st.none(),
    ),
    ids=st.sampled_from(["nested", "top", "both"]),
    prefix=st.sampled_from(["midlayer.", "layers.0."]),
)
def test_specforge(kit: Any, spec: Eagle3Spec, ids: Any, prefix: Any) -> None:
    if spec.num_layers.value > 1:
        prefix = "layers.0."

    config, names = specforge.write(spec, kit.headers_of(spec), ids=ids, layer_prefix=prefix)

    assert read_back(spec, kit, config, names) == ("specforge", kit.values(spec))

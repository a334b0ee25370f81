"""A drafter's matrices as an engine's landing puts them together."""

from __future__ import annotations

from torch import Tensor

from eyas.checkpoint import Checkpoint, Format
from eyas.checkpoint.rows import Rows, StoredRows
from eyas.dialects.contents import in_trained_order
from eyas.engines.delivered import with_others
from eyas.errors import UnsupportedError
from eyas.model.fill import Filler
from eyas.model.weights import Shapes, read_tensor, tensor_of
from eyas.spec import Fate, FromTensor, Landing, Mha, Mla, Segment, Unfilled


class LandedWeights:
    """The matrices of a landing by role, cut, padded or filled as the engine has them."""

    def __init__(
        self, landing: Landing, checkpoint: Checkpoint, shapes: Shapes, attention: Mha | Mla
    ) -> None:
        """`shapes` are those of the drafter's own matrices, `attention` is as the engine has it."""
        self._attention = attention
        self._checkpoint = with_others(checkpoint)
        self._shapes = shapes
        self._segments: dict[str, tuple[str, Segment]] = {}
        for parameter in landing.parameters:
            for segment in parameter.segments:
                if segment.role is not None:
                    self._segments[segment.role] = (parameter.name, segment)
        consumed = [t.name for t in landing.tensors if t.fate is Fate.CONSUMED]
        self._map = consumed[-1] if consumed else None  # the last one read wins

    @property
    def roles(self) -> frozenset[str]:
        """Every role that a parameter of the engine is."""
        return frozenset(self._segments)

    def read(self, role: str, filler: Filler) -> Tensor:
        """The values of `role` in the drafter's shape.

        Raises UnsupportedError where the engine's parameter has another shape, or there is none.
        """
        shape = self._shapes[role]
        if role == "d2t" and role not in self._segments and self._map is not None:
            return read_tensor(self._checkpoint, self._map)
        if role not in self._segments:
            raise UnsupportedError(f"no parameter of the engine is `{role}`, which eyas computes")
        parameter, segment = self._segments[role]
        if segment.stop - segment.start != shape[0]:
            raise UnsupportedError(
                f"`{parameter}` holds {segment.stop - segment.start} rows of `{role}`, and eyas"
                f" computes with {shape[0]}"
            )
        if isinstance(segment.source, FromTensor):
            return self._fitted(segment.source.tensor, segment, shape)
        if isinstance(segment.source, Unfilled):
            weight = self._shapes.get(f"{role.removesuffix('.bias')}.weight", shape)
            return filler.values(role, shape, segment.source.initialisation, weight[-1])
        raise UnsupportedError(f"`{role}` is filled by {segment.source}, which cannot be run")

    def _fitted(self, tensor: str, segment: Segment, shape: tuple[int, ...]) -> Tensor:
        """The rows from the segment's offset on, cut to `shape`, or completed with zeros.

        Both engines take what is too long or too wide from its start, and put zeros after what
        is too short (SGLang 0.5.23, srt/layers/parameter.py:177-340).
        """
        rows: Rows = StoredRows(self._checkpoint, tensor)
        if segment.role is not None and self._checkpoint.format is Format.GGUF:
            rows = in_trained_order(rows, segment.role, self._attention)
        held = tensor_of(rows, self._checkpoint.place(tensor))[segment.offset :]
        if tuple(held.shape) == shape:
            return held
        overlap = tuple(slice(0, min(a, b)) for a, b in zip(held.shape, shape, strict=True))
        fitted = held.new_zeros(shape)
        fitted[overlap] = held[overlap]
        return fitted

"""What the tensors of a drafter say, by role."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from eyas.checkpoint import Checkpoint
from eyas.dialects.names import layer_count
from eyas.spec import Fact, inferred


@dataclass(frozen=True, slots=True)
class Tensors:
    """The tensors of `checkpoint` by role; a fact that none of them shows is None."""

    checkpoint: Checkpoint
    by_role: Mapping[str, str]  # role → tensor name

    @classmethod
    def of(cls, checkpoint: Checkpoint, roles: Mapping[str, str]) -> Tensors:
        """From tensor name → role."""
        return cls(checkpoint, {role: name for name, role in roles.items()})

    def has(self, role: str) -> bool:
        """Whether a tensor has `role`."""
        return role in self.by_role

    def present(self, role: str) -> Fact[bool] | None:
        """True where a tensor has `role`. It would not be stored if nothing used it."""
        return inferred(True, self.place(role)) if self.has(role) else None

    def place(self, role: str) -> str:
        """Where the tensor with `role` is, or would be."""
        return self.checkpoint.place(self.by_role.get(role, role))

    def shape(self, role: str) -> tuple[int, ...]:
        """The shape of the tensor with `role`; () when there is none."""
        name = self.by_role.get(role)
        return self.checkpoint.tensors[name].shape if name is not None else ()

    def rows(self, role: str) -> Fact[int] | None:
        """The size of its dimension 0."""
        shape = self.shape(role)
        return inferred(shape[0], self.place(role)) if shape and shape[0] else None

    def columns(self, role: str) -> Fact[int] | None:
        """The size of its dimension 1, where it has two."""
        shape = self.shape(role)
        return inferred(shape[1], self.place(role)) if len(shape) == 2 and shape[1] else None

    def quotient(self, role: str, divisor: int) -> Fact[int] | None:
        """The rows of `role` over `divisor`, where that is a whole number."""
        rows = self.rows(role)
        if rows is None or divisor < 1 or rows.value % divisor:
            return None
        return rows.map(lambda value: value // divisor)

    def layers(self) -> Fact[int] | None:
        """The number of decoder layers that there are tensors for."""
        count = layer_count(self.by_role)
        if not count:
            return None
        role, name = next(
            (role, name) for role, name in self.by_role.items() if role.startswith("layers.0.")
        )
        # A pattern is no tensor, so the file is taken from the tensor's own place.
        inner = role.removeprefix("layers.0.")
        return inferred(count, self.checkpoint.place(name).removesuffix(inner) + "*")

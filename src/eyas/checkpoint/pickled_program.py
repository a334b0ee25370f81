"""The program of a pickle, followed as data: it names things, and none is looked up or called.

A pickle is a program for a small stack machine. Python's own machine (pickle.Unpickler) imports
what the program names, calls it, and sets attributes of it; even one that is told to import nothing
sets attributes of whatever stands in. This one has values of its own for everything: a name is a
text, and a call is a pair of a name and its arguments, of the few that weights consist of.

The operations are those that torch.load(weights_only=True) follows, which engines load with
(torch/_weights_only_unpickler.py of torch 2.13), less those that build what no tensor needs.
"""

from __future__ import annotations

import pickletools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from eyas.errors import CheckpointError

MAX_PROGRAM = 8 * 2**20  # bytes; a tensor takes some 200
_MOST_STEPS = 2**18  # a tensor takes some 20
_BEWARE = "do not load it elsewhere: get the drafter as safetensors, from who made it"

TABLE = "collections.OrderedDict"
TENSOR = "torch._utils._rebuild_tensor_v2"
TYPED_TENSOR = "torch._utils._rebuild_tensor_v3"
PARAMETER = "torch._utils._rebuild_parameter"
_CALLED = frozenset({TABLE, TENSOR, TYPED_TENSOR, PARAMETER})
# torch's names of what is a tensor, and yet no plain numbers.
_OTHER_TENSORS = {
    "torch._utils._rebuild_sparse_tensor": "a sparse tensor",
    "torch._utils._rebuild_qtensor": "a tensor quantised by torch",
    "torch._utils._rebuild_meta_tensor_no_storage": "a tensor without numbers",
    "torch._utils._rebuild_device_tensor_from_numpy": "a tensor of another device",
    "torch._utils._rebuild_device_tensor_from_cpu_tensor": "a tensor of another device",
    "torch._utils._rebuild_nested_tensor": "a nested tensor",
    "torch._utils._rebuild_wrapper_subclass": "a tensor of a class of its own",
    "torch._utils._rebuild_parameter_with_state": "a parameter with attributes",
    "torch._tensor._rebuild_from_type_v2": "a tensor with attributes",
}


@dataclass(frozen=True, slots=True, eq=False)
class Name:
    """A class or function that the program names: its text alone."""

    text: str


@dataclass(frozen=True, slots=True, eq=False)
class Call:
    """A call that the program asks for, and that nobody makes."""

    function: str
    arguments: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Storage:
    """A run of numbers that lies outside of the program: `identity` is how it names it."""

    identity: tuple[Any, ...]


class _Mark:
    """Where the arguments of a later operation begin."""


@dataclass(slots=True)
class _Machine:
    """The stack and the memory of the program; `known` are the names that are no calls."""

    where: str
    known: Mapping[str, str]
    stack: list[Any] = field(default_factory=list)
    memory: dict[int, Any] = field(default_factory=dict)

    def pop(self) -> Any:
        if not self.stack or isinstance(self.stack[-1], _Mark):
            raise unsound(self.where, "it takes from an empty stack")
        return self.stack.pop()

    def pop_many(self, count: int) -> tuple[Any, ...]:
        return tuple([self.pop() for _ in range(count)][::-1])

    def pop_to_mark(self) -> list[Any]:
        for at in range(len(self.stack) - 1, -1, -1):
            if isinstance(self.stack[at], _Mark):
                items = self.stack[at + 1 :]
                del self.stack[at:]
                return items
        raise unsound(self.where, "it takes from an empty stack")

    def top(self, kind: type) -> Any:
        value = self.stack[-1] if self.stack else None
        if type(value) is not kind:
            raise unsound(self.where, f"it adds to what is no {kind.__name__}")
        return value


def follow(program: bytes, known: Mapping[str, str], where: str) -> Any:
    """What `program`, read at `where`, describes: tables, lists, numbers, calls and storages.

    `known` are names that may stand for themselves (types). Raises CheckpointError for a program
    that is not sound, is too long, or names or does anything that weights have no need of.
    """
    machine = _Machine(where=where, known=known)
    steps = 0
    try:
        for operation, argument, _ in pickletools.genops(program):
            steps += 1
            if steps > _MOST_STEPS:
                raise unsound(where, f"it has more than {_MOST_STEPS} steps")
            if operation.name == "STOP":
                return machine.pop()
            step = _STEPS.get(operation.name)
            if step is None:
                raise _foreign(where, f"uses the operation {operation.name}")
            step(machine, argument)
    except ValueError:  # which is what genops has for every fault, UnicodeDecodeError included
        raise unsound(where, "it is cut off, or no pickle") from None
    raise unsound(where, "it has no end")


def _name(machine: _Machine, argument: Any) -> None:
    text = ".".join(str(argument).split(" "))
    if text in _OTHER_TENSORS:
        raise CheckpointError(
            f"{machine.where} holds {_OTHER_TENSORS[text]}, and eyas reads plain ones alone",
            hint="save it as a dense, plain tensor of floats",
        )
    if text not in _CALLED and text not in machine.known:
        raise _foreign(machine.where, f"names {text[:80]!r}")
    machine.stack.append(Name(text))


def _call(machine: _Machine, argument: Any) -> None:
    arguments, function = machine.pop(), machine.pop()
    if type(function) is not Name or function.text not in _CALLED or type(arguments) is not tuple:
        raise _foreign(machine.where, "calls what is no part of weights")
    if function.text == TABLE:
        if arguments:
            raise _foreign(machine.where, "builds a table from something")
        machine.stack.append({})
    else:
        machine.stack.append(Call(function.text, arguments))


def _storage(machine: _Machine, argument: Any) -> None:
    identity = machine.pop()
    if type(identity) is not tuple or len(identity) != 5 or identity[0] != "storage":
        raise _foreign(machine.where, "refers to what is no storage of numbers")
    machine.stack.append(Storage(identity))


def _attributes(machine: _Machine, argument: Any) -> None:
    # A state_dict carries `_metadata`, the versions of its modules: no part of the weights.
    machine.pop()
    if not machine.stack or type(machine.stack[-1]) is not dict:
        raise _foreign(machine.where, "sets attributes")


def _set(machine: _Machine, pairs: list[Any]) -> None:
    table = machine.top(dict)
    if len(pairs) % 2:
        raise unsound(machine.where, "a table of it has a key without a value")
    for key, value in zip(pairs[::2], pairs[1::2], strict=True):
        if type(key) not in (str, int):
            raise _foreign(machine.where, "has a table whose keys are no texts")
        if key in table:
            raise unsound(machine.where, f"the key {str(key)[:80]!r} occurs twice")
        table[key] = value


def _set_one(machine: _Machine, argument: Any) -> None:
    _set(machine, list(machine.pop_many(2)))


def _set_many(machine: _Machine, argument: Any) -> None:
    _set(machine, machine.pop_to_mark())


def _append(machine: _Machine, argument: Any) -> None:
    item = machine.pop()
    machine.top(list).append(item)


def _extend(machine: _Machine, argument: Any) -> None:
    items = machine.pop_to_mark()
    machine.top(list).extend(items)


def _remember(machine: _Machine, argument: Any) -> None:
    value = machine.pop()
    machine.memory[argument] = value
    machine.stack.append(value)


def _recall(machine: _Machine, argument: Any) -> None:
    if argument not in machine.memory:
        raise unsound(machine.where, "it recalls what it never had")
    machine.stack.append(machine.memory[argument])


def _tuple_of(count: int) -> Callable[[_Machine, Any], None]:
    def step(machine: _Machine, argument: Any) -> None:
        machine.stack.append(machine.pop_many(count))

    return step


def _new(make: Callable[[], Any]) -> Callable[[_Machine, Any], None]:
    def step(machine: _Machine, argument: Any) -> None:
        machine.stack.append(make())

    return step


def _push(machine: _Machine, argument: Any) -> None:
    machine.stack.append(argument)


def _nothing(machine: _Machine, argument: Any) -> None:
    """The number of the protocol says nothing that the operations do not."""


_STEPS: Mapping[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _nothing,
    "GLOBAL": _name,
    "REDUCE": _call,
    "BUILD": _attributes,
    "BINPERSID": _storage,
    "MARK": _new(_Mark),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.pop_to_mark())),
    "TUPLE1": _tuple_of(1),
    "TUPLE2": _tuple_of(2),
    "TUPLE3": _tuple_of(3),
    "EMPTY_TUPLE": _new(tuple),
    "EMPTY_LIST": _new(list),
    "EMPTY_DICT": _new(dict),
    "APPEND": _append,
    "APPENDS": _extend,
    "SETITEM": _set_one,
    "SETITEMS": _set_many,
    "NONE": _push,
    "NEWFALSE": _new(bool),
    "NEWTRUE": _new(lambda: True),
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"), _push),
    **dict.fromkeys(("BINUNICODE", "SHORT_BINSTRING"), _push),
    **dict.fromkeys(("BINPUT", "LONG_BINPUT"), _remember),
    **dict.fromkeys(("BINGET", "LONG_BINGET"), _recall),
}


def unsound(where: str, reason: str) -> CheckpointError:
    """The error for a program that no writer makes."""
    return CheckpointError(
        f"{where} is not a sound pickle of weights: {reason}",
        hint="fetch or export the file again",
    )


def _foreign(where: str, what: str) -> CheckpointError:
    return CheckpointError(
        f"{where} is a pickle of more than weights: it {what}, and nothing of it was run",
        hint=_BEWARE,
    )

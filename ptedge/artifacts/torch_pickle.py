"""The pickle inside a torch file, read without torch and without running anything.

A pickle is a program for a machine with a stack. What ``torch.save`` writes for tensors and plain values needs few of
its instructions, and this is a machine for those alone: it calls nothing, it makes dictionaries, lists, tuples, numbers
and text, and it counts what it does. A file it refuses never reaches torch's own reader.

Reference: Python's ``pickletools``, which decodes the instructions; ``torch/_utils.py`` for the rebuild functions.
"""

from __future__ import annotations

import io
import math
import pickletools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, BinaryIO

from ptedge.files import MOST_DEPTH

MOST_INSTRUCTIONS = 250_000  # about 35 a tensor
MOST_PICKLE_BYTES = 8 << 20
MOST_DIMENSIONS = 16

# class of a torch storage -> bytes of an element
STORAGES = {
    **{"DoubleStorage": 8, "FloatStorage": 4, "HalfStorage": 2, "BFloat16Storage": 2},
    **{"LongStorage": 8, "IntStorage": 4, "ShortStorage": 2, "CharStorage": 1, "ByteStorage": 1, "BoolStorage": 1},
}
_VALUES = {"BINUNICODE", "BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT"}
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


@dataclass(frozen=True)
class Storage:
    """Numbers that lie in a torch file, one behind the other.

    Attributes:
        kind: class, for example ``FloatStorage``.
        key: name of the bytes in the file.
        count: number of elements.
    """

    kind: str
    key: str
    count: int

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.count * STORAGES[self.kind]


@dataclass(frozen=True)
class StoredTensor:
    """A tensor that lies in a torch file.

    Attributes:
        storage: class of its storage, for example ``FloatStorage``.
        key: name of its bytes in the zip.
        offset: its first element in the storage.
        shape: as torch has it.
        stride: in elements.
    """

    storage: str
    key: str
    offset: int
    shape: tuple[int, ...]
    stride: tuple[int, ...]

    @property
    def size(self) -> int:
        """Number of elements."""
        return math.prod(self.shape)


class TorchFileError(ValueError):
    """A torch file is damaged, or holds more than tensors and plain values; the text is the reason alone."""


class PickleReader:
    """Reads one pickle.

    Attributes:
        storages: what its tensors lie in, by key.
    """

    def __init__(self) -> None:
        self.storages: dict[str, Storage] = {}
        self._stack: list[Any] = []
        self._marked: list[list[Any]] = []
        self._memo: dict[int, Any] = {}

    def read(self, source: bytes | BinaryIO) -> Any:
        """The document, with a :class:`StoredTensor` in place of each tensor.

        Args:
            source: the pickle; a file is read from where it stands to the pickle's end.

        Raises:
            TorchFileError: as the class says.
        """
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        try:
            for count, (opcode, argument, _) in enumerate(pickletools.genops(file)):
                if count >= MOST_INSTRUCTIONS:
                    raise TorchFileError(f"its pickle has more than {MOST_INSTRUCTIONS} instructions")
                if opcode.name == "STOP":
                    document = self._stack.pop()
                    _check_size(document)
                    return document
                self._do(opcode.name, argument)
        except TorchFileError:
            raise
        except Exception as error:  # a stack that is empty, a text that is none, ...: a damaged pickle meets them all
            raise TorchFileError(f"its pickle is damaged ({type(error).__name__})") from None
        raise TorchFileError("its pickle has no end")

    def _do(self, name: str, argument: Any) -> None:
        stack = self._stack
        if name in _VALUES:
            stack.append(argument)
        elif name in _CONSTANTS:
            stack.append(_CONSTANTS[name])
        elif name in _TUPLES:
            n = _TUPLES[name]
            if len(stack) < n:
                raise TorchFileError("its pickle is damaged")
            stack[-n:] = [tuple(stack[-n:])]
        elif name in _INSTRUCTIONS:
            _INSTRUCTIONS[name](self, argument)
        else:
            raise TorchFileError(f"its pickle uses {name}, which tensors and plain values do not need")

    def _proto(self, argument: int) -> None:
        if argument != 2:
            raise TorchFileError(f"its pickle has protocol {argument}; torch writes 2")

    def _mark(self, _: Any) -> None:
        self._marked.append(self._stack)
        self._stack = []

    def _since_mark(self) -> list[Any]:
        items, self._stack = self._stack, self._marked.pop()
        return items

    def _put(self, argument: int) -> None:
        self._memo[argument] = self._stack[-1]

    def _get(self, argument: int) -> None:
        self._stack.append(self._memo[argument])

    def _tuple(self, _: Any) -> None:
        items = self._since_mark()
        self._stack.append(tuple(items))

    def _append(self, _: Any) -> None:
        self._extend([self._stack.pop()])

    def _appends(self, _: Any) -> None:
        self._extend(self._since_mark())

    def _extend(self, items: list[Any]) -> None:
        if not isinstance(self._stack[-1], list):
            raise TorchFileError("its pickle is damaged")
        self._stack[-1].extend(items)

    def _setitem(self, _: Any) -> None:
        value, key = self._stack.pop(), self._stack.pop()
        self._update([key, value])

    def _setitems(self, _: Any) -> None:
        self._update(self._since_mark())

    def _update(self, items: list[Any]) -> None:
        table = self._stack[-1]
        if not isinstance(table, dict) or len(items) % 2:
            raise TorchFileError("its pickle is damaged")
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, (str, int)):
                raise TorchFileError(f"it holds a table with a key that is neither text nor a number ({_kind(key)})")
            table[key] = value

    def _global(self, argument: str) -> None:
        module, _, name = argument.partition(" ")
        if (module == "torch" and name in STORAGES) or (module, name) in _CALLS:
            self._stack.append(_Global(module, name))
        else:
            raise TorchFileError(f"it holds a {module}.{name}, more than tensors and plain values")

    def _persistent(self, _: Any) -> None:
        kind, storage, key, _, count, *views = self._stack.pop()
        known = isinstance(storage, _Global) and storage.name in STORAGES
        if kind != "storage" or not known or not isinstance(key, str) or any(view is not None for view in views):
            raise TorchFileError("it holds something other than a storage of numbers")
        found = Storage(storage.name, key, _whole(count))
        if self.storages.setdefault(key, found) != found:
            raise TorchFileError(f"it describes the numbers {key!r} in two ways")
        self._stack.append(found)

    def _reduce(self, _: Any) -> None:
        arguments, called = self._stack.pop(), self._stack.pop()
        if not isinstance(called, _Global) or not isinstance(arguments, tuple):
            raise TorchFileError("it calls something")
        call = _CALLS.get((called.module, called.name))
        if call is None:
            raise TorchFileError(f"it calls {called.module}.{called.name}")
        self._stack.append(call(*arguments))

    def _build(self, _: Any) -> None:
        """The versions of modules that state dicts carry beside their tensors; nothing here reads them."""
        state = self._stack.pop()
        if not isinstance(self._stack[-1], dict) or not isinstance(state, dict) or set(state) - {"_metadata"}:
            raise TorchFileError("it holds an object with a state of its own")


@dataclass(frozen=True)
class _Global:
    """A name of torch's or Python's; it stands for itself and is never looked up."""

    module: str
    name: str


_Instruction = Callable[[PickleReader, Any], None]
_INSTRUCTIONS: dict[str, _Instruction] = {
    "PROTO": PickleReader._proto,
    "MARK": PickleReader._mark,
    "BINPUT": PickleReader._put,
    "LONG_BINPUT": PickleReader._put,
    "BINGET": PickleReader._get,
    "LONG_BINGET": PickleReader._get,
    "EMPTY_DICT": lambda reader, _: reader._stack.append({}),
    "EMPTY_LIST": lambda reader, _: reader._stack.append([]),
    "TUPLE": PickleReader._tuple,
    "APPEND": PickleReader._append,
    "APPENDS": PickleReader._appends,
    "SETITEM": PickleReader._setitem,
    "SETITEMS": PickleReader._setitems,
    "GLOBAL": PickleReader._global,
    "BINPERSID": PickleReader._persistent,
    "REDUCE": PickleReader._reduce,
    "BUILD": PickleReader._build,
}


def _tensor(storage: Any, offset: Any, shape: Any, stride: Any, *_: Any) -> StoredTensor:
    if not isinstance(storage, Storage) or not isinstance(shape, tuple) or not isinstance(stride, tuple):
        raise TorchFileError("it holds a tensor without numbers")
    sizes, steps = tuple(map(_whole, shape)), tuple(map(_whole, stride))
    if len(sizes) != len(steps) or len(sizes) > MOST_DIMENSIONS:
        raise TorchFileError("it holds a tensor whose shape and strides do not belong together")
    tensor = StoredTensor(storage.kind, storage.key, _whole(offset), sizes, steps)
    # a view that repeats its numbers may stand for any size; torch.save writes none for a model
    last = tensor.offset + sum((n - 1) * step for n, step in zip(sizes, steps, strict=True))
    if tensor.size and (tensor.size > storage.count or last >= storage.count):
        raise TorchFileError(f"it holds a tensor of shape {list(sizes)} with {storage.count} numbers")
    return tensor


def _parameter(data: Any, *_: Any) -> Any:
    if not isinstance(data, StoredTensor):
        raise TorchFileError("it holds a parameter that is no tensor")
    return data


def _table(*arguments: Any) -> dict[Any, Any]:
    if arguments:
        raise TorchFileError("it holds a table in a form torch does not write")
    return {}


def _size(values: Any) -> tuple[int, ...]:
    return tuple(map(_whole, values))


_CALLS: dict[tuple[str, str], Callable[..., Any]] = {
    ("collections", "OrderedDict"): _table,
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch._utils", "_rebuild_parameter"): _parameter,
    ("torch", "Size"): _size,
}


def _whole(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 1 << 48:
        raise TorchFileError(f"it holds a size that is none ({_kind(value)})")
    return value


def _kind(value: Any) -> str:
    return str(value) if isinstance(value, (int, float)) else type(value).__name__


def _check_size(document: Any) -> None:
    """Refuse what is small in the file and large to walk: parts that share parts, to any depth."""
    level, seen = [document], 0
    for _ in range(MOST_DEPTH):
        nested = [v for v in level if isinstance(v, (dict, list, tuple))]
        seen += sum(len(v) for v in nested)
        if seen > MOST_INSTRUCTIONS:
            raise TorchFileError(f"it holds more than {MOST_INSTRUCTIONS} values")
        level = [inner for v in nested for inner in (v.values() if isinstance(v, dict) else v)]
        if not level:
            return
    raise TorchFileError(f"it is nested more than {MOST_DEPTH} levels deep")

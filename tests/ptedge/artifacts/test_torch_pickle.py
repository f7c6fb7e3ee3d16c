from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import pytest
import torch

from ptedge.artifacts.torch_pickle import MOST_INSTRUCTIONS, PickleReader, StoredTensor, TorchFileError

START = b"\x80\x02"


def pickle_in(path: Path, document: Any) -> bytes:
    torch.save(document, path)
    with zipfile.ZipFile(path) as archive:
        return archive.read(f"{path.stem}/data.pkl")


def refused(code: bytes) -> str:
    with pytest.raises(TorchFileError) as caught:
        PickleReader().read(code)
    return str(caught.value)


def test_read__every_plain_value(tmp_path: Path) -> None:
    document = {
        "a": [1, -1, 300, 70_000, 2**40, -(2**80), 1.5, float("inf"), True, False, None, "ü", ""],
        "b": ((), (1,), (1, 2), (1, 2, 3), (1, 2, 3, 4)),
        3: {"c": {}, "d": [[]]},
    }
    assert PickleReader().read(pickle_in(tmp_path / "m.pt", document)) == document


def test_read__tensors_and_their_storages(tmp_path: Path) -> None:
    whole = torch.arange(6.0).reshape(2, 3)
    reader = PickleReader()
    document = reader.read(pickle_in(tmp_path / "m.pt", {"w": whole, "turned": whole.T[1:]}))
    assert document["w"] == StoredTensor("FloatStorage", "0", 0, (2, 3), (3, 1))
    assert document["turned"] == StoredTensor("FloatStorage", "0", 1, (2, 2), (1, 3))
    assert [(s.kind, s.count, s.nbytes) for s in reader.storages.values()] == [("FloatStorage", 6, 24)]


def test_read__state_dict_with_versions_of_its_modules(tmp_path: Path) -> None:
    state = torch.nn.BatchNorm1d(2).state_dict()
    assert list(PickleReader().read(pickle_in(tmp_path / "m.pt", state))) == list(state)


def test_read__of_a_file_ends_at_its_end() -> None:
    file = io.BytesIO(pickle.dumps(7, 2) + b"rest")
    assert PickleReader().read(file) == 7
    assert file.read() == b"rest"


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (b"cposix\nsystem\n(X\x02\x00\x00\x00lstR.", "posix.system, more than tensors"),
        (b"ctorch\nload\n.", "torch.load, more than tensors"),
        (b"ctorch\nFloatStorage\n)R.", "it calls torch.FloatStorage"),
        (b"(ios\nsystem\n.", "uses INST"),
        (b"}X\x01\x00\x00\x00aNs)b.", "a state of its own"),
        (b"})}X\x01\x00\x00\x00aNsb.", "damaged|state of its own"),
        (b"ccollections\nOrderedDict\n)R}X\x04\x00\x00\x00keysNsb.", "a state of its own"),
        (b"ccollections\nOrderedDict\n]\x85R.", "a form torch does not write"),
        (b"})Ns.", "a key that is neither text nor a number"),
        (b"N", "no end|damaged"),
        (b".", "damaged"),
        (b"0.", "damaged|POP"),
        (b"h\x05.", "damaged"),
        (b"t.", "damaged"),
        (b"]NNs.", "damaged"),
        (b"}Na.", "damaged"),
        (b"X\xff\xff\xff\x7fabc.", "damaged"),
        (b"\x8a\xff\x01.", "damaged"),
        (b"C\x01a.", "uses SHORT_BINBYTES"),
        (b"(X\x07\x00\x00\x00storageNX\x01\x00\x00\x000NK\x01tQ.", "other than a storage"),
    ],
)
def test_read__refuses(code: bytes, words: str) -> None:
    found = refused(START + code)
    assert any(word in found for word in words.split("|")), found


def test_read__other_protocols() -> None:
    assert "protocol 4" in refused(pickle.dumps({}, 4))
    assert "torch writes 2" in refused(pickle.dumps({}, 5))


def test_read__limits() -> None:
    assert "more than" in refused(START + b"N" * MOST_INSTRUCTIONS + b".")
    assert "nested more than" in refused(START + b"]" * 60 + b"a" * 59 + b".")
    twice = b"](" + b"h\x00h\x00eq\x00"
    assert "more than" in refused(START + b"]q\x00" + twice * 40 + b".")


def tensor_code(offset: int, shape: tuple[int, ...], stride: tuple[int, ...], count: int) -> bytes:
    """A pickle of one float tensor, written out."""

    def numbers(values: tuple[int, ...]) -> bytes:
        return b"(" + b"".join(b"J" + value.to_bytes(4, "little", signed=True) for value in values) + b"t"

    storage = b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000X\x03\x00\x00\x00cpu"
    storage += b"J" + count.to_bytes(4, "little", signed=True) + b"tQ"
    arguments = b"(" + storage + b"J" + offset.to_bytes(4, "little", signed=True)
    arguments += numbers(shape) + numbers(stride) + b"\x89ccollections\nOrderedDict\n)Rt"
    return START + b"ctorch._utils\n_rebuild_tensor_v2\n" + arguments + b"R."


def test_read__tensor_within_its_numbers() -> None:
    assert PickleReader().read(tensor_code(2, (2, 2), (2, 1), 6)).size == 4
    assert PickleReader().read(tensor_code(0, (0, 5), (5, 1), 0)).size == 0


@pytest.mark.parametrize(
    ("offset", "shape", "stride", "count"),
    [
        (3, (2, 2), (2, 1), 6),  # one too far
        (0, (7,), (1,), 6),
        (0, (1000, 1000), (0, 0), 1),  # one number for a million
        (0, (2,), (1, 1), 6),
        (-1, (2,), (1,), 6),
        (0, (-2,), (1,), 6),
        (0, (2,), (-1,), 6),
        (0, (1,) * 17, (1,) * 17, 6),
    ],
)
def test_read__tensor_beyond_its_numbers(
    offset: int, shape: tuple[int, ...], stride: tuple[int, ...], count: int
) -> None:
    assert refused(tensor_code(offset, shape, stride, count)).startswith("it holds a ")


def test_read__one_key_with_two_lengths() -> None:
    def storage(count: int) -> bytes:
        return b"(X\x07\x00\x00\x00storagectorch\nFloatStorage\nX\x01\x00\x00\x000NK" + bytes([count]) + b"tQ"

    assert "in two ways" in refused(START + storage(1) + storage(2) + b"\x86.")

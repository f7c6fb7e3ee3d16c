from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
import torch

from ptedge.artifacts.torch_legacy import MAGIC_PICKLE, read_legacy
from ptedge.artifacts.torch_pickle import TorchFileError


def legacy(document: Any) -> bytes:
    file = io.BytesIO()
    torch.save(document, file, _use_new_zipfile_serialization=False)
    return file.getvalue()


def refused(content: bytes) -> str:
    with pytest.raises(TorchFileError) as caught:
        read_legacy(io.BytesIO(content))
    return str(caught.value)


def test_read_legacy__as_torch_writes_it() -> None:
    content = legacy({"w": torch.ones(2, 3), "n": torch.zeros(4, dtype=torch.int64), "epoch": 3})
    assert content.startswith(MAGIC_PICKLE)
    found = read_legacy(io.BytesIO(content))
    assert (found["w"].shape, found["n"].storage, found["epoch"]) == ((2, 3), "LongStorage", 3)


class Touch:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_read_legacy__runs_no_code(tmp_path: Path) -> None:
    assert "more than tensors" in refused(legacy({"w": Touch(tmp_path / "mark")}))
    assert not (tmp_path / "mark").exists()


@pytest.mark.parametrize("cut", [0, 10, 20, 100, -30, -1])
def test_read_legacy__cut_short(cut: int) -> None:
    refused(legacy({"w": torch.ones(2, 3)})[:cut])


def test_read_legacy__more_than_its_numbers() -> None:
    content = legacy({"w": torch.ones(6)})
    assert "behind its end" in refused(content + b"x")
    count = content.rindex((6).to_bytes(8, "little"))
    assert "not as many" in refused(content[:count] + (1 << 40).to_bytes(8, "little") + content[count + 8 :])

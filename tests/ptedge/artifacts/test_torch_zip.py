from __future__ import annotations

import zipfile
from collections import OrderedDict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from ptedge.artifacts.torch_pickle import StoredTensor
from ptedge.artifacts.torch_zip import is_torch_zip, read_tensor, read_torch_zip, stored_tensors
from ptedge.errors import ArtifactError


def save(path: Path, document: Any) -> Path:
    torch.save(document, path)
    return path


def test_read_torch_zip__plain_values_and_tensors(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt", {"format": "x", "step": 3, "state": OrderedDict(w=torch.ones(2, 3)), "list": [1.5]})
    document = read_torch_zip(path)
    assert (document["format"], document["step"], document["list"]) == ("x", 3, [1.5])
    assert document["state"]["w"].shape == (2, 3)
    assert document["state"]["w"].size == 6
    assert [tensor.shape for tensor in stored_tensors(document)] == [(2, 3)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.int64, torch.uint8, torch.bool])
def test_read_tensor__same_values_as_torch(tmp_path: Path, dtype: torch.dtype) -> None:
    tensor = torch.arange(24).reshape(4, 6).to(dtype)
    path = save(tmp_path / "m.pt", {"all": tensor, "turned": tensor.T[1:4, 2:], "one": torch.tensor(7).to(dtype)})
    document = read_torch_zip(path)
    np.testing.assert_array_equal(read_tensor(path, document["all"]), tensor.numpy())
    np.testing.assert_array_equal(read_tensor(path, document["turned"]), tensor.T[1:4, 2:].numpy())
    assert read_tensor(path, document["one"]).shape == ()


def test_read_tensor__parameters_and_empty(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt", {"p": torch.nn.Parameter(torch.full((2,), 3.0)), "e": torch.zeros(0, 4)})
    document = read_torch_zip(path)
    assert read_tensor(path, document["p"]).tolist() == [3.0, 3.0]
    assert read_tensor(path, document["e"]).shape == (0, 4)


def test_read_tensor__bytes_that_are_not_there(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt", {"w": torch.ones(2)})
    with pytest.raises(ArtifactError, match="damaged"):
        read_tensor(path, StoredTensor("FloatStorage", "0", 0, (300,), (1,)))
    with pytest.raises(ArtifactError, match="damaged"):
        read_tensor(path, StoredTensor("FloatStorage", "99", 0, (1,), (1,)))
    with pytest.raises(ArtifactError, match="with torch only"):
        read_tensor(path, StoredTensor("BFloat16Storage", "0", 0, (1,), (1,)))


class Evil:
    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> Any:
        return Path.touch, (self.mark,)


def test_read_torch_zip__runs_no_code(tmp_path: Path) -> None:
    path = save(tmp_path / "m.pt", {"state": Evil(tmp_path / "mark")})
    with pytest.raises(ArtifactError, match="more than tensors and plain values"):
        read_torch_zip(path)
    assert not (tmp_path / "mark").exists()


def test_read_torch_zip__damaged(tmp_path: Path) -> None:
    whole = save(tmp_path / "m.pt", {"w": torch.ones(100)}).read_bytes()
    cut = tmp_path / "cut.pt"
    cut.write_bytes(whole[: len(whole) // 2])
    assert not is_torch_zip(cut)
    with pytest.raises(ArtifactError, match=r"cut\.pt is damaged"):
        read_torch_zip(cut)
    broken = tmp_path / "broken.pt"
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("archive/data.pkl", b"\x80\x02}q\x00(X")
    assert is_torch_zip(broken)
    with pytest.raises(ArtifactError, match=r"broken\.pt is"):
        read_torch_zip(broken)


def test_is_torch_zip__other_files(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("readme.txt", "")
    (tmp_path / "b.pt").write_text("text")
    assert not is_torch_zip(tmp_path / "a.zip")
    assert not is_torch_zip(tmp_path / "b.pt")
    assert not is_torch_zip(tmp_path / "absent.pt")
    assert not is_torch_zip(tmp_path)

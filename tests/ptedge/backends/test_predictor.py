from __future__ import annotations

from pathlib import Path

import pytest
from keys import key_pair
from tiny_model import tiny_bundle

from ptedge.artifacts.trust import Trust
from ptedge.backends.predictor import open_predictor
from ptedge.errors import ArtifactError, InputError


def test_open_predictor__nothing_there(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none.pt does not exist. Give a checkpoint"):
        open_predictor(tmp_path / "none.pt")


def test_open_predictor__folder_that_is_no_bundle(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"is a folder without manifest.json"):
        open_predictor(tmp_path)


@pytest.mark.parametrize("name", ["model.pt", "model.onnx", "notes.txt"])
def test_open_predictor__file_that_is_no_model(tmp_path: Path, name: str) -> None:
    if not name.endswith(".onnx"):
        pytest.importorskip("torch", reason="a checkpoint is told by torch")
    (tmp_path / name).write_bytes(b"not a model")
    with pytest.raises((ArtifactError, InputError), match=name):
        open_predictor(tmp_path / name)


def test_open_predictor__trust_needs_a_bundle(tmp_path: Path) -> None:
    trust = Trust.read([key_pair(tmp_path)[1]])
    (tmp_path / "model.pt").write_bytes(b"x")
    with pytest.raises(InputError, match="no bundle and carries no signature"):
        open_predictor(tmp_path / "model.pt", trust=trust)
    with pytest.raises(ArtifactError, match=r"bundle\.sig is missing"):
        open_predictor(tiny_bundle(tmp_path / "b").path, "cpu", trust=trust)

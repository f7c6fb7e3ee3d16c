from __future__ import annotations

from pathlib import Path

import pytest

import ptedge
from ptedge.errors import InputError

pytest.importorskip("torch", reason="a checkpoint is exported with torch")


def test_export__gives_a_bundle_to_load(checkpoint: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = ptedge.export(checkpoint, out=str(tmp_path / "b"), size=(64, 80), quiet=True)
    assert capsys.readouterr() == ("", "")
    assert (done.bundle, done.manifest.input_size) == (tmp_path / "b", (64, 80))
    assert done.operators > 100 and done.size == (tmp_path / "b" / "model.onnx").stat().st_size
    with ptedge.load(done.bundle) as model:
        assert model.input_size == (64, 80)


def test_export__mistakes_are_errors(checkpoint: Path, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not a multiple of 16"):
        ptedge.export(checkpoint, out=tmp_path / "b", size=(63, 80))

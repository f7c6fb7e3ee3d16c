from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from square_finder import write_squares
from tiny_model import tiny_bundle

from ptedge.api.evaluate import evaluate
from ptedge.api.model import load
from ptedge.cli import cli
from ptedge.errors import InputError


def test_evaluate__gives_what_the_command_prints(tmp_path: Path) -> None:
    data, bundle = write_squares(tmp_path), tiny_bundle(tmp_path / "b").path
    printed = json.loads(CliRunner().invoke(cli, ["eval", str(bundle), str(data), "--json"]).stdout)
    scores = evaluate(str(bundle), str(data))
    assert scores.document == printed
    assert (scores.ap50, scores.ap75, scores.ap) == (printed["AP50"], printed["AP75"], printed["AP"])
    assert scores.coverage == printed["sigma"]["coverage_1"]
    assert len(scores.detections) == printed["images"]


def test_evaluate__a_loaded_model_stays_open_and_quiet_is_silent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = write_squares(tmp_path)
    with load(tiny_bundle(tmp_path / "b").path) as model:
        evaluate(model, data, limit=1)
        assert "signature: none" in capsys.readouterr().err
        assert evaluate(model, data, out=tmp_path / "out", quiet=True).document["images"] == 3
        assert capsys.readouterr() == ("", "")
        assert (tmp_path / "out" / "results.json").exists()
        assert len(model(np.zeros((64, 96, 3), np.uint8))) == 2


def test_evaluate__mistakes_are_errors(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        evaluate(tiny_bundle(tmp_path / "b").path, tmp_path / "missing")

"""``ptedge plot``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_run import is_picture, write_run
from made_study import made_result
from training_shell import Shell

NAMES = {"losses.png", "pseudo_boxes.png", "entropy.png", "agreement.png", "anchors.png", "run.png"}


def test_plot__command(ptedge: Shell, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="matplotlib is not installed (extra: train)")
    from click.testing import CliRunner

    from ptedge.cli import cli

    run = write_run(tmp_path / "run")
    result = CliRunner().invoke(cli, ["plot", str(run)])
    # no labelled data, no picture of quality
    assert {Path(line) for line in result.output.splitlines()} == {run / "plots" / n for n in NAMES}
    assert all(map(is_picture, (run / "plots").iterdir()))
    (tmp_path / "results.jsonl").write_text(f"{json.dumps(made_result('PT', 0, 0.8).to_json())}\n", "utf-8")
    result = CliRunner().invoke(cli, ["plot", str(tmp_path), "--out", str(tmp_path / "study")])
    assert result.exit_code == 0 and (tmp_path / "study" / "study.png").is_file()
    assert CliRunner().invoke(cli, ["plot", str(run), str(run)]).exit_code == 2
    status, err = ptedge("plot", tmp_path / "plots", sets=[])
    assert status == 1 and "has no metrics.jsonl" in err and not (tmp_path / "plots" / "plots").exists()

"""``ptedge study`` from TOML to table, with real training of the tiny detector inside this process."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from study_inside import main, run_inside
from training_shell import LOOP, MODEL

from ptedge.training.study.process import Processes


@pytest.fixture
def study(tmp_path: Path, source_data: Path, target_frames: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A study of three rows of two steps."""
    monkeypatch.setattr(Processes, "run", run_inside)
    common = [*LOOP, "optim.steps=2", "curves=false"]
    path = tmp_path / "study.toml"
    path.write_text(
        f"""
set = {json.dumps(common)}
start = "source"
baseline = "source"
[data]
root = "/"
source = "{source_data}"
source_val = "{source_data}"
frames = "{target_frames}"
val = "{source_data}"
[[row]]
name = "source"
kind = "train"
set = {json.dumps(MODEL)}
[[row]]
name = "PT source-free"
kind = "source_free"
set = ["choice.every=1", "choice.keep=9", "monitor.every=1"]
best = true
[[row]]
name = "alignment"
kind = "adapt"
set = ["align.method=ccr", "align.local_stage=1", "lambda_target=0"]
""",
        "utf-8",
    )
    return path


def test_study__trains_adapts_and_writes_the_table(study: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = ["study", study, "--out", out]
    status, said, err = main([*words, "--dry-run", "--json"])
    assert status == 0, err
    assert [(one["variant"], one["state"]) for one in json.loads(said)] == [
        ("source", "new"),
        ("PT source-free", "new"),
        ("alignment", "new"),
    ]
    assert not out.exists()

    status, said, err = main([*words, "--rows", "PT*", "--json"])
    assert status == 0, err
    lines = json.loads(said)
    assert [line["variant"] for line in lines] == ["source", "PT source-free"]
    assert "source_val" in lines[0] and lines[1]["start"] == "source" and lines[1]["steps"] == 2
    assert lines[1]["best"]["AP50"] >= lines[1]["AP50"] and lines[1]["best"]["of"] >= 3  # last, start, candidates
    assert (out / "runs" / "pt_source_free" / "seed_0" / "model.pt").exists()

    status, said, err = main(words)
    assert status == 0, err
    assert "3 runs: 2 finished, 1 to do" in err and "| alignment |" in said
    assert (out / "table.md").read_text("utf-8") in said
    assert len((out / "results.jsonl").read_text("utf-8").splitlines()) == 3

    status, said, err = main([*words, "--dry-run"])
    assert status == 0 and said.count(": finished\n") == 3


def test_study__a_failed_run_gives_status_1_and_its_reason(study: Path, tmp_path: Path) -> None:
    text = study.read_text("utf-8").replace("align.local_stage=1", "align.local_stage=2")
    study.write_text(text, "utf-8")
    status, said, err = main(["study", study, "--out", tmp_path / "out"])
    assert status == 1
    assert err.rstrip().splitlines()[-1].startswith("ptedge: 1 of the study's runs failed")
    assert "alignment, seed 0: align.local_stage is 2" in err and "Traceback" not in err
    assert "| PT source-free |" in said and "| alignment |" not in said


def test_study__wrong_config_is_one_sentence(study: Path, tmp_path: Path) -> None:
    study.write_text(study.read_text("utf-8").replace('start = "source"\n', 'start = "sourse"\n'), "utf-8")
    status, said, err = main(["study", study, "--out", tmp_path / "out"])
    assert (status, said, err.count("\n")) == (1, "", 1)
    assert "did you mean 'source'" in err and not (tmp_path / "out").exists()

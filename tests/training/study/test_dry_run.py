"""What a dry run tells, without data and with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from made_benchmarks import write_benchmark
from places import ROOT
from study_inside import main

PROTOCOL = ROOT / "samples" / "protocols" / "s2c.toml"


@pytest.fixture(autouse=True)
def _real_backbone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # of the tiny detector: only shapes are counted


def dry(data: Path, out: Path, *words: str) -> tuple[int, str, str]:
    return main(["study", PROTOCOL, "--data", data, "--out", out, "--dry-run", *words])


def test_dry_run__tells_steps_memory_and_hours_without_the_data(tmp_path: Path) -> None:
    status, said, err = dry(tmp_path / "none", tmp_path / "out", "--gpu", "rtx 3090")
    assert status == 0, err
    assert "# PT, seed 0: new\n# 26,000 steps of 16 labelled + 16 unlabelled images, about " in said
    assert "GPU hours: more than the 24 GiB of RTX 3090, see --preset" in said
    assert "ptedge adapt " in said and not (tmp_path / "out").exists()
    assert "on RTX 3090, 24 GiB: " in err and "GPU hours for what is not finished" in err
    assert "estimate. Memory: " in err and "Neither was measured" in err
    assert "data not ready: source: " in err and "which does not exist" in err


def test_dry_run__preset_keeps_the_step_and_fits(tmp_path: Path) -> None:
    words = ("--gpu", "rtx 3070", "--preset", "8gb", "--json", "--rows", "PT", "--seed", "3")
    status, said, err = dry(tmp_path, tmp_path / "out", *words)
    assert status == 0, err
    source, adapted = json.loads(said)
    assert (source["variant"], adapted["variant"], adapted["seed"]) == ("source only", "PT", 3)
    assert adapted["images_a_step"] == {"labelled": 16, "unlabelled": 16} and adapted["steps"] == 26000
    assert adapted["fits"] is True and adapted["gpu"] == "RTX 3070"
    low, high = adapted["gpu_hours"]
    assert 0 < low < high
    assert "--set optim.batch=4 --set optim.accumulate=4" in adapted["command"]


def test_dry_run__counts_the_data_and_says_what_is_off(tmp_path: Path) -> None:
    write_benchmark("s2c", tmp_path / "data")
    status, _, err = dry(tmp_path / "data", tmp_path / "out", "--rows", "PT source-free", "--gpu", "T4")
    assert status == 0, err
    _, said, _ = dry(tmp_path / "data", tmp_path / "out", "--gpu", "T4", "--preset", "12gb")
    assert "T4 has no bfloat16: --set precision=fp16" in said
    assert "data source: 12 images, not 10,000" in err and "refused without --allow" in err
    assert "data oracle: 12 images, not 2,975" in err  # the frames are its images
    status, _, err = dry(tmp_path / "data", tmp_path / "out", "--gpu", "abacus")
    assert status == 1 and "--gpu 'abacus' is none that is known" in err

"""What a run takes, before it starts."""

from __future__ import annotations

from pathlib import Path

import pytest
from made_study import DATA_TOML, ROWS_TOML, load_text
from places import ROOT
from tiny_detector import NAME

from ptedge.training.recipes.presets import PRESETS
from ptedge.training.study.estimate import SHARE_OF_PEAK, Estimate, estimate_of
from ptedge.training.study.gpus import Gpu
from ptedge.training.study.jobs import list_jobs
from ptedge.training.study.load import load_study

PROTOCOL = ROOT / "samples" / "protocols" / "c2f.toml"
MEMORY = {"8gb": 8.0, "12gb": 12.0, "24gb": 24.0, "agx": 32.0}


def estimates(tmp_path: Path, *sets: str) -> dict[str, Estimate]:
    rows = ROWS_TOML + '\n[[row]]\nname = "free"\nkind = "source_free"\nstart = "source"\n'
    sets = (f"model.backbone={NAME}", "model.input_size=[64, 96]", "model.frozen_stages=0", *sets)
    study = load_text(tmp_path, DATA_TOML + rows, overrides=sets)
    return {job.row.name: estimate_of(study, job) for job in list_jobs(study, tmp_path, check_data=False)}


def test_estimate_of__images_and_steps(tmp_path: Path) -> None:
    found = estimates(tmp_path, "optim.batch=3", "optim.accumulate=2", "optim.steps=5")
    assert {name: (one.steps, one.images) for name, one in found.items()} == {
        "source": (5, (6, 0)),
        "oracle": (5, (6, 0)),
        "PT, fast": (5, (6, 6)),
        "free": (5, (0, 6)),
    }


def test_estimate_of__adaptation_with_source_takes_most(tmp_path: Path) -> None:
    found = estimates(tmp_path, "optim.steps=5")
    assert found["PT, fast"].operations > found["free"].operations > found["source"].operations
    assert found["PT, fast"].memory > found["free"].memory > found["source"].memory


def test_estimate_of__parts_save_memory_and_cost_a_pass(tmp_path: Path) -> None:
    whole = estimates(tmp_path, "optim.batch=8")["PT, fast"]
    parts = estimates(tmp_path, "optim.batch=2", "optim.accumulate=4")["PT, fast"]
    assert parts.images == whole.images
    assert parts.memory < whole.memory and parts.operations > whole.operations
    longer = estimates(tmp_path, "optim.batch=8", "optim.steps=14")["PT, fast"]
    assert longer.operations == pytest.approx(2 * whole.operations)  # the row has 7 steps


def test_hours__between_two_shares_of_the_peak_and_none_where_it_is_not_known() -> None:
    one = Estimate(1, (1, 0), 1.0, operations=3600e12)
    low, high = SHARE_OF_PEAK
    assert one.hours(Gpu("g", 8, single=10, half=20)) == (pytest.approx(0.1 / high), pytest.approx(0.1 / low))
    assert Estimate(1, (1, 0), 1.0, 3600e12, "bf16").hours(Gpu("g", 8, single=10)) is None


@pytest.mark.parametrize("preset", list(PRESETS))
def test_presets__keep_the_papers_step_and_fit_by_the_estimate(preset: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()  # the real backbone, on shapes alone
    study = load_study(PROTOCOL, preset=preset)
    for job in list_jobs(study, Path("x"), check_data=False):
        one = estimate_of(study, job)
        assert max(one.images) == 16 and one.memory < MEMORY[preset], job.row.name

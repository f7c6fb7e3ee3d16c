"""``ptedge estimate``, and the end of ``train`` and ``adapt``: what is kept where, and whose scale of sigma stays."""

import dataclasses
import json
from pathlib import Path

import pytest
from click.testing import CliRunner
from training_shell import Shell, fails, summary

from ptedge.artifacts.checkpoint import Checkpoint, load_checkpoint, save_checkpoint
from ptedge.artifacts.estimate import LabelFreeFit, Ridge
from ptedge.calibration import CalibrationOrigin, SideCalibration
from ptedge.errors import InputError
from ptedge.frames.source import index_frames
from ptedge.training.estimate import finish
from ptedge.training.estimate.cli import estimate

SIDE = Ridge(0.2, (0.5,), (-9.0,), (9.0,), 0.1, 50)
AP = Ridge(0.1, (0.4, 0.2), (0.0,) * 2, (1.0,) * 2, 0.05, 50)
FIT = LabelFreeFit(SIDE, SIDE, SIDE, SIDE, AP, AP, 50, 1200, "cluster")


@pytest.fixture
def estimating(pretrained: Path, tmp_path: Path) -> Path:
    """A checkpoint that has learned to estimate."""
    path = tmp_path / "estimating.pt"
    save_checkpoint(path, dataclasses.replace(load_checkpoint(pretrained), label_free=FIT))
    return path


def test_adapt__estimates_the_target_and_scales_sigma(
    ptedge: Shell, estimating: Path, target_frames: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    words = ("--target", target_frames, "--source-free")
    status, err = ptedge.adapt(estimating, run, *words, sets=("estimate_scale=true",))
    assert status == 0, err
    assert "without labels: AP50 about" in err
    kept = load_checkpoint(run / "model.pt")
    assert kept.label_free == FIT
    assert kept.estimate is not None and kept.estimate.frames == 5
    assert summary(run)["estimate"]["ap50"] == kept.estimate.ap50
    assert kept.estimate.ap50_error == 0.05
    assert kept.calibration is not None and kept.calibration.scale == kept.estimate.scale
    assert (kept.calibration.origin.how, kept.calibration.origin.images) == ("label_free", 5)


def test_adapt__sigma_is_left_alone_unless_asked_for(
    ptedge: Shell, estimating: Path, target_frames: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    status, err = ptedge.adapt(estimating, run, "--target", target_frames, "--source-free")
    assert status == 0, err
    kept = load_checkpoint(run / "model.pt")
    assert kept.estimate is not None and kept.estimate.scale is not None
    assert kept.calibration is None


def test_adapt__no_frames_no_estimate(ptedge: Shell, estimating: Path, target_frames: Path, tmp_path: Path) -> None:
    run = tmp_path / "run"
    words = ("--target", target_frames, "--source-free")
    status, err = ptedge.adapt(estimating, run, *words, sets=("estimate_frames=0",))
    assert status == 0, err
    kept = load_checkpoint(run / "model.pt")
    assert (kept.label_free, kept.estimate, kept.calibration) == (FIT, None, None)
    assert "estimate" not in summary(run)


def test_train__val_teaches_where_a_setting_asks_for_it(
    ptedge: Shell, source_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(finish, "learn_fit", lambda *_: FIT)
    for sets, expected in ((("estimate_images=2",), FIT), ((), None)):
        run = tmp_path / str(len(sets))
        status, err = ptedge.train(source_data, run, "--val", source_data, sets=sets)
        assert status == 0, err
        assert load_checkpoint(run / "model.pt").label_free == expected
        assert ("label_free" in summary(run)) == (expected is not None)


def test_train__a_model_that_finds_nothing_is_written_all_the_same(
    ptedge: Shell, source_data: Path, tmp_path: Path
) -> None:
    sets = ("estimate_images=2",)
    status, err = ptedge.train(source_data, tmp_path / "run", "--val", source_data, steps=1, sets=sets)
    assert status == 0, err
    assert "no estimates without labels: too little to learn" in err
    assert load_checkpoint(tmp_path / "run" / "model.pt").label_free is None


def test_with_estimate__labels_know_better(estimating: Path, target_frames: Path) -> None:
    by_labels = SideCalibration(scale=(3.0, 3.0, 3.0, 3.0), origin=CalibrationOrigin("labels", 20, 9))
    checkpoint = dataclasses.replace(load_checkpoint(estimating), calibration=by_labels)
    judged = finish.with_estimate(checkpoint, index_frames(target_frames), 5, 0, scale_by="hash")
    assert judged.calibration == by_labels
    assert finish.with_estimate(checkpoint, index_frames(target_frames), 5, 0).calibration == by_labels
    plain = finish.with_estimate(load_checkpoint(estimating), index_frames(target_frames), 5, 0, scale_by="hash")
    assert plain.estimate == judged.estimate  # of the detector's own sigma, whatever was laid over it


def test_with_estimate__a_model_that_never_learned_is_refused(pretrained: Path, target_frames: Path) -> None:
    with pytest.raises(InputError, match="has not learned to estimate"):
        finish.with_estimate(load_checkpoint(pretrained), index_frames(target_frames), 5, 0, scale_by="hash")


def test_estimate__writes_what_it_prints(estimating: Path, target_frames: Path, tmp_path: Path) -> None:
    out = tmp_path / "judged.pt"
    words = [str(estimating), "--target", str(target_frames), "--out", str(out), "--json"]
    done = CliRunner().invoke(estimate, words)
    assert done.exit_code == 0, done.output
    kept: Checkpoint = load_checkpoint(out)
    document = json.loads(done.stdout)
    assert kept.estimate is not None and document["estimate"]["ap50"] == kept.estimate.ap50
    assert document["label_free"]["sets"] == 50


def test_estimate__neither_source_nor_target_is_wrong_usage(estimating: Path) -> None:
    done = CliRunner().invoke(estimate, [str(estimating)])
    assert done.exit_code == 2 and "give --source DATA" in done.output


def test_estimate__a_source_on_which_nothing_is_found_is_one_sentence(
    ptedge: Shell, pretrained: Path, source_data: Path
) -> None:
    words = ("estimate", pretrained, "--source", source_data, "--images", 2)
    status, err = ptedge(*words, sets=[])
    fails((status, err.splitlines()[-1] + "\n"), "too little to learn an estimate from")

"""The baselines are the same code with switches: AdaBN alone, fixed pseudo labels, one half of L_T, no variances."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from training_shell import FILES, Shell, assert_equal, fails, lines, summary

from ptedge.artifacts.checkpoint import load_checkpoint

MEAN = "backbone.body.features.1.running_mean"
WEIGHT = "roi_head.fc1.weight"


def test_adabn_alone__no_step_changes_statistics_only(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    status, err = ptedge.adapt(
        pretrained, run, "--target", target_frames, "--source-free", steps=0, sets=("teacher.adabn=true",)
    )
    assert status == 0, err
    start, deployed = load_checkpoint(pretrained).state, load_checkpoint(run / "model.pt").state
    changed = {name for name, tensor in start.items() if not torch.equal(tensor, deployed[name])}
    assert MEAN in changed
    assert all(name.rpartition(".")[2].startswith(("running_", "num_batches")) for name in changed)
    assert summary(run)["steps"] == 0 and (run / "config.toml").exists()
    # and it goes on from there
    words = ["--target", target_frames, "--source-free", "--resume"]
    status, err = ptedge.adapt(pretrained, run, *words, steps=1, sets=("teacher.adabn=true",))
    assert status == 0, err
    assert summary(run)["steps"] == 1 and {path.name for path in run.iterdir()} >= FILES


def test_train__needs_a_step(ptedge: Shell, source_data: Path, tmp_path: Path) -> None:
    fails(ptedge.train(source_data, tmp_path / "run", steps=0), "steps")


def test_fixed_labels__are_the_start_models_after_adabn(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path
) -> None:
    run, parts, words = tmp_path / "run", tmp_path / "parts", ["--target", target_frames, "--source-free"]
    sets = ("teacher.adabn=true", "teacher.labels=start", "teacher.ema=0.5")
    status, err = ptedge.adapt(pretrained, run, *words, steps=3, sets=sets)
    assert status == 0, err
    state = torch.load(run / "last.pt", weights_only=True)
    start, labeller = load_checkpoint(pretrained).state, state["labeller"]
    assert torch.equal(labeller[WEIGHT], start[WEIGHT]) and not torch.equal(labeller[MEAN], start[MEAN])
    deployed = load_checkpoint(run / "model.pt").state  # what is deployed has learnt
    assert not torch.equal(deployed[WEIGHT], start[WEIGHT])
    # the labels survive a break
    assert ptedge.adapt(pretrained, parts, *words, steps=1, sets=sets)[0] == 0
    assert ptedge.adapt(pretrained, parts, *words, "--resume", steps=3, sets=sets)[0] == 0
    assert_equal(run, parts)


@pytest.mark.parametrize(
    ("switch", "off", "still"),
    [
        ("target.cls_scale=0", "_cls", "roi_head.deltas.weight"),
        ("target.box_scale=0", "_box", "roi_head.logits.weight"),
    ],
)
def test_one_half__of_the_target_loss(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path, switch: str, off: str, still: str
) -> None:
    sets = (switch, "optim.weight_decay=0.0", "pseudo.clamp_focal=false", "teacher.ema=0.5", "optim.anchor_lr=0.1")
    run = tmp_path / "run"
    status, err = ptedge.adapt(pretrained, run, "--target", target_frames, "--source-free", sets=sets)
    assert status == 0, err
    last = lines(run)[-1]
    terms = {name: value for name, value in last.items() if name.startswith("target_")}
    assert all((value == 0) == name.endswith(off) for name, value in terms.items()), terms
    start, deployed = load_checkpoint(pretrained).state, load_checkpoint(run / "model.pt").state
    silent = "roi_head.logits.weight" if off == "_cls" else "roi_head.deltas.weight"
    assert not torch.equal(deployed[still], start[still])
    torch.testing.assert_close(deployed[silent], start[silent], rtol=0, atol=1e-7)
    anchors = "anchors.log_wh"
    assert torch.equal(deployed[anchors], start[anchors]) == (off == "_box")


@pytest.mark.parametrize("mean_teacher", [True, False])
@pytest.mark.parametrize("source_free", [True, False])
def test_vanilla__trains_and_adapts(
    ptedge: Shell, source_data: Path, target_frames: Path, tmp_path: Path, source_free: bool, mean_teacher: bool
) -> None:
    status, err = ptedge.train(source_data, tmp_path / "source", sets=("model.probabilistic=false",))
    assert status == 0, err
    mode = ["--source-free"] if source_free else ["--source", source_data]
    hard = ("pseudo.hard_labels=true", "pseudo.score_threshold=0.1", "target.background=true", "pseudo.focal_box=0")
    model, run = tmp_path / "source" / "model.pt", tmp_path / "run"
    words = ["--target", target_frames, *mode, "--val", source_data]
    status, err = ptedge.adapt(model, run, *words, sets=hard if mean_teacher else ())
    assert status == 0, err
    assert not any("variances" in name for name in load_checkpoint(run / "model.pt").state)
    assert summary(run)["val"]["images"] == 6


def test_source_free__without_target_loss_is_refused(
    ptedge: Shell, pretrained: Path, target_frames: Path, tmp_path: Path
) -> None:
    words = ["--target", target_frames, "--source-free"]
    fails(ptedge.adapt(pretrained, tmp_path / "run", *words, sets=("lambda_target=0",)), "nothing to learn")

"""Two processes on gloo against one process with their images: the same run."""

from __future__ import annotations

import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_detector import write_pictures
from tiny_processes import Job, run
from torch import Tensor
from training_shell import LOOP, MODEL, Shell, lines, summary

pytestmark = pytest.mark.skipif(not torch.distributed.is_available(), reason="this PyTorch has no torch.distributed")


def options(*sets: str) -> list[str]:
    return [word for value in sets for word in ("--set", value)]


def train_job(source: Path, out: Path, *sets: str, processes: int = 1) -> Job:
    return Job(["train", str(source), "--out", str(out), *options(*LOOP, *MODEL, *sets)], processes)


def tensors(run_folder: Path) -> dict[str, Tensor]:
    """Weights, buffers and momenta by name."""
    state: dict[str, Any] = torch.load(run_folder / "last.pt", weights_only=True)
    found = {f"{role} {name}": t for role in ("student", "teacher") if role in state for name, t in state[role].items()}
    for number, entry in state["optimizer"]["state"].items():
        found[f"momentum {number}"] = entry["momentum_buffer"]
    return found


def assert_close(first: Path, second: Path) -> None:
    a, b = tensors(first), tensors(second)
    assert a.keys() == b.keys()
    for name, tensor in a.items():
        torch.testing.assert_close(b[name], tensor, rtol=1e-4, atol=2e-6, msg=lambda text, name=name: f"{name}: {text}")
    for one, other in zip(lines(first), lines(second), strict=True):
        for name in one:
            if name.endswith(("_cls", "_box")) or name in ("loss", "grad_norm"):
                assert other[name] == pytest.approx(one[name], rel=1e-4, abs=1e-5), name


def test_train__two_processes_equal_one_of_twice_the_batch(source_data: Path, tmp_path: Path) -> None:
    one, two = tmp_path / "one", tmp_path / "two"
    answers = run(
        train_job(source_data, one, "optim.batch=4", "optim.steps=5"),
        train_job(source_data, two, "optim.batch=2", "optim.steps=5", processes=2),
    )
    assert [answer["status"] for answer in answers] == [[0], [0, 0]], answers
    assert_close(one, two)
    assert answers[1]["err"][1] == ""  # the first process alone speaks
    assert "4 images a step (2 a part, 1 parts, 2 processes)" in answers[1]["err"][0]
    assert "Warning" not in answers[1]["err"][0]


@pytest.mark.parametrize("frozen", [True, False])
def test_train__parts_equal_the_whole_batch(ptedge: Shell, source_data: Path, tmp_path: Path, frozen: bool) -> None:
    norm = "batch_norm=frozen" if frozen else "batch_norm=batch"
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    assert ptedge.train(source_data, whole, steps=4, sets=("optim.batch=4", norm))[0] == 0
    status, err = ptedge.train(source_data, parts, steps=4, sets=("optim.batch=2", "optim.accumulate=2", norm))
    assert status == 0, err
    if frozen:
        assert_close(whole, parts)
    else:  # each part is normalised by its own statistics
        with pytest.raises(AssertionError):
            assert_close(whole, parts)
        name = "student backbone.body.features.1.num_batches_tracked"
        assert int(tensors(parts)[name]) == 8 and int(tensors(whole)[name]) == 4  # counting is no batch


def adapt_job(model: Path, target: Path, out: Path, words: list[str], *sets: str, processes: int = 1) -> Job:
    more = ("teacher.ema=0.5", "optim.anchor_lr=0.01", "teacher.adabn=true", "curves=false")
    line = ["adapt", str(model), "--target", str(target), "--out", str(out), *words, *options(*LOOP, *more, *sets)]
    return Job(line, processes)


def test_adapt__two_processes_equal_one_of_twice_the_batch(
    pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    one, two, three, four = (tmp_path / name for name in ("one", "two", "three", "four"))
    few = str(write_pictures(tmp_path / "few", 3, seed=2))
    words, steps = ["--source", str(source_data), "--labels", few], "optim.steps=4"
    frozen = ("batch_norm=frozen", steps)
    parts = (*frozen, "optim.batch=1", "labels.batch=1", "optim.accumulate=2", "checkpointing=true")
    whole, half = ("optim.batch=4", "labels.batch=4"), ("optim.batch=2", "labels.batch=2")
    answers = run(
        adapt_job(pretrained, target_frames, one, words, *whole, steps),
        adapt_job(pretrained, target_frames, two, words, *half, steps, processes=2),
        adapt_job(pretrained, target_frames, three, words, *whole, *frozen),
        adapt_job(pretrained, target_frames, four, words, *parts, processes=2),
    )
    assert [answer["status"] for answer in answers] == [[0], [0, 0]] * 2, answers
    assert_close(one, two)
    assert_close(three, four)
    assert lines(one)[-1]["target_rpn_box"] > 0 and lines(one)[-1]["labelled_rpn_cls"] > 0
    before = torch.load(pretrained, weights_only=True)["state"]["anchors.log_wh"]
    after = tensors(two)
    assert not torch.equal(after["teacher anchors.log_wh"], before)
    assert not torch.equal(after["teacher anchors.log_wh"], after["student anchors.log_wh"])
    for name in ("model.pt", "last.pt", "summary.json", "metrics.jsonl"):
        assert (two / name).exists()


def test_adapt__parts_equal_the_whole_batch(
    ptedge: Shell, pretrained: Path, source_data: Path, target_frames: Path, tmp_path: Path
) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    words = ["--target", target_frames, "--source", source_data]
    sets = ("batch_norm=frozen", "teacher.ema=0.5", "optim.anchor_lr=0.01", "curves=false")
    assert ptedge.adapt(pretrained, whole, *words, steps=4, sets=(*sets, "optim.batch=4"))[0] == 0
    sets = (*sets, "optim.batch=1", "optim.accumulate=4")
    status, err = ptedge.adapt(pretrained, parts, *words, steps=4, sets=sets)
    assert status == 0, err
    assert_close(whole, parts)


def test_train__two_processes_stop_together_and_fail_with_one_sentence(source_data: Path, tmp_path: Path) -> None:
    broken = write_pictures(tmp_path / "broken", 3)
    for path in (tmp_path / "broken" / "images").iterdir():
        path.write_bytes(b"no image")
    stopped, killed = tmp_path / "stopped", tmp_path / "killed"
    endless = [train_job(source_data, out, "optim.steps=100000", processes=2) for out in (stopped, killed)]
    begun = [str(out / "metrics.jsonl") for out in (stopped, killed)]
    stop, kill, fail = run(
        replace(endless[0], sends=signal.SIGTERM, when=begun[0]),
        replace(endless[1], sends=signal.SIGKILL, to=1, when=begun[1]),
        train_job(broken, tmp_path / "run", "optim.steps=3", processes=2),
    )
    assert stop["status"] == [143, 143], stop
    assert summary(stopped)["interrupted"] is True and (stopped / "last.pt").exists()
    assert stop["err"][0].count("--resume") == 1 and "Traceback" not in stop["err"][1]
    assert kill["status"] == [1, -signal.SIGKILL], kill
    assert "Traceback" not in kill["err"][0] and "lost another one" in kill["err"][0].splitlines()[-1], kill
    assert fail["status"] == [1, 1], fail
    sentences = [line for err in fail["err"] for line in err.splitlines() if line.startswith("ptedge: ")]
    assert len(sentences) == 1 and "no image can be read" in sentences[0], fail
    assert not any("Traceback" in err for err in fail["err"])

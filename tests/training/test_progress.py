from __future__ import annotations

import time

import pytest

from ptedge.training.progress import TrainingProgress


def test_training_progress__says_once_how_long_it_takes_where_there_is_no_terminal(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with TrainingProgress("train", 300, 0) as progress:
        for done in range(1, 6):
            now[0] += 30.0 if done == 1 else 1.0  # the first step starts workers
            progress.step(done)
            if done == 5:
                progress.log(done, {"loss": 0.5})
    # 2 s after the first step, 3 of 300 are done at a second each
    assert capsys.readouterr().err.splitlines() == ["300 steps, about 5 min to go", "step 5/300  loss 0.500 ()"]


@pytest.mark.parametrize(
    ("first", "told"),
    [
        (1.1, ["300 steps, about 5 min to go by the first one's pace"]),  # as it turns out to be: nothing is said again
        (9.0, ["300 steps, about 45 min to go by the first one's pace", "300 steps, about 5 min to go"]),
    ],
)
def test_training_progress__says_at_the_first_step_how_long_it_takes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], first: float, told: list[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with TrainingProgress("train", 300, 0) as progress:
        for done in range(1, 6):
            now[0] += 1.0
            progress.step(done)
            if done == 1:  # half of its time it waited for workers
                progress.log(done, {"loss": 0.5, "step_seconds": 2 * first, "data_wait": 0.5})
    assert capsys.readouterr().err.splitlines() == ["step 1/300  loss 0.500 ()", *told]


def test_training_progress__short_runs_say_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = [0.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    with TrainingProgress("train", 6, 0) as progress:
        for done in range(1, 7):
            now[0] += 1.0
            progress.step(done)
    assert capsys.readouterr().err == ""

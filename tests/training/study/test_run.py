"""Running a study: order, failures, continuation and results with a fake run."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from made_study import ROWS, STUDY, summary_of, swept

from ptedge.errors import ArtifactError, ConfigError, OutputError, TrainingError
from ptedge.training.study.jobs import Job, list_jobs
from ptedge.training.study.plan import Row, Study
from ptedge.training.study.process import RunStoppedError, result_of
from ptedge.training.study.result import Result
from ptedge.training.study.run import Outcome, run_study, state_of_job, study_lock


class Fake:
    """Stands in for :func:`~ptedge.training.study.process.run_job`: notes the order, fails where it is told to."""

    def __init__(self, failing: tuple[str, ...] = ()) -> None:
        self.failing = failing
        self.order: list[str] = []
        self.at_once = self.most = 0
        self.lock = threading.Lock()

    def __call__(self, job: Job) -> Result:
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(0.01)
        with self.lock:
            self.order.append(job.name)
            self.at_once -= 1
        if job.name in self.failing:
            raise TrainingError("the loss is not finite")
        result = result_of(job, summary_of(job))
        job.result.write_text(json.dumps({**result.to_json(), "fingerprint": job.fingerprint}), "utf-8")
        return result


def go(out: Path, run: Any, study: Study = STUDY, at_once: int = 2) -> tuple[Outcome, list[str]]:
    said: list[str] = []
    jobs = list_jobs(study, out, check_data=False)
    return run_study(study, out, jobs, run, at_once=at_once, echo=said.append), said


def test_run_study__starts_before_what_needs_them(tmp_path: Path) -> None:
    fake = Fake()
    outcome, said = go(tmp_path, fake, at_once=3)
    assert not outcome.failed and not outcome.interrupted
    assert sorted(fake.order) == sorted(f"{row.name}, seed {s}" for row in ROWS for s in (0, 1))
    for seed in (0, 1):
        assert fake.order.index(f"source, seed {seed}") < fake.order.index(f"adapted, seed {seed}")
    assert fake.most <= 3 and said[0] == "6 runs: 0 finished, 6 to do, 3 at a time"
    lines = [json.loads(line) for line in (tmp_path / "results.jsonl").read_text("utf-8").splitlines()]
    assert lines == [result.to_json() for result in outcome.results]
    assert [(line["variant"], line["seed"]) for line in lines] == [(row.name, s) for row in ROWS for s in (0, 1)]
    assert lines[0]["start"] == "source" and lines[0]["chosen"]["AP50"] == 0.8


def test_run_study__what_others_need_and_what_takes_long_comes_first(tmp_path: Path) -> None:
    short, long = Row("short", "train", set=("optim.steps=1",)), Row("long", "train", set=("optim.steps=90",))
    source = Row("source", "train", set=("optim.steps=5",))
    fake = Fake()
    go(tmp_path, fake, Study(**{**STUDY.__dict__, "row": (short, long, ROWS[0], source), "oracle": ""}), at_once=1)
    assert fake.order[:2] == ["source, seed 0", "source, seed 1"]
    last = [name for name in fake.order if name.startswith(("long", "short"))]
    assert last == ["long, seed 0", "long, seed 1", "short, seed 0", "short, seed 1"]


def test_run_study__a_result_of_other_settings_is_no_result(tmp_path: Path) -> None:
    go(tmp_path, Fake())
    job = list_jobs(STUDY, tmp_path, check_data=False)[0]
    line = json.loads(job.result.read_text("utf-8"))
    job.result.write_text(json.dumps({**line, "fingerprint": "another"}), "utf-8")
    outcome, _ = go(tmp_path, Fake())
    assert len(outcome.results) == 5 and (job.row.name, job.seed) not in {(r.variant, r.seed) for r in outcome.results}


def test_run_study__what_is_finished_is_kept(tmp_path: Path) -> None:
    go(tmp_path, Fake())
    again = Fake()
    outcome, _ = go(tmp_path, again)
    assert again.order == [] and len(outcome.results) == 6


def test_state_of_job__best_asked_for_later_is_still_to_do(tmp_path: Path) -> None:
    go(tmp_path, Fake())
    asked = Study(**{**STUDY.__dict__, "row": (Row("adapted", "adapt", start="source", best=True), *ROWS[1:])})
    states = [state_of_job(job) for job in list_jobs(asked, tmp_path, check_data=False)]
    assert states.count("finished") == 4  # training and oracle of both seeds


def test_run_study__a_failure_leaves_the_others_alone(tmp_path: Path) -> None:
    fake = Fake(failing=("source, seed 1",))
    outcome, said = go(tmp_path, fake)
    assert outcome.failed == {
        "source, seed 1": "the loss is not finite",
        "adapted, seed 1": "it starts from source, seed 1, which failed",
    }
    assert "adapted, seed 1" not in fake.order and len(outcome.results) == 4
    assert any(line.startswith("failed: source, seed 1") for line in said)
    # the next time only those are tried
    healed = Fake()
    outcome, _ = go(tmp_path, healed)
    assert sorted(healed.order) == ["adapted, seed 1", "source, seed 1"] and len(outcome.results) == 6


def test_run_study__other_settings_are_refused(tmp_path: Path) -> None:
    go(tmp_path, Fake())
    changed = Study(**{**STUDY.__dict__, "row": (*ROWS[:2], Row("oracle", "oracle", set=("view=weak",)))})
    with pytest.raises(ConfigError, match="oracle, seed 0 with other settings"):
        go(tmp_path, Fake(), changed)


def test_run_study__a_signal_stops_it(tmp_path: Path) -> None:
    stopped = threading.Event()

    def run(job: Job) -> Result:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped.wait(10)
        raise RunStoppedError

    jobs = list_jobs(STUDY, tmp_path, check_data=False)
    outcome = run_study(STUDY, tmp_path, jobs, run, at_once=1, echo=lambda text: None, stop=stopped.set)
    assert outcome.interrupted and not outcome.failed and outcome.results == []
    assert outcome.signal == signal.SIGTERM


def test_study_lock__one_study_a_folder(tmp_path: Path) -> None:
    with study_lock(tmp_path / "out"), pytest.raises(OutputError, match="in use"), study_lock(tmp_path / "out"):
        pass
    with study_lock(tmp_path / "out") as lock:  # a command left behind by a killed study holds it on
        child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, pass_fds=(lock,))
    with pytest.raises(OutputError, match="in use"), study_lock(tmp_path / "out"):
        pass
    child.communicate(b"\n")
    with study_lock(tmp_path / "out"):
        pass


def test_run_study__sweeps_and_roles_follow_the_study_as_it_is_now(tmp_path: Path) -> None:
    before, _ = go(tmp_path, Fake())
    assert [(r.sweep, r.roles) for r in before.results[::2]] == [((), ()), ((), ("source",)), ((), ("oracle",))]
    row = Row("adapted", "adapt", start="source", sweep=swept("tau", 0.25))
    again = Fake()
    outcome, _ = go(tmp_path, again, Study(**{**STUDY.__dict__, "row": (row, *ROWS[1:]), "beside": ("adapted",)}))
    assert again.order == []  # where a row stands in a plot is no setting of its runs
    assert (outcome.results[0].sweep, outcome.results[0].roles) == (swept("tau", 0.25), ("beside",))
    line = json.loads((tmp_path / "results.jsonl").read_text("utf-8").splitlines()[0])
    assert (line["sweep"], line["roles"]) == ([{"axis": "tau", "value": 0.25}], ["beside"])


def test_run_study__a_broken_result_is_one_sentence(tmp_path: Path) -> None:
    go(tmp_path, Fake())
    job = list_jobs(STUDY, tmp_path, check_data=False)[0]
    job.result.write_text(json.dumps({"fingerprint": job.fingerprint}), "utf-8")
    with pytest.raises(ArtifactError, match=r"seed_0\.json is no result .*'variant'.*Remove it"):
        go(tmp_path, Fake())

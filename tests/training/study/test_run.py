"""Running a study: order, failures, continuation and results with a fake run; once with real commands."""

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

from ptedge.errors import ConfigError, OutputError, TrainingError
from ptedge.training.study.jobs import Job, list_jobs
from ptedge.training.study.plan import Row, Study, StudyData
from ptedge.training.study.process import Processes, RunStoppedError, environment, line_of, run_job
from ptedge.training.study.run import Outcome, run_study, state_of_job, study_lock
from ptedge.training.study.table import gap_closed, paired_differences, spread, table

ROWS = (
    Row("adapted", "adapt", start="source", paper=(("K2C", 60.2),)),
    Row("source", "train"),
    Row("oracle", "oracle"),
)
STUDY = Study(
    title="T", seeds=(0, 1), baseline="source", source="source", oracle="oracle", row=ROWS, data=StudyData(val="val")
)
AP = {"source": 0.4, "oracle": 0.9, "adapted": 0.8}


def summary(job: Job) -> dict[str, Any]:
    scores = {"AP50": AP[job.row.name] + 0.01 * job.seed, "AP75": 0.2, "AP": 0.3}
    val = {**scores, "sigma": {"coverage_1": 0.5}}
    return {"last": {"step": 9, **scores}, "chosen": {"step": 9, **scores}, "val": val, "steps": 9, "seconds": 1.0}


class Fake:
    """Stands in for :func:`run_job`: notes the order, fails where it is told to."""

    def __init__(self, failing: tuple[str, ...] = ()) -> None:
        self.failing = failing
        self.order: list[str] = []
        self.at_once = self.most = 0
        self.lock = threading.Lock()

    def __call__(self, job: Job) -> dict[str, Any]:
        with self.lock:
            self.at_once += 1
            self.most = max(self.most, self.at_once)
        time.sleep(0.01)
        with self.lock:
            self.order.append(job.name)
            self.at_once -= 1
        if job.name in self.failing:
            raise TrainingError("the loss is not finite")
        line = line_of(job, summary(job))
        job.result.write_text(json.dumps({**line, "fingerprint": job.fingerprint}), "utf-8")
        return line


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
    assert lines == outcome.lines
    assert [(line["variant"], line["seed"]) for line in lines] == [(row.name, s) for row in ROWS for s in (0, 1)]
    assert lines[0]["start"] == "source" and lines[0]["chosen"]["AP50"] == 0.8


def test_run_study__what_is_finished_is_kept(tmp_path: Path) -> None:
    go(tmp_path, Fake())
    again = Fake()
    outcome, _ = go(tmp_path, again)
    assert again.order == [] and len(outcome.lines) == 6


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
    assert "adapted, seed 1" not in fake.order and len(outcome.lines) == 4
    assert any(line.startswith("failed: source, seed 1") for line in said)
    # the next time only those are tried
    healed = Fake()
    outcome, _ = go(tmp_path, healed)
    assert sorted(healed.order) == ["adapted, seed 1", "source, seed 1"] and len(outcome.lines) == 6


def test_run_study__other_settings_are_refused(tmp_path: Path) -> None:
    go(tmp_path, Fake())
    changed = Study(**{**STUDY.__dict__, "row": (*ROWS[:2], Row("oracle", "oracle", set=("view=weak",)))})
    with pytest.raises(ConfigError, match="oracle, seed 0 with other settings"):
        go(tmp_path, Fake(), changed)


def test_run_study__a_signal_stops_it(tmp_path: Path) -> None:
    stopped = threading.Event()

    def run(job: Job) -> dict[str, Any]:
        os.kill(os.getpid(), signal.SIGTERM)
        assert stopped.wait(10)
        raise RunStoppedError

    jobs = list_jobs(STUDY, tmp_path, check_data=False)
    outcome = run_study(STUDY, tmp_path, jobs, run, at_once=1, echo=lambda text: None, stop=stopped.set)
    assert outcome.interrupted and not outcome.failed and outcome.lines == []


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


def test_line_of__without_scores_is_one_sentence(tmp_path: Path) -> None:
    job = list_jobs(STUDY, tmp_path, check_data=False)[0]
    with pytest.raises(TrainingError, match="lacks scores"):
        line_of(job, {"steps": 3, "last": {"step": 3}})


def test_environment__shares_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert environment(8)["OMP_NUM_THREADS"] == "2"
    assert environment(32)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert environment(8)["OMP_NUM_THREADS"] == "3"  # the user decided


# ------------------------------------------------------------------ processes, with a stand-in for ptedge


class Scripted(Processes):
    """Runs a line of Python in place of the command."""

    code = ""

    def run(self, words: Any, log: Path) -> tuple[int, str, float]:
        return super().run(["-c", self.code, *words], log)


def one_job(tmp_path: Path) -> Job:
    job = list_jobs(STUDY, tmp_path, check_data=False)[0]
    job.folder.mkdir(parents=True)
    return job


def test_run_job__reads_the_summary_and_marks_it_finished(tmp_path: Path) -> None:
    job, processes = one_job(tmp_path), Scripted(dict(os.environ))
    (job.folder / "model.pt").touch()  # killed before last.pt: cannot be continued, and would be in the way
    (job.folder / "checkpoints").mkdir()
    (job.folder / "checkpoints" / "step_000004.pt").touch()
    (job.folder / "summary.json").write_text(json.dumps(summary(job)), "utf-8")
    processes.code = "import sys; assert '--resume' not in sys.argv; print('noise', file=sys.stderr)"
    line = run_job(job, processes, tmp_path / "val", None)
    assert line["AP50"] == 0.4 and line["memory_mib"]["process"] > 1
    assert state_of_job(job) == "finished" and {path.name for path in job.folder.iterdir()} == {"summary.json"}
    assert job.log.read_text("utf-8") == "noise\n"


def test_run_job__continues_what_is_there(tmp_path: Path) -> None:
    job, processes = one_job(tmp_path), Scripted(dict(os.environ))
    (job.folder / "last.pt").touch()
    assert state_of_job(job) == "continue"
    processes.code = "import sys; sys.exit('ptedge: it hurts here' if '--resume' in sys.argv else 0)"
    with pytest.raises(TrainingError, match=r"^it hurts here \(all it said: "):
        run_job(job, processes, tmp_path / "val", None)
    assert state_of_job(job) == "continue"


def test_run_job__stopped_from_outside(tmp_path: Path) -> None:
    job, processes = one_job(tmp_path), Scripted(dict(os.environ))
    processes.code = "import time; time.sleep(30)"
    threading.Timer(0.3, processes.stop).start()
    with pytest.raises(RunStoppedError):
        run_job(job, processes, tmp_path / "val", None)
    with pytest.raises(RunStoppedError):  # and nothing begins afterwards
        run_job(job, processes, tmp_path / "val", None)


# ------------------------------------------------------------------ the table


def test_spread__median_and_range() -> None:
    assert spread([1.0, 4.0, 2.0]) == "2.0 (1.0 to 4.0)"
    assert (spread([1.25], 2), spread([])) == ("1.25", "-")


def test_differences_and_gap__seed_by_seed() -> None:
    scores = {("a", 0): 80.0, ("a", 1): 70.0, ("a", 2): 5.0, ("s", 0): 60.0, ("s", 1): 75.0}
    scores |= {("o", 0): 100.0, ("o", 1): 75.0}
    assert paired_differences(scores, "a", "s") == [20.0, -5.0]  # seed 2 has no partner
    assert gap_closed(scores, "a", "s", "o") == [0.5]  # seed 1 has no gap


def test_table__says_what_it_should(tmp_path: Path) -> None:
    go(tmp_path, Fake())
    page = (tmp_path / "table.md").read_text("utf-8")
    cells = [
        cell.strip() for cell in next(line for line in page.splitlines() if line.startswith("| adapted")).split("|")
    ]
    # AP50 80 and 81, source 40 and 41, oracle 90 and 91
    assert "80.5 (80.0 to 81.0)" in cells and "+40.0 (+40.0 to +40.0)" in cells
    assert "0.80 (0.80 to 0.80)" in cells and "60.2" in cells
    assert "| row | seed 0 | seed 1 |" in page and "| oracle | 90.0 | 91.0 |" in page
    assert table(STUDY, []).endswith("No run is finished.\n")


def test_table__best_is_named_an_oracles_choice(tmp_path: Path) -> None:
    outcome, _ = go(tmp_path, Fake())
    outcome.lines[0]["best"] = {"checkpoint": "step_000004", "AP50": 0.85, "of": 5}
    page = table(STUDY, outcome.lines)
    assert "AP50, best by target labels" in page and "an oracle's choice" in page and "| 85.0 |" in page

"""One run of a study as processes, with a stand-in for ptedge."""

from __future__ import annotations

import json
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_study import STUDY, summary_of

from ptedge.errors import TrainingError
from ptedge.training.study.jobs import Job, list_jobs
from ptedge.training.study.process import Processes, RunStoppedError, environment, result_of, run_job
from ptedge.training.study.run import state_of_job


def test_result_of__without_scores_is_one_sentence(tmp_path: Path) -> None:
    job = list_jobs(STUDY, tmp_path, check_data=False)[0]
    with pytest.raises(TrainingError, match="lacks scores"):
        result_of(job, {"steps": 3, "last": {"step": 3}})
    empty = summary_of(job)
    empty["last"]["AP50"] = None  # labels without a box have no AP
    with pytest.raises(TrainingError, match=r"lacks scores.*has labelled boxes"):
        result_of(job, empty)


def test_environment__shares_the_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: set(range(16)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert environment(8)["OMP_NUM_THREADS"] == "2"
    assert environment(32)["OMP_NUM_THREADS"] == "1"
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    assert environment(8)["OMP_NUM_THREADS"] == "3"  # the user decided


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
    (job.folder / "summary.json").write_text(json.dumps(summary_of(job)), "utf-8")
    processes.code = "import sys; assert '--resume' not in sys.argv; print('noise', file=sys.stderr)"
    result = run_job(job, processes, tmp_path / "val", None)
    assert result.last.ap50 == 0.4 and result.memory_mib["process"] > 1
    assert state_of_job(job) == "finished" and {path.name for path in job.folder.iterdir()} == {"summary.json"}
    assert job.log.read_text("utf-8") == "noise\n"


def test_run_job__draws_its_labels_once_and_first(tmp_path: Path) -> None:
    labels = tmp_path / "new" / "few.json"
    job, processes = replace(one_job(tmp_path), labels=labels, draw=("data", "convert")), Scripted(dict(os.environ))
    (job.folder / "summary.json").write_text(json.dumps(summary_of(job)), "utf-8")
    processes.code = f"""
import pathlib, sys
print(sys.argv[3], file=sys.stderr)
if sys.argv[3:] == ["data", "convert"]:
    pathlib.Path({str(labels)!r}).touch()
"""
    for said in (["data", job.words[0]], ["data", job.words[0], job.words[0]]):
        run_job(job, processes, tmp_path / "val", None)
        assert job.log.read_text("utf-8").split() == said


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


def test_run_job__an_interrupted_run_is_not_finished(tmp_path: Path) -> None:
    job, processes = one_job(tmp_path), Scripted(dict(os.environ))
    (job.folder / "summary.json").write_text(json.dumps({**summary_of(job), "interrupted": True}), "utf-8")
    processes.code = "pass"
    with pytest.raises(RunStoppedError):
        run_job(job, processes, tmp_path / "val", None)
    assert not job.result.exists()


SCORE = """
import json, sys
if "ptedge.training.study.score" in sys.argv:
    for name in sys.argv[4:]:
        print(json.dumps({"checkpoint": name, "AP50": AP50[name.rpartition("/")[2]]}))
"""


@pytest.mark.parametrize(
    ("kept", "best"), [({"step_2.pt": 0.9, "step_4.pt": 0.7}, ("step_2", 0.9)), ({"step_2.pt": 0.8}, ("last", 0.8))]
)
def test_run_job__best_of_all_that_was_kept(tmp_path: Path, kept: dict[str, float], best: tuple[str, float]) -> None:
    study = replace(STUDY, row=(replace(STUDY.row[0], best=True), *STUDY.row[1:]))
    job = next(job for job in list_jobs(study, tmp_path, check_data=False) if job.row.best)
    (job.folder / "checkpoints").mkdir(parents=True)
    (job.folder / "last.pt").touch()
    for name in kept:
        (job.folder / "checkpoints" / name).touch()
    (job.folder / "summary.json").write_text(json.dumps(summary_of(job)), "utf-8")
    processes = Scripted(dict(os.environ))
    processes.code = f"AP50 = {kept!r}\n{SCORE}"
    result = run_job(job, processes, tmp_path / "val", tmp_path / "source_val")
    assert result.best is not None  # of equal ones the last checkpoint, which is there anyway
    assert (result.best.checkpoint, result.best.ap50, result.best.of) == (*best, len(kept) + 1)
    assert result.source_val is None  # an adapted model is not asked about the source


def test_run_job__a_trained_model_is_asked_about_the_source(tmp_path: Path) -> None:
    job, processes = one_job(tmp_path), Scripted(dict(os.environ))
    (job.folder / "last.pt").touch()
    (job.folder / "summary.json").write_text(json.dumps(summary_of(job)), "utf-8")
    processes.code = f"AP50 = {{'model.pt': 0.625}}\n{SCORE}"
    result = run_job(job, processes, tmp_path / "val", tmp_path / "source_val")
    assert result.source_val == 0.625 and result.best is None

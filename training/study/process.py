"""One run of a study as processes: start or continue it, wait, read its summary, score what it kept."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

from ptedge.errors import TrainingError
from ptedge.files import write_json
from ptedge.machine.cpu import usable_cores
from ptedge.machine.memory import peak_of
from ptedge.scores.convention import VOC
from ptedge.signals import SIGNALS

from .jobs import Job
from .result import Best, Result, Scores

INTERRUPTED = tuple(128 + number for number in SIGNALS)  # of a run that was asked to stop and can be continued
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


class RunStoppedError(Exception):
    """A run was asked to stop; the next study continues it."""


@dataclass
class Processes:
    """Starts commands, and stops those that run when asked.

    Attributes:
        environment: of the commands.
        keep: file descriptors that they inherit (the study's lock: it is held until the last of them ends).
    """

    environment: dict[str, str]
    keep: tuple[int, ...] = ()
    running: set[int] = field(default_factory=set)
    stopping: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    def run(self, words: Sequence[str], log: Path) -> tuple[int, str, float]:
        """Run a Python command to its end.

        Args:
            words: after ``python``.
            log: takes what it says on stderr; appended to.

        Returns:
            Exit status, what it wrote to stdout, and the most memory it held in MiB (0 where unknown).
        """
        log.parent.mkdir(parents=True, exist_ok=True)
        with open(log, "ab") as stderr, self.lock:
            if self.stopping:
                return 128 + signal.SIGTERM, "", 0.0
            process = subprocess.Popen(
                [sys.executable, *words],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=stderr,
                env=self.environment,
                pass_fds=self.keep,
                start_new_session=True,  # Ctrl-C reaches the study, which passes it on once
            )
            self.running.add(process.pid)
        try:
            assert process.stdout is not None
            said = process.stdout.read().decode("utf-8", errors="replace")
            process.stdout.close()
            memory = _wait(process)
        finally:
            with self.lock:
                self.running.discard(process.pid)
        return process.returncode, said, memory

    def stop(self, number: int = signal.SIGTERM) -> None:
        """Ask every command to stop, and start no more."""
        with self.lock:
            self.stopping = True
            for pid in self.running:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)


def environment(jobs: int) -> dict[str, str]:
    """Variables for one of ``jobs`` commands at a time: the cores are shared out, unless the user decided."""
    cores = usable_cores()
    share = str(max(1, cores // jobs))
    return {**dict.fromkeys(THREADS, share), "OMP_WAIT_POLICY": "PASSIVE", **os.environ}


def command_of(job: Job) -> list[str]:
    """The ``ptedge`` command that starts the run, or continues what is there of it."""
    return [*job.words, *(["--resume"] if (job.folder / "last.pt").exists() else [])]


def run_job(job: Job, processes: Processes, val: Path, source_val: Path | None, convention: str = VOC.name) -> Result:
    """Do one run and score it.

    Args:
        job: not finished yet.
        processes: starts commands.
        val: labelled DATA of the target.
        source_val: labelled DATA of the source, for rows that train on it.
        convention: what AP50 and AP75 mean.

    Returns:
        Its result; also written beside the run's folder, which marks it as finished.

    Raises:
        TrainingError: the command failed.
        RunStoppedError: it was asked to stop.
    """
    if not (job.folder / "last.pt").exists():
        # killed before there was anything to continue from: what it left would be in the new run's way
        (job.folder / "model.pt").unlink(missing_ok=True)
        shutil.rmtree(job.folder / "checkpoints", ignore_errors=True)
    if job.labels is not None and not job.labels.exists():
        job.labels.parent.mkdir(parents=True, exist_ok=True)
        _check(processes.run(["-m", "ptedge", *job.draw], job.log)[0], job, processes)
    status, _, memory = processes.run(["-m", "ptedge", *command_of(job)], job.log)
    _check(status, job, processes)
    summary = json.loads((job.folder / "summary.json").read_text("utf-8"))
    if summary.get("interrupted"):
        raise RunStoppedError
    result = result_of(job, summary)
    result = replace(result, memory_mib={**result.memory_mib, "process": round(memory)})
    if job.row.best:
        result = replace(result, best=_best(job, partial(_scores, processes, job, val, convention), result.last))
    if source_val is not None and not job.row.adapts:
        scored = _scores(processes, job, source_val, convention, [job.folder / "model.pt"])
        result = replace(result, source_val=scored[0]["AP50"])
    write_json(job.result, {**result.to_json(), "fingerprint": job.fingerprint})
    return result


def result_of(job: Job, summary: dict[str, Any]) -> Result:
    """The result of a run, as far as its summary goes.

    Args:
        job: the run.
        summary: of summary.json, with ``--val``.

    Raises:
        TrainingError: it was not scored, or the labels hold nothing to score on.
    """
    try:
        return Result(
            variant=job.row.name,
            seed=job.seed,
            kind=job.row.kind,
            last=Scores.from_json(summary["last"]),
            chosen=Scores.from_json(summary["chosen"]),
            chosen_step=int(summary["chosen"]["step"]),
            sigma=summary["val"]["sigma"],
            per_class=_per_class(summary["val"]),
            steps=summary["steps"],
            seconds=summary["seconds"],
            start=job.start.row.name if job.start is not None else "",
            memory_mib=summary.get("peak_memory_mib", {}),
            guard_trips=len(summary.get("guards", ())),
        )
    except (KeyError, TypeError, ValueError):
        raise TrainingError(
            f"{job.folder / 'summary.json'} lacks scores. Look that data.val has labelled boxes, remove the folder and "
            f"give the command again"
        ) from None


def _per_class(val: dict[str, Any]) -> dict[str, float]:
    scores = {name: one["AP50"] for name, one in val.get("per_class", {}).items()}
    return {name: float(score) for name, score in scores.items() if score is not None}


def _best(job: Job, score: Callable[[Sequence[Path]], list[dict[str, Any]]], last: Scores) -> Best:
    kept = sorted((job.folder / "checkpoints").glob("*.pt"))
    scores = {"last": last.ap50}
    if kept:
        found = score(kept)
        scores.update({Path(one["checkpoint"]).stem: one["AP50"] for one in found})
    top = max(scores, key=scores.__getitem__)
    return Best(top, scores[top], len(scores))


def _scores(
    processes: Processes, job: Job, val: Path, convention: str, checkpoints: Sequence[Path]
) -> list[dict[str, Any]]:
    words = ["-m", "ptedge.training.study.score", str(val), *map(str, checkpoints)]
    words += [f"--convention={convention}"] if convention != VOC.name else []
    status, said, _ = processes.run(words, job.log)
    _check(status, job, processes)
    return [json.loads(line) for line in said.splitlines()]


def _check(status: int, job: Job, processes: Processes) -> None:
    if status in INTERRUPTED or (status and processes.stopping):
        raise RunStoppedError
    if status:
        said = [line for line in job.log.read_text("utf-8", errors="replace").splitlines() if line.strip()]
        reason = said[-1].removeprefix("ptedge: ") if said and status > 0 else f"exit status {status}"
        raise TrainingError(f"{reason} (all it said: {job.log})")


def _wait(process: subprocess.Popen[bytes]) -> float:
    """Wait for the end; the most memory the process held, in MiB."""
    if not hasattr(os, "wait4"):
        process.wait()
        return 0.0
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return peak_of(usage) / 2**20

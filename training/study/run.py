"""Running a study: several runs at a time, each after the one it starts from; what is finished is kept."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptedge.errors import ConfigError, OutputError, TrainingError
from ptedge.files import atomic_write, make_output_folder, write_json

from ..progress import stop_request
from .jobs import Job, list_jobs
from .plan import Study
from .process import RunStoppedError
from .table import table

PATIENCE = 0.5  # seconds between looks at whether to stop
Run = Callable[[Job], dict[str, Any]]
Line = dict[str, Any]


@dataclass
class Outcome:
    """How a study ended.

    Attributes:
        lines: of all finished runs, earlier ones included, in the order of rows and seeds.
        failed: run -> why.
        interrupted: a signal stopped it.
    """

    lines: list[Line]
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False


def state_of_job(job: Job) -> str:
    """``finished``, ``continue`` or ``new``.

    Raises:
        ConfigError: its folder holds a run with other settings.
    """
    plan = _read(_plan(job))
    if plan is not None and plan.get("fingerprint") != job.fingerprint:
        raise ConfigError(
            f"{job.folder} holds {job.name} with other settings than the study's now (its own, or those of a row it "
            f"starts from). Choose another --out, or remove that folder and the files of its name beside it"
        )
    result = _read(job.result)
    if result is not None and ("best" in result or not job.row.best):
        return "finished"
    return "continue" if (job.folder / "last.pt").exists() else "new"


def run_study(
    study: Study,
    out: Path,
    jobs: Sequence[Job],
    run: Run,
    *,
    at_once: int,
    echo: Callable[[str], None],
    stop: Callable[[], None] = lambda: None,
) -> Outcome:
    """Run what is not finished, and write results.jsonl and table.md after every run.

    Args:
        study: checked.
        out: its folder.
        jobs: to do, each after the one it starts from.
        run: does one run and gives its line; raises an exception when it fails, RunStoppedError when it was stopped.
        at_once: runs at a time.
        echo: told of every run.
        stop: called once when a signal asks to stop; makes running ones end soon.

    Raises:
        ConfigError: the folder holds other runs under these names.
        OutputError: results cannot be written.
    """
    states = {job.name: state_of_job(job) for job in jobs}
    needed = {job.start.name for job in jobs if job.start is not None}
    waiting = [job for job in jobs if states[job.name] != "finished"]
    waiting.sort(key=lambda job: (job.name not in needed, -job.steps))  # so that no long run is left for the end
    finished = {name for name, state in states.items() if state == "finished"}
    echo(f"{len(jobs)} runs: {len(finished)} finished, {len(waiting)} to do, {at_once} at a time")
    outcome = Outcome(write_results(study, out))
    running: dict[Future[Line], Job] = {}
    with stop_request() as should_stop, ThreadPoolExecutor(at_once) as pool:
        try:
            while waiting or running:
                if should_stop() and not outcome.interrupted:
                    outcome.interrupted = True
                    waiting.clear()
                    stop()
                for job in _ready(waiting, finished, outcome.failed, echo)[: at_once - len(running)]:
                    waiting.remove(job)
                    write_json(_plan(job), {"fingerprint": job.fingerprint, "command": ["ptedge", *job.words]})
                    running[pool.submit(run, job)] = job
                done, _ = wait(running, timeout=PATIENCE, return_when=FIRST_COMPLETED)
                for future in done:
                    job = running.pop(future)
                    try:
                        line = future.result()
                    except RunStoppedError:
                        outcome.interrupted = True
                        waiting.clear()
                    except Exception as error:  # one run's trouble is not the others'
                        outcome.failed[job.name] = str(error)
                        echo(f"failed: {job.name}: {error}")
                    else:
                        finished.add(job.name)
                        outcome.lines = write_results(study, out)
                        count = f"[{len(finished)}/{len(jobs)}]"
                        echo(f"{count} {job.name}: AP50 {100 * line['AP50']:.1f}, {line['seconds']:.0f} s")
        except BaseException:
            stop()
            raise
    return outcome


def write_results(study: Study, out: Path) -> list[Line]:
    """Write results.jsonl and table.md from all finished runs of the study.

    Returns:
        The lines, in the order of rows and seeds.
    """
    lines = []
    order = {row.name: position for position, row in enumerate(study.row)}
    for job in list_jobs(study, out, check_data=False):
        line = _read(job.result)
        if line is not None and line.pop("fingerprint", "") == job.fingerprint:
            lines.append(line)
    lines.sort(key=lambda line: (order[line["variant"]], line["seed"]))
    with atomic_write(out / "results.jsonl", "w") as file:
        file.writelines(json.dumps(line) + "\n" for line in lines)
    with atomic_write(out / "table.md", "w") as file:
        file.write(table(study, lines))
    return lines


@contextmanager
def study_lock(out: Path) -> Iterator[int]:
    """Hold the study's folder; commands that inherit the descriptor hold it too, should this process be killed.

    Yields:
        The descriptor of the lock file.

    Raises:
        OutputError: another study works in the folder, or runs that it began still do.
    """
    make_output_folder(out)
    descriptor = os.open(out / "study.lock", os.O_CREAT | os.O_RDWR, 0o644)
    try:
        if sys.platform != "win32":
            import fcntl

            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                raise OutputError(
                    f"{out} is in use by another ptedge study, or by runs that one has left. "
                    f"Wait for them, stop them, or choose another --out"
                ) from None
        yield descriptor
    finally:
        os.close(descriptor)


def failure_report(failed: dict[str, str]) -> TrainingError:
    """The sentence for runs that failed."""
    names = "; ".join(f"{name}: {why}" for name, why in failed.items())
    return TrainingError(f"{len(failed)} of the study's runs failed. The same command tries them again. {names}")


def _ready(waiting: list[Job], finished: set[str], failed: dict[str, str], echo: Callable[[str], None]) -> list[Job]:
    ready = []
    for job in list(waiting):
        if job.start is None or job.start.name in finished:
            ready.append(job)
        elif job.start.name in failed:
            waiting.remove(job)
            failed[job.name] = f"it starts from {job.start.name}, which failed"
            echo(f"left out: {job.name}: {failed[job.name]}")
    return ready


def _plan(job: Job) -> Path:
    return job.folder.with_name(f"{job.folder.name}.plan.json")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None

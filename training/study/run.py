"""Running a study: several runs at a time, each after the one it starts from; what is finished is kept."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ptedge.errors import ArtifactError, ConfigError, TrainingError
from ptedge.files import atomic_write, write_json
from ptedge.folders import hold_folder
from ptedge.signals import finishing

from .jobs import Job, list_jobs
from .plan import Study
from .process import RunStoppedError
from .result import Result, renewed
from .table import table

LOOK_EVERY = 0.5  # seconds between looks at whether to stop
STOPPING = "stopping: every run ends after its step and writes its files. Once more to abort"
Run = Callable[[Job], Result]


@dataclass
class Outcome:
    """How a study ended.

    Attributes:
        results: of all finished runs, earlier ones included, in the order of rows and seeds.
        failed: run -> why.
        interrupted: a signal stopped it, or one of its runs.
        signal: number of its own, 0 for none.
    """

    results: list[Result]
    failed: dict[str, str] = field(default_factory=dict)
    interrupted: bool = False
    signal: int = 0


def state_of_job(job: Job) -> str:
    """``finished``, ``continue`` or ``new``.

    Raises:
        ConfigError: its folder holds a run with other settings.
    """
    plan = _read(job.record)
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
        run: does one run and gives its result; raises an exception when it fails, RunStoppedError when it was stopped.
        at_once: runs at a time.
        echo: told of every run.
        stop: called when a signal asks to stop, and again at a second one; makes running ones end soon.

    Raises:
        ConfigError: the folder holds other runs under these names.
        OutputError: results cannot be written.
    """
    board = _Board(study, out, jobs, echo)
    echo(f"{len(jobs)} runs: {len(board.finished)} finished, {len(board.waiting)} to do, {at_once} at a time")
    with finishing(STOPPING, again=stop) as asked, ThreadPoolExecutor(at_once) as pool:
        try:
            while board.waiting or board.running:
                if asked.event.is_set() and not board.outcome.signal:
                    board.interrupt()
                    board.outcome.signal = asked.signal
                    stop()
                for job in board.ready()[: at_once - len(board.running)]:
                    write_json(job.record, {"fingerprint": job.fingerprint, "command": ["ptedge", *job.words]})
                    board.start(job, pool.submit(run, job))
                done, _ = wait(board.running, timeout=LOOK_EVERY, return_when=FIRST_COMPLETED)
                for future in done:
                    board.end(future)
        except BaseException:
            stop()
            raise
    return board.outcome


class _Board:
    """Where every run of the study stands: waiting, running, finished or failed."""

    def __init__(self, study: Study, out: Path, jobs: Sequence[Job], echo: Callable[[str], None]) -> None:
        self.study, self.out, self.echo = study, out, echo
        self.finished = {job.name for job in jobs if state_of_job(job) == "finished"}
        self.total = len(jobs)
        needed = {job.start.name for job in jobs if job.start is not None}
        self.waiting = [job for job in jobs if job.name not in self.finished]
        # so that no long run is left for the end
        self.waiting.sort(key=lambda job: (job.name not in needed, -job.steps))
        self.running: dict[Future[Result], Job] = {}
        self.outcome = Outcome(write_results(study, out))

    def interrupt(self) -> None:
        """Begin nothing more."""
        self.outcome.interrupted = True
        self.waiting.clear()

    def ready(self) -> list[Job]:
        """Those whose start is finished; those whose start has failed are left out for good."""
        ready = []
        for job in list(self.waiting):
            if job.start is None or job.start.name in self.finished:
                ready.append(job)
            elif job.start.name in self.outcome.failed:
                self.waiting.remove(job)
                self._fail(job, f"it starts from {job.start.name}, which failed", "left out")
        return ready

    def start(self, job: Job, future: Future[Result]) -> None:
        self.waiting.remove(job)
        self.running[future] = job

    def end(self, future: Future[Result]) -> None:
        job = self.running.pop(future)
        try:
            result = future.result()
        except RunStoppedError:
            self.interrupt()
        except Exception as error:  # one run's trouble is not the others'
            self._fail(job, str(error), "failed")
        else:
            self.finished.add(job.name)
            self.outcome.results = write_results(self.study, self.out)
            count = f"[{len(self.finished)}/{self.total}]"
            self.echo(f"{count} {job.name}: AP50 {100 * result.last.ap50:.1f}, {result.seconds:.0f} s")

    def _fail(self, job: Job, why: str, word: str) -> None:
        self.outcome.failed[job.name] = why
        self.echo(f"{word}: {job.name}: {why}")


def write_results(study: Study, out: Path) -> list[Result]:
    """Write results.jsonl and table.md from all finished runs of the study.

    Returns:
        The results, in the order of rows and seeds.

    Raises:
        ArtifactError: the file of a finished run is broken.
    """
    results = []
    order = {row.name: position for position, row in enumerate(study.row)}
    for job in list_jobs(study, out, check_data=False):
        line = _read(job.result)
        if line is not None and line.get("fingerprint") == job.fingerprint:
            results.append(renewed(_result(job, line), study))
    results.sort(key=lambda result: (order[result.variant], result.seed))
    with atomic_write(out / "results.jsonl", "w") as file:
        file.writelines(json.dumps(result.to_json()) + "\n" for result in results)
    with atomic_write(out / "table.md", "w") as file:
        file.write(table(study, results))
    return results


def _result(job: Job, line: dict[str, Any]) -> Result:
    try:
        return Result.from_json(line)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ArtifactError(
            f"{job.result} is no result of a run ({type(error).__name__}: {error}). "
            f"Remove it and give the command again"
        ) from None


@contextmanager
def study_lock(out: Path) -> Iterator[int | None]:
    """Hold the study's folder; commands that inherit the descriptor hold it too, should this process be killed.

    Yields:
        The descriptor of the lock; ``None`` where there are no locks.

    Raises:
        OutputError: another study works in the folder, or runs that it began still do.
    """
    with hold_folder(out, "ptedge study or runs that it began", inherited=True) as descriptor:
        yield descriptor


def failure_report(failed: dict[str, str]) -> TrainingError:
    """The sentence for runs that failed."""
    names = "; ".join(f"{name}: {why}" for name, why in failed.items())
    return TrainingError(f"{len(failed)} of the study's runs failed. The same command tries them again. {names}")


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None

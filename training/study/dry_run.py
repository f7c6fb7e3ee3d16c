"""What ``ptedge study --dry-run`` tells: the command, steps, memory and hours of every run, and what data are there."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from .described import Counted
from .estimate import HOW, Estimate, estimate_of
from .gpus import Gpu
from .jobs import Job, parts_of
from .plan import Study
from .prepare import count_what_is_there
from .process import command_of
from .run import state_of_job

KINDS = ("labelled", "unlabelled")


@dataclass(frozen=True)
class Planned:
    """A run that would be done.

    Attributes:
        job: the run.
        state: ``finished``, ``continue`` or ``new``.
        estimate: of the whole of it.
        gpu: on which; ``None`` where there is none and none was named.
    """

    job: Job
    state: str
    estimate: Estimate
    gpu: Gpu | None

    @property
    def command(self) -> str:
        """For a shell; with the one that draws its labelled frames, where they are not drawn yet."""
        job = self.job
        draw = f"{shlex.join(['ptedge', *job.draw])} && " if job.labels is not None and not job.labels.exists() else ""
        return draw + shlex.join(["ptedge", *command_of(job)])

    @property
    def hours(self) -> tuple[float, float] | None:
        """Fewest and most GPU hours, where they can be told."""
        return self.estimate.hours(self.gpu) if self.gpu is not None else None

    @property
    def fits(self) -> bool | None:
        """Whether the GPU's memory is enough; ``None`` where it is not known."""
        return self.estimate.memory <= self.gpu.memory if self.gpu is not None and self.gpu.memory else None

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        one, hours = self.estimate, self.hours
        return {
            "variant": self.job.row.name,
            "seed": self.job.seed,
            "state": self.state,
            "command": self.command,
            "steps": one.steps,
            "images_a_step": dict(zip(KINDS, one.images, strict=True)),
            "memory_gib": round(one.memory, 1),
            "gpu": self.gpu.name if self.gpu is not None else None,
            "gpu_hours": [round(value, 2) for value in hours] if hours is not None else None,
            "fits": self.fits,
        }

    def text(self) -> str:
        """Two or three lines."""
        one = self.estimate
        images = " + ".join(f"{count} {what}" for count, what in zip(one.images, KINDS, strict=True) if count)
        told = f"{one.steps:,} steps of {images} images, about {one.memory:.1f} GiB"
        if self.hours is not None:
            told += f", {shown_hours(self.hours)} GPU hours"
        if self.fits is False and self.gpu is not None:
            told += f": more than the {self.gpu.memory:.0f} GiB of {self.gpu.name}, see --preset"
        if self.gpu is not None and one.precision == "bf16" and not self.gpu.has_bf16:
            told += f"; {self.gpu.name} has no bfloat16: --set precision=fp16"
        return f"# {self.job.row.name}, seed {self.job.seed}: {self.state}\n# {told}\n{self.command}"


def plan_runs(study: Study, jobs: Sequence[Job], gpu: Gpu | None) -> list[Planned]:
    """Every run with its state and what it will take.

    Args:
        study: checked.
        jobs: of it.
        gpu: that runs them, one at a time.
    """
    return [Planned(job, state_of_job(job), estimate_of(study, job), gpu) for job in jobs]


def shown_hours(hours: tuple[float, float]) -> str:
    """``2.1 to 5.3``."""
    return f"{hours[0]:.1f} to {hours[1]:.1f}"


def summary_of(study: Study, out: Path, runs: Sequence[Planned]) -> str:
    """What stands below the runs: the GPU, the sum, how it was reckoned, and the data."""
    gpu = runs[0].gpu if runs else None
    lines = []
    if gpu is None:
        lines.append("no GPU here; --gpu NAME (for example --gpu A100) tells hours on one")
    elif runs[0].hours is None:
        lines.append(
            f"on {gpu.name}, {gpu.memory:.0f} GiB, whose peak is not known: no hours. --gpu NAME names another"
        )
    else:
        left = [one.hours for one in runs if one.hours is not None and one.state != "finished"]
        total = (sum(low for low, _ in left), sum(high for _, high in left))
        lines.append(f"on {gpu.name}, {gpu.memory:.0f} GiB: {shown_hours(total)} GPU hours for what is not finished")
    lines.append(f"estimate. {HOW}")
    return "\n".join([*lines, *_data_lines(study, out, [one.job for one in runs])])


def _data_lines(study: Study, out: Path, jobs: Sequence[Job]) -> list[str]:
    counted, missing = count_what_is_there(study, out, parts_of([job.row for job in jobs]))
    return [*(f"data {_told(one)}" for one in counted), *(f"data not ready: {why}" for why in missing)]


def _told(one: Counted) -> str:
    if one.off:
        return f"{one.part}: {', '.join(one.off)}; refused without --allow"
    known = "as the benchmark has them" if one.official is not None else "nothing to compare with"
    return f"{one.part}: {one.images:,} images, {sum(one.boxes.values()):,} boxes, {known}"

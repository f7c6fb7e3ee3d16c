"""The PNG plots of runs: losses, pseudo boxes, entropy, agreement, anchors, the run itself, and quality of boxes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from .anchor_plot import plot_anchors
from .drawing import Line, Panel, draw_panels, draw_safely
from .quality import QUALITY_FILE, read_quality
from .quality_plot import plot_quality
from .read import Curves, read_curves
from .terms import ALIGNMENT, DISTILLATION, LABELLED, SUPERVISED, TARGET


def plot_runs(runs: Sequence[Path], out: Path, names: Sequence[str] | None = None) -> list[Path]:
    """All plots of a run, or of several laid over each other.

    Args:
        runs: RUN folders.
        out: folder for the PNG files.
        names: of the runs, for legends.

    Returns:
        The files written; plots without data are left out.

    Raises:
        PtedgeError: a run cannot be read, or ``out`` not written.
    """
    curves = [read_curves(run, name) for run, name in zip(runs, names or _names(runs), strict=True)]
    quality = [
        (c.name, read_quality(run / QUALITY_FILE))
        for run, c in zip(runs, curves, strict=True)
        if (run / QUALITY_FILE).is_file()
    ]
    drawn: list[Path | None] = [
        plot_losses(curves, out / "losses.png"),
        plot_pseudo_boxes(curves, out / "pseudo_boxes.png"),
        plot_entropy(curves, out / "entropy.png"),
        plot_agreement(curves, out / "agreement.png"),
        plot_anchors(curves, out / "anchors.png"),
        plot_course(curves, out / "run.png"),
        plot_quality(quality, out / "quality.png"),
    ]
    return [path for path in drawn if path is not None]


def plot_run_safely(run: Path) -> list[Path]:
    """RUN/plots for the end of a run: whatever goes wrong is said in one line, and the run's result stands.

    Args:
        run: RUN folder.

    Returns:
        The files written.
    """
    return draw_safely(lambda folder: plot_runs([run], folder, [run.resolve().name]), run / "plots")


def plot_losses(runs: Sequence[Curves], out: Path) -> Path | None:
    """Total loss and each term on source, target and labelled frames of it; alignment terms where there are any."""
    keys = {key for run in runs for key in run.keys}
    panels = [Panel("Total loss", "loss", (Line("loss"),))]
    for key, (name, unit) in SUPERVISED.items():
        lines = (Line(key, "source"), Line(TARGET + key, "target"), Line(LABELLED + key, "labelled frames"))
        present = tuple(line for line in lines if line.key in keys)
        side = f", {present[0].label}" if len(present) == 1 else ""
        panels.append(Panel(name + side, unit, present))
    panels += [Panel(name, "loss", (Line(key),)) for key, name in (DISTILLATION | ALIGNMENT).items()]
    return draw_panels(runs, panels, _title("Losses", runs), "weighted as they are summed", out, columns=3)


def plot_pseudo_boxes(runs: Sequence[Curves], out: Path) -> Path | None:
    """How many boxes the teacher gives, how sure it is, and whether its classes stay those of the start."""
    panels = [
        Panel("Pseudo boxes an image", "boxes", (Line("pseudo_boxes", "all"), Line("pseudo_foreground", "object")), 0),
        Panel("Mean score of pseudo boxes", "score", (Line("pseudo_score"),), 0, 1),
        Panel(
            "On the watched frames", "an image", (Line("monitor/boxes", "boxes"), Line("monitor/objects", "scores")), 0
        ),
        Panel("Sigma on the watched frames", "sigma / √area", (Line("monitor/sigma"),), 0),
        Panel("Distance of class histogram from start", "total variation", (Line("monitor/histogram_distance"),), 0, 1),
    ]
    subtitle = "“object”: likeliest class is not background; “scores”: sum of scores. Each step has other images"
    if any("monitor/boxes" in run.keys for run in runs):
        subtitle += ", watched frames stay the same"
    return draw_panels(runs, panels, _title("Pseudo boxes of the teacher", runs), subtitle, out, columns=3)


def plot_entropy(runs: Sequence[Curves], out: Path) -> Path | None:
    """Entropy of pseudo boxes over training, as in the paper's figure, and the weights made from it."""
    panels = [
        Panel(
            "Class entropy",
            "nats",
            (Line("class_entropy", "batch"), Line("monitor/entropy", "watched frames")),
        ),
        Panel("Box entropy (a coordinate, delta space)", "nats", (Line("box_entropy"),)),
        Panel("Entropy focal weight", "weight", (Line("class_weight", "class"), Line("box_weight", "box")), 0),
        Panel(
            "Mean variance",
            "delta space²",
            (Line("box_variance", "batch"), Line("monitor/variance", "watched frames")),
            0,
        ),
    ]
    return draw_panels(
        runs,
        panels,
        _title("Entropy of pseudo boxes", runs),
        "before sharpening; falling means a surer teacher, not a better one",
        out,
    )


def plot_agreement(runs: Sequence[Curves], out: Path) -> Path | None:
    """Teacher with the model it started from, with the student, and with itself on the strong view."""
    titles = {
        "source_agreement": "Teacher and the model it started from",
        "student_agreement": "Teacher and student",
        "consistency": "Teacher on weak and strong view",
    }
    keys = {key for run in runs for key in run.keys}
    panels = [
        Panel(title, "agreement", (Line(name if name in keys else f"monitor/{name}"),), 0, 1.02)
        for name, title in titles.items()
    ]
    subtitle = "1: the same boxes with the same scores. No labels used"
    return draw_panels(runs, panels, _title("Agreement of detectors", runs), subtitle, out, columns=3)


def plot_course(runs: Sequence[Curves], out: Path) -> Path | None:
    """Learning rate, gradient norm, and where the time went."""
    panels = [
        Panel("Learning rate", "rate", (Line("lr"),), 0),
        Panel("Gradient norm before clipping", "norm", (Line("grad_norm"),), log=True),
        Panel("Seconds a step", "s", (Line("step_seconds"),), 0),
        Panel("Speed", "images a second", (Line("images_per_second"),), 0),
        Panel("Share of time waiting for data", "share", (Line("data_wait"),), 0, 1),
    ]
    return draw_panels(runs, panels, _title("The run", runs), "", out, columns=3)


def _title(what: str, runs: Sequence[Curves]) -> str:
    return f"{what}: {runs[0].name}" if len(runs) == 1 else f"{what}: {len(runs)} runs"


def _names(runs: Sequence[Path]) -> list[str]:
    """Folder names; where two are equal, with the folder above."""
    paths = [run.resolve() for run in runs]
    names: list[str] = [path.name for path in paths]
    distinct: Callable[[Path], str] = lambda path: f"{path.parent.name}/{path.name}"  # noqa: E731
    return [distinct(path) if names.count(path.name) > 1 else path.name for path in paths]


__all__ = ["plot_run_safely", "plot_runs"]

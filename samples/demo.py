"""``ptedge demo``: train, adapt, export, run, collect and adapt again on generated scenes, and one table at the end."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

import click

from ptedge.errors import OutputError
from ptedge.files import atomic_write, make_output_folder, write_json
from ptedge.folders import EARLIER, LOCK_NAME, set_aside, take_folder

from .steps import Steps

MARKER = "demo.json"  # a folder that holds it was made by a demo and may be made anew
SOURCE, TARGET = "clear", "fog_camera"  # names of domains
LABELS = "annotations.json"
SETTINGS = ("demo_train.toml", "demo_adapt.toml", "demo_source_free.toml")


@dataclass(frozen=True)
class Plan:
    """How much of everything.

    Attributes:
        source_images: labelled scenes of the source look.
        target_frames: frames of the target look, without labels for adaptation.
        target_val: labelled scenes of the target look, for the table only.
        video_frames: length of the video the device runs on.
        train_steps: pretraining, and training of the oracle.
        adapt_steps: adaptation with source.
        source_free_steps: each source-free adaptation.
        every_bundle: export every model and score its bundle; else only those that go to the device.
    """

    source_images: int
    target_frames: int
    target_val: int
    video_frames: int
    train_steps: int
    adapt_steps: int
    source_free_steps: int
    every_bundle: bool


FULL = Plan(
    source_images=200,
    target_frames=120,
    target_val=60,
    video_frames=100,
    train_steps=340,
    adapt_steps=100,
    source_free_steps=80,
    every_bundle=True,
)
QUICK = Plan(
    source_images=60,
    target_frames=30,
    target_val=16,
    video_frames=30,
    train_steps=50,
    adapt_steps=10,
    source_free_steps=6,
    every_bundle=False,
)


@dataclass(frozen=True)
class Row:
    """A line of the table: how a model does on the target scenes, as checkpoint and, where exported, as bundle."""

    name: str
    trained_on: str
    checkpoint: dict[str, Any]
    bundle: dict[str, Any] | None


@click.command()
@click.option("--quick", is_flag=True, help="Three minutes instead of twelve: shows that all works, not how well.")
@click.option(
    "--out", type=click.Path(path_type=Path), help="Its folder; an earlier demo steps aside.  [default: runs/demo]"
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of scenes and training.")
def demo(quick: bool, out: Path | None, seed: int) -> dict[str, Any]:
    """The whole loop on generated scenes, in one command.

    Draws street scenes of a clear and of a shifted look, trains on the clear ones, adapts to the others without their
    labels, exports, verifies, runs on a video, adapts again to the frames collected there, and prints one table.
    Pictures are left in OUT/pictures.

    \b
    Example:
      ptedge demo --quick --out runs/demo
    """
    with take_folder(out, Path("runs/demo"), "ptedge demo") as folder:
        return _show(quick, folder, seed)


def _show(quick: bool, out: Path, seed: int) -> dict[str, Any]:
    """The demo in a folder that is held."""
    _start_afresh(out)
    steps = Steps(out / "logs", lambda line: click.echo(line, err=True))
    rows = _Walk(QUICK if quick else FULL, out, seed, steps).rows()
    document = {
        "quick": quick,
        "seed": seed,
        "seconds": steps.seconds,
        "models": {row.name: {"checkpoint": row.checkpoint, "bundle": row.bundle} for row in rows},
    }
    write_json(out / MARKER, document)
    click.echo(f"\n{sum(steps.seconds.values()) / 60:.1f} minutes. Pictures: {out / 'pictures'}", err=True)
    _print_table(rows)
    return {"out": str(out), **document}


def _start_afresh(out: Path) -> None:
    """An empty folder with the demo's settings; an earlier demo there steps aside."""
    if out.is_dir() and (names := [p.name for p in out.iterdir() if p.name not in (LOCK_NAME, MARKER)]):
        if not (out / MARKER).is_file():
            raise OutputError(f"{out} is not empty and not from an earlier demo. Choose another --out")
        moved = set_aside(out, [name for name in names if not name.startswith(f"{EARLIER}-")], MARKER)
        if moved is not None:
            click.echo(f"{out} held an earlier demo; it is in {moved} now", err=True)
    make_output_folder(out)
    write_json(out / MARKER, {})
    for name in SETTINGS:
        with atomic_write(out / "settings" / name, "w") as file:
            file.write(resources.files(__package__).joinpath(name).read_text("utf-8"))


class _Walk:
    """The commands of the loop, with the folders and settings of this demo."""

    def __init__(self, plan: Plan, out: Path, seed: int, steps: Steps) -> None:
        self.plan, self.out, self.seed, self.steps = plan, out, seed, steps
        self.data = out / "data"

    def rows(self) -> list[Row]:
        """Go the whole way; returns the lines of the table."""
        with self.steps.step("draw scenes"):
            _draw(self.plan, self.data, self.seed)
        frames = self.data / "target" / "images"
        pretrained = self.train("pretrained", self.data / "source" / LABELS)
        adapted = self.adapt("adapted", pretrained, frames, self.data / "source" / LABELS)
        source_free = self.adapt("source_free", pretrained, frames)
        oracle = self.train("oracle", self.data / "target" / LABELS)

        rows = [
            self.judge("source only", "clear scenes, labelled", pretrained),
            self.judge("adapted", "the same + target frames", adapted, deployed=True),
            self.judge("source-free", "source only + target frames", source_free),
        ]
        bundle = self.out / "bundles" / "adapted"
        self.steps.ptedge("verify", "verify", bundle, "--against", adapted, "--frames", frames)
        field = self.run(bundle)
        second = self.adapt("second_round", adapted, field)
        rows.append(self.judge("second round", "adapted + collected frames", second, deployed=True))
        rows.append(self.judge("oracle", "target frames, labelled", oracle))
        return rows

    def train(self, name: str, data: Path) -> Path:
        """Train on labelled scenes; returns the checkpoint."""
        run = self.out / name
        settings = self.settings("demo_train.toml", self.plan.train_steps)
        self.steps.ptedge(f"train: {name}", "train", data, "--out", run, *settings)
        return run / "model.pt"

    def adapt(self, name: str, model: Path, frames: Path, source: Path | None = None) -> Path:
        """Adapt to frames, source-free without ``source``; returns the checkpoint."""
        run = self.out / name
        mode: list[str | Path]
        if source is not None:
            mode, settings = ["--source", source], self.settings("demo_adapt.toml", self.plan.adapt_steps)
        else:
            mode, settings = ["--source-free"], self.settings("demo_source_free.toml", self.plan.source_free_steps)
        self.steps.ptedge(f"adapt: {name}", "adapt", model, "--target", frames, *mode, "--out", run, *settings)
        return run / "model.pt"

    def settings(self, name: str, count: int) -> list[str | Path]:
        """Options of train and adapt."""
        config = self.out / "settings" / name
        return ["--config", config, "--set", f"optim.steps={count}", "--set", f"seed={self.seed}"]

    def judge(self, name: str, trained_on: str, model: Path, deployed: bool = False) -> Row:
        """Score a checkpoint on the labelled target scenes, and again what export makes of it."""
        labels = self.data / "val" / LABELS
        checkpoint = self.steps.ptedge(f"score: {name}", "eval", model, labels, "--json")
        if not (deployed or self.plan.every_bundle):
            return Row(name, trained_on, json.loads(checkpoint), None)
        bundle = self.out / "bundles" / model.parent.name
        self.steps.ptedge(f"export: {name}", "export", model, "--out", bundle)
        exported = self.steps.ptedge(f"score the bundle: {name}", "eval", bundle, labels, "--json")
        return Row(name, trained_on, json.loads(checkpoint), json.loads(exported))

    def run(self, bundle: Path) -> Path:
        """Run as on a device, on a video and on pictures to look at; returns the field folder collected."""
        field = self.out / "field"
        video = ["--out", f"{self.out / 'video'}", "--save", "jsonl,video", "--lossless", "--collect", f"{field}"]
        # a video of seconds: keep far more of it than a device would keep of its days
        video += ["--collect-random", "0.3", "--collect-interval", "2"]
        self.steps.ptedge("run on a video", "run", bundle, self.data / "video.mp4", *video)
        pictures = ["--out", f"{self.out / 'pictures'}", "--save", "images", "--limit", "12", "--min-score", "0.3"]
        self.steps.ptedge("draw on pictures", "run", bundle, self.data / "val" / "images", *pictures)
        return field


def _draw(plan: Plan, data: Path, seed: int) -> None:
    """Source, target and val are different streets; the labels of target serve the oracle only."""
    from .scenes import DOMAINS
    from .write import render_video, write_coco

    clear, shifted = DOMAINS[SOURCE], DOMAINS[TARGET]
    write_coco(data / "source", clear, plan.source_images, 4 * seed)
    write_coco(data / "target", shifted, plan.target_frames, 4 * seed + 1)
    write_coco(data / "val", shifted, plan.target_val, 4 * seed + 2)
    render_video(data / "video.mp4", shifted, plan.video_frames, seed=4 * seed + 3)


def _print_table(rows: list[Row]) -> None:
    from rich.console import Console
    from rich.table import Table

    images = rows[0].checkpoint["images"]
    table = Table(title=f"On {images} labelled target scenes that no training has seen")
    for heading in ("model", "trained on"):
        table.add_column(heading)
    for heading in ("AP50", "AP50 bundle"):
        table.add_column(heading, justify="right")
    for row in rows:
        scores = (f"{100 * side['AP50']:.1f}" if side else "-" for side in (row.checkpoint, row.bundle))
        table.add_row(row.name, row.trained_on, *scores)
    Console().print(table)


__all__ = ["demo"]

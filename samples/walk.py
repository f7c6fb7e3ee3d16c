"""The way of the demo: which commands run on which generated scenes, and what each model is worth there."""

from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from ptedge.files import atomic_write

from .steps import Steps

SOURCE, TARGET = "clear", "haze"  # names of domains
SOURCE_SEED = 1000  # of the scenes the shipped model was trained on; a demo's own seeds leave it out
LABELS = "annotations.json"
SETTINGS = ("demo_train.toml", "demo_adapt.toml", "demo_source_free.toml")
SHIPPED = "demo_model/model.pt"


@dataclass(frozen=True)
class Plan:
    """How much of everything.

    Attributes:
        source_images: labelled scenes of the source look that adaptation goes on learning from.
        target_frames: frames of the target look, without labels for adaptation.
        second_frames: frames of further streets that the device drives through.
        val_images: labelled scenes of the target look, for the table only.
        pictures: of them that are drawn before and after.
        with_source: adapt with source as well, and once more to what the device collects.
        train_images: labelled scenes that a source model made from scratch learns from.
    """

    source_images: int = 100
    target_frames: int = 80
    second_frames: int = 60
    val_images: int = 60
    pictures: int = 6
    with_source: bool = True
    train_images: int = 600


@dataclass(frozen=True)
class Row:
    """A line of the table: how a model does on the target scenes, as checkpoint and, where it was scored, as bundle."""

    name: str
    trained_on: str
    checkpoint: dict[str, Any]
    bundle: dict[str, Any] | None


class Walk:
    """The commands of the loop, with the folders and settings of one demo.

    Args:
        plan: how much.
        out: the demo's folder; ``settings`` is in it.
        seed: of the target scenes and of adaptation.
        steps: runs the commands.
        from_scratch: train the source model instead of taking the one that comes with ptedge.
    """

    def __init__(self, plan: Plan, out: Path, seed: int, steps: Steps, *, from_scratch: bool = False) -> None:
        self.plan, self.out, self.seed, self.steps = plan, out, seed, steps
        self.from_scratch = from_scratch
        self.data, self.bundle, self.field = out / "data", out / "bundle", out / "field"

    def rows(self) -> list[Row]:
        """Go the whole way; returns the lines of the table."""
        plan, frames = self.plan, self.data / "target" / "images"
        with self.steps.step(f"draw street scenes: {SOURCE} ones with labels, others in {TARGET}"):
            self.draw()
        start = self.source_model()
        rows = [self.judge("source only", f"labelled scenes, {SOURCE}", start)]
        last = self.adapt("source_free", start, frames)
        rows.append(self.judge("source-free", f"+ {plan.target_frames} frames in {TARGET}, no labels", last))
        if plan.with_source:
            last = self.adapt("adapted", start, frames, self.data / "source" / LABELS)
        deployed = self.deploy(last, frames)
        if plan.with_source:
            rows.append(self.judge("adapted", f"+ the same and {plan.source_images} {SOURCE} scenes", last, deployed))
            last = self.adapt("second_round", last, self.field)
            rows.append(self.judge("second round", f"+ {plan.second_frames} frames that the device collected", last))
        with self.steps.step("draw before and after"):
            from .before_after import draw_before_and_after

            draw_before_and_after(self.out, start, last, self.data / "val" / LABELS, plan.pictures)
        return rows

    def draw(self) -> None:
        """Draw source, target, the streets that the device drives through, and val: all different streets."""
        from .scenes import DOMAINS
        from .write import write_coco, write_frames

        clear, shifted, plan = DOMAINS[SOURCE], DOMAINS[TARGET], self.plan
        write_coco(
            self.data / "source", clear, plan.train_images if self.from_scratch else plan.source_images, SOURCE_SEED
        )
        write_frames(self.data / "target" / "images", shifted, plan.target_frames, 4 * self.seed + 1)
        write_coco(self.data / "val", shifted, plan.val_images, 4 * self.seed + 2)
        write_frames(self.data / "drive", shifted, plan.second_frames, 4 * self.seed + 3)

    def source_model(self) -> Path:
        """The model to adapt: the one that comes with ptedge, or one trained now; returns the checkpoint."""
        run = self.out / "source"
        if self.from_scratch:
            data, settings = self.data / "source" / LABELS, self.out / "settings" / "demo_train.toml"
            self.steps.ptedge("train the source model", "train", data, "--config", settings, "--out", run)
        else:
            with atomic_write(run / "model.pt") as file:
                file.write(resources.files(__package__).joinpath(SHIPPED).read_bytes())
        return run / "model.pt"

    def adapt(self, name: str, model: Path, frames: Path, source: Path | None = None) -> Path:
        """Adapt to frames, source-free without ``source``; returns the checkpoint."""
        run = self.out / name
        mode = ["--source-free"] if source is None else ["--source", str(source)]
        settings = self.out / "settings" / ("demo_source_free.toml" if source is None else "demo_adapt.toml")
        mode += ["--config", str(settings), "--set", f"seed={self.seed}", "--out", str(run)]
        self.steps.ptedge(f"adapt: {name}", "adapt", model, "--target", frames, *mode)
        return run / "model.pt"

    def judge(self, name: str, trained_on: str, model: Path, bundle: Path | None = None) -> Row:
        """Score a checkpoint on the labelled target scenes, and what export made of it."""
        scores = [self.score(f"score: {name}", model)]
        if bundle is not None:
            scores.append(self.score(f"score: {name}, as bundle", bundle))
        return Row(name, trained_on, scores[0], scores[1] if bundle is not None else None)

    def score(self, step: str, model: Path) -> dict[str, Any]:
        """What ``ptedge eval`` says of a model on the labelled target scenes."""
        document: dict[str, Any] = json.loads(
            self.steps.ptedge(step, "eval", model, self.data / "val" / LABELS, "--json")
        )
        self.steps.echo(f"    AP50 {100 * document['AP50']:.1f}")
        return document

    def deploy(self, model: Path, frames: Path) -> Path:
        """Export, verify, and drive through further streets as a device would, collecting; returns the bundle."""
        self.steps.ptedge("export", "export", model, "--out", self.bundle)
        self.steps.ptedge("verify", "verify", self.bundle, "--against", model, "--frames", frames)
        drive = ["--out", str(self.out / "drive"), "--save", "jsonl,video", "--lossless", "--collect", str(self.field)]
        # a drive of seconds: keep far more of it than a device would keep of its days
        drive += ["--collect-random", "1", "--collect-interval", "1"]
        self.steps.ptedge("run on other streets, and collect", "run", self.bundle, self.data / "drive", *drive)
        return self.bundle


__all__ = ["SETTINGS", "SHIPPED", "SOURCE", "SOURCE_SEED", "TARGET", "Plan", "Row", "Walk"]

"""One scripted story of ``ptedge loop``: a stream turns from day to fog, and the site gets over it by itself.

All is done by the commands a person would give, each in a process of its own. :class:`Story` goes the way and counts;
``tests/bench/loop_scenario.py`` prints it.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SITE = """\
checkpoint = "known.pt"
frames = ["store"]

[deploy]
canary = "canary"
all = ["north", "south"]

[decide]
min_frames = {frames}
enough_frames = 0
max_days = 0

[adapt]
config = "{config}"
set = {sets}

[verify]
limit = 4

[gate]
options = ["--backend", "cpu", "--limit", "{gate}", "--max-loss", "{loss}"]

[soak]
hours = 0
frames = 10
"""


@dataclass(frozen=True)
class Plan:
    """What a story is made of.

    Attributes:
        model: checkpoint that knows the day.
        day: folder of frames before, and
        changed: after the change, without labels.
        later: frames after the change that the canary runs on.
        val: labelled pictures after the change, that nothing learns from.
        config: settings of the adaptation.
        sets: more of them.
        frames: from which the loop looks for drift.
        gate: frames that the gate looks at.
        max_loss: of agreement with the mirror image, that the gate lets through.
        probation: seconds.
    """

    model: Path
    day: Path
    changed: Path
    later: Path
    val: Path
    config: Path
    sets: tuple[str, ...] = ()
    frames: int = 30
    gate: int = 200
    max_loss: float = 0.05
    probation: float = 1.0


@dataclass
class Story:
    """A story on its way.

    Attributes:
        plan: of it.
        folder: that it works in.
        told: what is worth a row, name -> text.
        troubles: whatever is not as it should be.
        lost: frames without a line, and lines without a frame, over all runs.
    """

    plan: Plan
    folder: Path
    echo: Callable[[str], None] = print
    told: dict[str, str] = field(default_factory=dict)
    troubles: list[str] = field(default_factory=list)
    lost: int = 0

    def go(self) -> None:
        """From the first deployment to the planted bundles."""
        self.begin()
        self.collect("day", self.plan.day)
        done = self.ptedge("loop", "site.toml")
        self.expect(done["state"] == "waiting", f"the loop adapts by day: {done['why']}")
        self.tell("loop by day", done["why"])
        before = self.score("AP50 after the change, before", self.folder / "first")
        self.collect("change", self.plan.changed)
        self.adapt()
        self.soak()
        after = self.score("AP50 after the change, after", self.running("north"))
        self.tell("gain", f"{100 * (after - before):+.1f}")
        self.planted()
        self.tell("frames lost, lines lost or twice", str(self.lost))

    def begin(self) -> None:
        """The day: a bundle of the first model runs everywhere."""
        sets = json.dumps(list(self.plan.sets))
        text = SITE.format(
            frames=self.plan.frames, config=self.plan.config, sets=sets, gate=self.plan.gate, loss=self.plan.max_loss
        )
        (self.folder / "site.toml").write_text(text)
        # the model learns what is usual from the day; a training with --val does so by itself
        self.ptedge("drift", str(self.plan.model), str(self.plan.day), "--learn", "--out", "known.pt")
        self.ptedge("export", "known.pt", "--out", "first")
        for name in ("canary", "north", "south"):
            self.ptedge("promote", "first", "--to", name, "--seconds", "0", "--backend", "cpu")

    def collect(self, name: str, frames: Path) -> None:
        """A device runs on frames, collects and sends."""
        words = ["--collect", "field", "--collect-random", "1", "--collect-interval", "0"]
        ran = self.drive("north", frames, *words)
        pushed = self.ptedge("field", "push", "field", "store")
        self.tell(f"{name}: frames, collected and pushed", f"{ran['frames']}, {pushed['frames']}")

    def drive(self, deployment: str, frames: Path, *options: str, probation: float | None = None) -> dict[str, Any]:
        """Run a deployment on frames, and count what came of them."""
        out = self.folder / f"out{len(list(self.folder.glob('out*')))}"
        words = ["run", deployment, str(frames), "--out", str(out), "--save", "jsonl", "--lossless", "--backend", "cpu"]
        seconds = self.plan.probation if probation is None else probation
        document = self.ptedge(*words, "--probation", str(seconds), *options)
        numbers = [json.loads(line)["frame"] for line in (out / "detections.jsonl").read_text().splitlines()]
        there = len(list(frames.iterdir()))
        self.lost += (there - document["frames"]) + len(set(range(there)) ^ set(numbers)) + len(numbers) - there
        return document

    def adapt(self) -> None:
        """The loop goes as far as the canary."""
        done = self.ptedge("loop", "site.toml")
        steps = {step["step"]: step for step in done["steps"]}
        self.expect(done["state"] == "soaking", f"the loop: {done['state']}: {done['why']}")
        for name in ("decide", "adapt", "estimate", "verify", "canary"):
            if name in steps:
                self.tell(f"loop: {name}", f"{steps[name]['why']} ({steps[name]['seconds']:.0f} s)")

    def soak(self) -> None:
        """The canary runs the new version on later frames, and keeps it; then all have it."""
        ran = self.drive("canary", self.plan.later)
        self.tell("canary", f"{ran['frames']} frames, probation {self.plan.probation:g} s")
        done = self.ptedge("loop", "site.toml")
        self.expect(done["state"] == "done", f"the loop: {done['state']}: {done['why']}")
        self.tell("loop: all", done["why"])
        again = self.ptedge("loop", "site.toml")
        self.expect(again["state"] == "waiting", f"the same frames began another round: {again['why']}")

    def planted(self) -> None:
        """A bundle that finds nothing: the gate keeps it out, and without its frames the probation does."""
        self.spoil()
        status, document = self.call("promote", "bad", "--to", "canary", "--frames", "later", "--backend", "cpu")
        failed = [check["name"] for check in document.get("checks", ()) if not check["passed"]]
        self.expect(status == 1 and bool(failed), "the gate let the planted bundle through")
        self.tell("planted bundle at the gate", f"refused by {', '.join(failed)}")
        before = self.ptedge("history", "canary")["version"]
        self.ptedge("promote", "bad", "--to", "canary", "--seconds", "0", "--backend", "cpu", "--why", "planted")
        self.drive("canary", self.folder / "later", probation=3600.0)
        history = self.ptedge("history", "canary")
        last = history["entries"][-1]
        back = last["action"] == "rollback" and last["automatic"] and history["version"] == before
        self.expect(back, f"the planted bundle was not rolled back: {last['action']}")
        self.tell("planted bundle on probation", f"rolled back: {last['why']}")

    def spoil(self) -> None:
        """A bundle of a model that takes everything for background, and the later frames over and over."""
        from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint

        checkpoint = load_checkpoint(self.folder / "known.pt")
        logits = checkpoint.state["roi_head.logits.bias"]
        checkpoint.state["roi_head.logits.weight"].zero_()
        logits.zero_()
        logits[BACKGROUND] = 9.0
        save_checkpoint(self.folder / "bad.pt", checkpoint)
        self.ptedge("export", "bad.pt", "--out", "bad")
        later = sorted(self.plan.later.iterdir())
        (self.folder / "later").mkdir()
        for number in range(PLANTED):
            frame = later[number % len(later)].resolve()
            (self.folder / "later" / f"{number:05}{frame.suffix}").symlink_to(frame)

    def running(self, name: str) -> Path:
        """The bundle that a deployment runs."""
        return self.folder / name / "versions" / str(self.ptedge("history", name)["version"])

    def score(self, name: str, model: Path) -> float:
        """AP50 on the labelled pictures."""
        found = float(self.ptedge("eval", str(model), str(self.plan.val))["AP50"])
        self.tell(name, f"{100 * found:.1f}")
        return found

    def ptedge(self, *words: str) -> dict[str, Any]:
        """A command that must succeed; its document."""
        status, document = self.call(*words)
        if status:
            raise RuntimeError(f"ptedge {' '.join(words)}: {(self.folder / 'log').read_text()[-2000:]}")
        return document

    def call(self, *words: str) -> tuple[int, dict[str, Any]]:
        """A command: exit status and document."""
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            command = [sys.executable, "-m", "ptedge", *words, "--json"]
            done = subprocess.run(
                command, stdout=subprocess.PIPE, stderr=log, text=True, check=False, cwd=self.folder, timeout=7200
            )
        return done.returncode, json.loads(done.stdout) if done.stdout.strip() else {}

    def tell(self, name: str, text: str) -> None:
        """A row."""
        self.told[name] = text
        self.echo(f"{name}: {text}")

    def expect(self, true: bool, otherwise: str) -> None:
        """Note a trouble."""
        if not true:
            self.troubles.append(otherwise)
            self.echo(f"WRONG: {otherwise}")


BACKGROUND = -1  # of the logits
PLANTED = 200  # frames that a planted bundle gets on probation; it goes back after 23 compared groups of five


def made_streets(folder: Path, day: int, changed: int, later: int, val: int) -> dict[str, Path]:
    """Generated streets of clear days, and other ones under the fog of ``ptedge shift``: frames and labelled pictures.

    Args:
        folder: empty.
        day: frames before the change.
        changed: after it.
        later: after it, for the canary.
        val: labelled, after it.
    """
    from ptedge.samples.scenes import DOMAINS
    from ptedge.samples.write import write_coco, write_frames

    write_frames(folder / "day", DOMAINS["clear"], day, 71)
    parts = {"changed": changed, "later": later, "val": val}
    for seed, (name, count) in enumerate(parts.items(), start=72):
        write_coco(folder / f"{name}_clear", DOMAINS["clear"], count, seed)
        labels, out = folder / f"{name}_clear" / "annotations.json", folder / name / "data.json"
        words = ["shift", str(labels), str(out), "--images", str(folder / name / "images"), "--recipes", "fog"]
        words += ["--weakest", "0.4", "--strongest", "0.7"]
        subprocess.run([sys.executable, "-m", "ptedge", *words], check=True, capture_output=True)
    frames = {name: folder / name / "images" for name in ("changed", "later")}
    return {"day": folder / "day", **frames, "val": folder / "val" / "data.json"}


def shared_out(folder: Path, data: Path, day: int, changed: int, later: int) -> dict[str, Path]:
    """Evenly spaced frames of a real pair: of its source's val images, and of its target's frames in two parts.

    Args:
        folder: new; gets links to the frames.
        data: ``source/val.json`` beside ``source/images``, ``target/frames``, ``target/val.json``.
        day: frames before the change, at most, and so on as :func:`made_streets`.
    """
    listed = json.loads((data / "source" / "val.json").read_text("utf-8"))["images"]
    source = [data / "source" / "images" / Path(image["file_name"]).name for image in listed]
    target = sorted((data / "target" / "frames").iterdir())
    first, second = target[: -len(target) // 4], target[-len(target) // 4 :]
    for name, paths, count in (("day", source, day), ("changed", first, changed), ("later", second, later)):
        (folder / name).mkdir(parents=True)
        for path in paths[:: max(1, len(paths) // count)][:count]:
            (folder / name / path.name).symlink_to(path.resolve())
    places = {name: folder / name for name in ("day", "changed", "later")}
    return places | {"val": data / "target" / "val.json"}

"""One scripted story of ``ptedge loop``: a stream turns from day to fog, and the site gets over it by itself.

All is done by the commands a person would give, each in a process of its own. :class:`Story` goes the way and counts;
``tests/bench/loop_scenario.py`` prints it, a test goes it with few frames.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

SITE = """\
checkpoint = "source.pt"
frames = ["store"]

[deploy]
canary = "canary"
all = ["north", "south"]

[decide]
min_frames = {frames}
enough_frames = {frames}
max_days = 0

[adapt]
config = "{config}"
set = {sets}

[verify]
limit = 4

[gate]
options = ["--backend", "cpu", "--limit", "{gate}"]

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
        frames: that make the loop adapt.
        gate: frames that the gate looks at.
        probation: seconds.
    """

    model: Path
    day: Path
    changed: Path
    later: Path
    val: Path
    config: Path
    sets: tuple[str, ...] = ()
    frames: int = 50
    gate: int = 32
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
        before = self.score("AP50 after the change, before", self.folder / "first")
        self.drive("north", self.stream(), "--collect", "field", "--collect-random", "1", "--collect-interval", "0")
        self.send()
        self.adapt()
        self.soak()
        after = self.score("AP50 after the change, after", self.running("north"))
        self.tell("gain", f"{100 * (after - before):+.1f}")
        self.planted()
        self.tell("frames lost, lines lost or twice", str(self.lost))

    def begin(self) -> None:
        """The day: a bundle of the first model runs everywhere."""
        (self.folder / "source.pt").write_bytes(self.plan.model.read_bytes())
        sets = json.dumps(list(self.plan.sets))
        text = SITE.format(frames=self.plan.frames, config=self.plan.config, sets=sets, gate=self.plan.gate)
        (self.folder / "site.toml").write_text(text)
        self.ptedge("export", "source.pt", "--out", "first")
        for name in ("canary", "north", "south"):
            self.ptedge("promote", "first", "--to", name, "--seconds", "0", "--backend", "cpu")

    def stream(self) -> Path:
        """Day, then the change, as one folder of numbered frames."""
        stream = self.folder / "stream"
        stream.mkdir()
        frames = [path for part in (self.plan.day, self.plan.changed) for path in sorted(part.iterdir())]
        for number, path in enumerate(frames):
            shutil.copy(path, stream / f"{number:06d}{path.suffix}")
        return stream

    def drive(self, deployment: str, frames: Path, *options: str) -> dict[str, Any]:
        """Run a deployment on frames, and count what came of them."""
        out = self.folder / f"out{len(list(self.folder.glob('out*')))}"
        words = ["run", deployment, str(frames), "--out", str(out), "--save", "jsonl", "--lossless", "--backend", "cpu"]
        document = self.ptedge(*words, "--probation", str(self.plan.probation), *options)
        numbers = [json.loads(line)["frame"] for line in (out / "detections.jsonl").read_text().splitlines()]
        there = len(list(frames.iterdir()))
        self.lost += (there - document["frames"]) + len(set(range(there)) ^ set(numbers)) + len(numbers) - there
        return document

    def send(self) -> None:
        """Frames from the device to the store."""
        pushed = self.ptedge("field", "push", "field", "store")
        self.tell("frames collected and pushed", str(pushed["frames"]))

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
        self.drive("canary", self.folder / "later")
        history = self.ptedge("history", "canary")
        last = history["entries"][-1]
        back = last["action"] == "rollback" and last["automatic"] and history["version"] == before
        self.expect(back, f"the planted bundle was not rolled back: {last['action']}")
        self.tell("planted bundle on probation", f"rolled back: {last['why']}")

    def spoil(self) -> None:
        """A bundle of a model that takes everything for background; and the later frames under a name."""
        from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint

        checkpoint = load_checkpoint(self.folder / "source.pt")
        logits = checkpoint.state["roi_head.logits.bias"]
        checkpoint.state["roi_head.logits.weight"].zero_()
        logits.zero_()
        logits[BACKGROUND] = 9.0
        save_checkpoint(self.folder / "bad.pt", checkpoint)
        self.ptedge("export", "bad.pt", "--out", "bad")
        (self.folder / "later").symlink_to(self.plan.later.resolve(), target_is_directory=True)

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
        words += ["--weakest", "0.7", "--strongest", "0.9"]
        subprocess.run([sys.executable, "-m", "ptedge", *words], check=True, capture_output=True)
    frames = {name: folder / name / "images" for name in ("changed", "later")}
    return {"day": folder / "day", **frames, "val": folder / "val" / "data.json"}

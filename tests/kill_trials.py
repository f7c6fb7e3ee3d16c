"""SIGKILL at random moments of ``ptedge run --collect``, ``train`` and ``adapt``, and what is looked at after each.

As a program: ``python tests/kill_trials.py COMMAND KILLS SEED FOLDER`` prints one JSON document. All is imported once;
each attempt is a fork of that, so it begins within a tenth of a second and many can be killed.
"""

from __future__ import annotations

import hashlib
import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from forked import command as ptedge_command
from forked import run_killed

COMMANDS = ("run", "full", "train", "adapt")  # full: run that collects masked triples into a full folder
STEPS = 14
FRAMES = 250  # of an attempt to run
QUOTA = 60  # images of a full folder
MASK = "[[mask]]\npolygon = [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]\n"


@dataclass
class Trial:
    """What many kills came to.

    Attributes:
        command: that was killed.
        kills: of attempts that were at work.
        began_anew: attempts after a kill before there was anything to go on from.
        ends: runs that came to their end between kills, and were compared with one that was never killed.
        half_lines: kills that left half a last line, which the next attempt cuts off.
        unlisted: kills that left an image without its line, which the next attempt removes.
        lines: of ``detections.jsonl``, of ``frames.jsonl`` or of ``metrics.jsonl``, whole and looked at.
        images: of the field folder, at the end.
        troubles: whatever is not as it should be.
    """

    command: str
    kills: int = 0
    began_anew: int = 0
    ends: int = 0
    half_lines: int = 0
    unlisted: int = 0
    lines: int = 0
    images: int = 0
    troubles: list[str] = field(default_factory=list)


def trial(command: str, kills: int, seed: int, folder: Path) -> Trial:
    """Kill a command many times, in a fresh program.

    Args:
        command: of ``COMMANDS``.
        kills: how often.
        seed: of the moments.
        folder: empty.
    """
    done = subprocess.run(
        [sys.executable, str(Path(__file__)), command, str(kills), str(seed), str(folder)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    return Trial(**json.loads(done.stdout))


def _whole_lines(path: Path, found: Trial) -> list[bytes]:
    """The whole lines of a file, each a JSON document; half a last one is counted."""
    data = path.read_bytes() if path.exists() else b""
    *lines, rest = data.split(b"\n")
    found.half_lines += bool(rest)
    for number, line in enumerate(lines, start=1):
        try:
            json.loads(line)
        except ValueError:
            found.troubles.append(f"{path.name} line {number} is broken: {line[:60]!r}")
    return lines


class _Collecting:
    """Kills of one run of a service: ``run --collect --out --append``, always with the same command line."""

    MOST_UNLISTED = 1  # images without a line that one kill may leave
    IMAGES: tuple[object, ...] = ("--collect-images", "100000")

    def __init__(self, folder: Path, found: Trial) -> None:
        from tiny_detector import write_pictures
        from tiny_model import tiny_bundle

        # each attempt has other pictures than the few before: what was collected lately is passed over
        self.pictures = [write_pictures(folder / f"data{i}", FRAMES, seed=i).parent / "images" for i in range(8)]
        self.attempts = 0
        self.longest = 1.2  # seconds until a kill: from before the folder is opened until after the last frame
        bundle = tiny_bundle(folder / "car.bundle").path
        self.out, self.field, self.log, self.found = folder / "out", folder / "field", folder / "log", found
        self.before: dict[str, list[bytes]] = {}
        self.numbers: set[int] = set()
        self.left: set[str] = set()  # images that were seen without a line
        self.words: list[object] = ["run", bundle, "--backend", "cpu", "--threads", "1"]
        self.words += ["--out", self.out, "--append", "--save", "jsonl,csv,images", "--collect", self.field]
        self.words += ["--collect-random", "0.5", "--collect-interval", "0", *self.IMAGES]

    def kill(self, after: float) -> None:
        """One attempt, and all that is to be true after it."""
        status = self._run(after)
        if status == 0:
            self.found.ends += 1
        elif status == -signal.SIGKILL:
            self.found.kills += 1
        else:
            self.found.troubles.append(f"exit status {status}: {self.log.read_text()[-300:]}")
        self.look()

    def _run(self, after: float | None) -> int:
        self.attempts += 1
        return run_killed(
            ptedge_command(*self.words, self.pictures[self.attempts % len(self.pictures)]), self.log, after
        )

    def look(self) -> None:
        """Nothing that was there is gone; numbers rise; each line has its image, whole."""
        found = self.found
        detections = self._detections()
        last = -1
        for line in detections:
            frame = json.loads(line)["frame"]
            if frame not in (0, last + 1):
                found.troubles.append(f"detections.jsonl goes from frame {last} to {frame}")
            last = frame
        records = self._records()
        numbers = [int(record["file"][7:15]) for record in records]
        if numbers != sorted(set(numbers)):
            found.troubles.append("numbers of images do not rise")
        listed = {record["file"][7:] for record in records}
        there = {path.name for path in (self.field / "images").glob("*.jpg")} if self.field.exists() else set()
        if len(there - listed) > self.MOST_UNLISTED:
            found.troubles.append(f"{len(there - listed)} images without a line")
        found.unlisted += len(there - listed)
        for name in there - listed:
            # the same one may be there again: the attempt in between was killed before it removed it
            if int(name[:8]) in self.numbers | set(numbers) and name not in self.left:
                found.troubles.append(f"number of {name} was given before")
        self.left |= there - listed
        self.numbers.update(int(name[:8]) for name in there | listed)
        for record in records:
            data = (self.field / record["file"]).read_bytes() if record["file"][7:] in there else b""
            if len(data) != record["bytes"] or hashlib.sha256(data).hexdigest()[:12] != record["file"][16:28]:
                found.troubles.append(f"{record['file']} is not whole")
        found.lines, found.images = len(detections) + len(records), len(there)

    def _records(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self._grown(self.field / "frames.jsonl")]

    def _detections(self) -> list[bytes]:
        return self._grown(self.out / "detections.jsonl")

    def _grown(self, path: Path) -> list[bytes]:
        lines = _whole_lines(path, self.found)
        before = self.before.get(path.name, [])
        if lines[: len(before)] != before:
            self.found.troubles.append(f"lines of {path.name} are gone or changed")
        self.before[path.name] = lines
        return lines

    def finish(self) -> None:
        """The last attempt is left alone; then nothing is half."""
        half, unlisted = self.found.half_lines, self.found.unlisted
        if (status := self._run(None)) != 0:
            self.found.troubles.append(f"the last attempt ended with {status}")
        self.look()
        if (self.found.half_lines, self.found.unlisted) != (half, unlisted):
            self.found.troubles.append("the last attempt left something half")
        about = json.loads((self.field / "field.json").read_text())
        if about["images"] != self.found.images:
            self.found.troubles.append(f"field.json says {about['images']} images, there are {self.found.images}")
        rows = (self.out / "detections.csv").read_text().splitlines()
        if any(row.count(",") != rows[0].count(",") for row in rows) or sum(row == rows[0] for row in rows) != 1:
            self.found.troubles.append("detections.csv has broken rows, or a second head")


class _Full(_Collecting):
    """The same into a folder that is full, with triples and a mask; between attempts it is pruned, by kills too."""

    MOST_UNLISTED = 3 + QUOTA  # a triple, and all that was to go
    IMAGES = ("--collect-images", QUOTA, "--collect-triples")

    def __init__(self, folder: Path, found: Trial) -> None:
        super().__init__(folder, found)
        (folder / "masks.toml").write_text(MASK)
        self.words += ["--mask", folder / "masks.toml"]
        self.looked_at: set[str] = set()
        begin = time.monotonic()
        status = self._run(None)
        assert status == 0, self.log.read_text()
        self.longest = 1.2 * (time.monotonic() - begin)

    def _run(self, after: float | None) -> int:
        if self.attempts % 2 and self.field.exists() and after is not None:
            pruning = ptedge_command("field", "prune", self.field, "--max-images", QUOTA // 2)
            status = run_killed(pruning, self.log, after / 4)
            if status not in (0, -signal.SIGKILL):
                self.found.troubles.append(f"prune: exit status {status}: {self.log.read_text()[-300:]}")
            self.look()
        return super()._run(after)

    def finish(self) -> None:
        """As ever; and frames did make way."""
        super().finish()
        if not json.loads((self.field / "field.json").read_text())["counters"].get("evicted"):
            self.found.troubles.append("nothing was evicted")

    def _records(self) -> list[dict[str, Any]]:
        """What is left of the lines before is as it was; triples are whole but for neighbours that never were."""
        records = [json.loads(line) for line in _whole_lines(self.field / "frames.jsonl", self.found)]
        if records and records[-1]["place"] == -1:  # the next start cuts it off
            records.pop()
        rows = {record["file"]: json.dumps(record).encode() for record in records}
        before = {json.loads(line)["file"]: line for line in self.before.get("frames.jsonl", [])}
        if [name for name in before if name in rows] != list(rows)[: len(before.keys() & rows.keys())]:
            self.found.troubles.append("lines of frames.jsonl are not in their order")
        if any(before[name] != row for name, row in rows.items() if name in before):
            self.found.troubles.append("lines of frames.jsonl changed")
        self.before["frames.jsonl"] = list(rows.values())
        places = {(record["triple"], record["place"]) for record in records}
        if len(places) != len(records) or any((triple, 0) not in places for triple, _ in places):
            self.found.troubles.append("a triple is broken")
        if len(records) > QUOTA:
            self.found.troubles.append(f"{len(records)} images, {QUOTA} may be there")
        self._look_at_pictures()
        self.left |= {name[7:] for name in before.keys() - rows.keys()}  # evicted: their images may be there still
        return records

    def _look_at_pictures(self) -> None:
        import cv2

        for path in (self.field / "images").glob("*.jpg") if self.field.exists() else ():
            picture = cv2.imread(str(path)) if path.name not in self.looked_at else None
            self.looked_at.add(path.name)
            if picture is not None and picture[:, : picture.shape[1] // 2 - 8].max() > 16:
                self.found.troubles.append(f"{path.name} shows what is masked")


class _Training:
    """Kills of training runs; each that comes to its end is compared with one that was never killed."""

    def __init__(self, command: str, folder: Path, found: Trial) -> None:
        from tiny_detector import write_pictures
        from training_shell import LOOP, MODEL

        self.folder, self.found, self.run = folder, found, 0
        source = write_pictures(folder / "source", 6)
        sets = [*LOOP, "checkpoint_every=1", f"optim.steps={STEPS}"]
        train = ["train", source, *_sets([*sets, *MODEL])]
        self.words = train
        if command == "adapt":
            target = write_pictures(folder / "target", 5, seed=1).parent / "images"
            self._straight([*train, "--out", folder / "pretrained"])
            more = ["monitor.every=2", "monitor.frames=3", "teacher.ema=0.9", "teacher.adabn=true"]
            self.words = ["adapt", folder / "pretrained" / "model.pt", "--target", target, "--source", source]
            self.words += _sets([*sets, *more])
        self.seconds = self._straight([*self.words, "--out", folder / "straight"])

    def _straight(self, words: Sequence[object]) -> float:
        begin = time.monotonic()
        status = run_killed(ptedge_command(*words), self.folder / "log", None)
        assert status == 0, (self.folder / "log").read_text()
        return time.monotonic() - begin

    @property
    def out(self) -> Path:
        """The run that is being killed."""
        return self.folder / f"killed_{self.run}"

    def kill(self, after: float | None) -> None:
        """One attempt, and all that is to be true after it."""
        resume = (self.out / "config.toml").exists()
        self.found.began_anew += self.out.exists() and not (self.out / "last.pt").exists()
        words = [*self.words, "--out", self.out, *(["--resume"] if resume else [])]
        begin = time.monotonic()
        status = run_killed(ptedge_command(*words), self.folder / "log", after)
        if status == 0 and not resume:  # how long it takes now: the machine may have been busier at first
            self.seconds = min(self.seconds, time.monotonic() - begin)
        if status == -signal.SIGKILL:
            self.found.kills += 1
            _whole_lines(self.out / "metrics.jsonl", self.found)
        elif status:
            self.found.troubles.append(f"exit status {status}: {(self.folder / 'log').read_text()[-300:]}")
            self.run += 1
        else:
            self.compare()
            self.run += 1

    def compare(self) -> None:
        """The same weights, bit for bit, the same lines, and nothing half."""
        import torch
        from training_shell import assert_equal, comparable

        from ptedge.artifacts.checkpoint import load_checkpoint

        self.found.ends += 1
        straight, out, troubles = self.folder / "straight", self.out, self.found.troubles
        one, two = (load_checkpoint(folder / "model.pt").state for folder in (straight, out))
        troubles += [f"{name} of model.pt differs" for name in one if not torch.equal(one[name], two[name])]
        try:
            assert_equal(straight, out)
        except AssertionError as error:
            troubles.append(f"last.pt differs: {error}")
        if comparable(straight) != comparable(out):
            troubles.append("metrics.jsonl differs")
        self.found.lines += len((out / "metrics.jsonl").read_text().splitlines())
        names = [sorted(path.relative_to(top).as_posix() for path in top.rglob("*")) for top in (straight, out)]
        if names[0] != names[1]:
            troubles.append(f"files differ: {sorted(set(names[0]) ^ set(names[1]))}")

    def finish(self) -> None:
        """The run at hand comes to its end."""
        self.kill(None)


def _sets(values: Sequence[str]) -> list[object]:
    return [word for value in values for word in ("--set", value)]


def _serve(command: str, kills: int, seed: int, folder: Path) -> Trial:
    import ptedge.cli  # before this folder is searched: it has one of that name

    sys.path.append(str(Path(__file__).parent))
    found, rng = Trial(command), random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    if command in ("run", "full"):
        import ptedge.runtime.run

        collecting = (_Full if command == "full" else _Collecting)(folder, found)
        _until(found, kills, lambda: collecting.kill(rng.uniform(0.0, collecting.longest)))
        collecting.finish()
        return found
    import pytest
    import torch
    import torchvision  # noqa: F401
    from tiny_detector import use_tiny_detector

    import ptedge.training.adapt
    import ptedge.training.update  # noqa: F401

    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        use_tiny_detector(patch)
        training = _Training(command, folder, found)
        _until(found, kills, lambda: training.kill(rng.uniform(0.0, 0.5 * training.seconds)))
        training.finish()
    return found


def _until(found: Trial, kills: int, attempt: Callable[[], None]) -> None:
    for _ in range(4 * kills):  # an attempt that ends before its kill does not count
        if found.kills >= kills or len(found.troubles) > 20:
            return
        attempt()


def as_row(found: Trial) -> str:
    """A line of the table in docs/folders.md."""
    words = ("kills", "ends", "began_anew", "half_lines", "unlisted", "lines", "images")
    return f"| `{found.command}` | " + " | ".join(str(getattr(found, w)) for w in words) + f" | {len(found.troubles)} |"


def table(rows: Sequence[Trial]) -> str:
    """The table, and every trouble below it."""
    head = (
        "| killed | kills | runs ended | began anew | half last lines | images without line | lines | images | wrong |"
    )
    ruler = re.sub(r"[^|]+", "---", head)
    return "\n".join([head, ruler, *map(as_row, rows), *(f"{r.command}: {t}" for r in rows for t in r.troubles)])


def main(words: Sequence[str]) -> None:
    """Do what the command line says."""
    found: dict[str, Any] = asdict(_serve(words[0], int(words[1]), int(words[2]), Path(words[3])))
    print(json.dumps(found))


if __name__ == "__main__":
    here = str(Path(__file__).parent)
    sys.path[:] = [path for path in sys.path if path != here]
    main(sys.argv[1:])

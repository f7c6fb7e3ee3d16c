"""SIGKILL at random moments of ``ptedge loop``, and what is looked at after each.

All is imported once; each attempt is a fork of that, in which commands run in the same process, so that a kill comes in
the middle of fetching, of the gate, of a promotion or of a record. The adaptation is a process of its own, a stand-in:
of every two kills one leaves it running, as a kill of the loop alone does; the next attempt finds the site in use.
"""

from __future__ import annotations

import json
import random
import signal
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

import onnx  # noqa: F401  # not again in each fork
import onnxruntime  # noqa: F401
import stand_in
from forked import run_killed
from made_site import SITE, in_process, made_site, send_frames

import ptedge.loop.work
import ptedge.runtime.deployment.channels
import ptedge.runtime.deployment.compare
from ptedge.artifacts.bundle import open_bundle
from ptedge.errors import OutputError, PtedgeError
from ptedge.folders import hold_folder
from ptedge.loop.rounds import STEPS, rounds_of
from ptedge.loop.run import run_round
from ptedge.loop.settings import Place
from ptedge.runtime.deployment.place import Deployment

FRAMES = 5  # a round
DEPLOYMENTS = ("canary", "north", "south")
FREE_AGAIN = 30.0  # seconds that an adaptation left alone may take


@dataclass
class LoopTrial:
    """What many kills came to.

    Attributes:
        kills: of attempts that were at work.
        left_running: of them, those that left an adaptation running.
        steps: step that came next after a kill -> how often.
        rounds: that came to their end.
        frames: that were sent, each in one round.
        troubles: whatever is not as it should be.
    """

    kills: int = 0
    left_running: int = 0
    steps: dict[str, int] = field(default_factory=dict)
    rounds: int = 0
    frames: int = 0
    troubles: list[str] = field(default_factory=list)


def loop_trial(kills: int, seed: int, folder: Path) -> LoopTrial:
    """Send frames, go through rounds, and kill that.

    Args:
        kills: how many.
        seed: of the moments.
        folder: empty.
    """
    found, rng = LoopTrial(), random.Random(seed)
    commands = f"\n[commands]\nadapt = [{json.dumps(sys.executable)}, {json.dumps(stand_in.__file__)}]\n"
    place = made_site(folder, SITE + commands)
    ptedge.loop.work.run_command = in_process
    begin = time.monotonic()
    _more_frames(place, found)
    assert _attempt(place, None, alone=False) == 0, (folder / "log").read_text()
    seconds = time.monotonic() - begin
    _more_frames(place, found)
    for _ in range(20 * kills):
        if found.kills >= kills or len(found.troubles) > 10:
            break
        alone = rng.random() < 0.5
        before = len([one for one in rounds_of(place.folder) if one.ended])
        status = _attempt(place, rng.uniform(0.0, 1.1) * seconds, alone=alone)
        if status == -signal.SIGKILL:
            found.kills += 1
            _until_free(place, found)
            _note_step(place, found)
        elif status:
            found.troubles.append(f"exit status {status}: {(folder / 'log').read_text()[-300:]}")
        _look(place, found)
        if len([one for one in rounds_of(place.folder) if one.ended]) > before:
            _more_frames(place, found)
    for _ in range(2):  # to the end, and once more for nothing
        status = _attempt(place, None, alone=False)
        assert status == 0, f"exit status {status}: {(folder / 'log').read_text()}"
    _look(place, found)
    _look_at_the_end(place, found)
    return found


def _more_frames(place: Place, found: LoopTrial) -> None:
    send_frames(place.home, found.frames, FRAMES)
    found.frames += FRAMES


def _attempt(place: Place, after: float | None, *, alone: bool) -> int:
    """One call of the loop; ``alone``: the kill leaves its commands running."""
    work = lambda: run_round(place, lambda text: print(text, file=sys.stderr))  # noqa: E731
    return run_killed(work, place.home / "log", after, children=not alone)


def _until_free(place: Place, found: LoopTrial) -> None:
    """Wait for an adaptation that goes on, which holds the site meanwhile."""
    end, waited = time.monotonic() + FREE_AGAIN, False
    while time.monotonic() < end:
        try:
            with hold_folder(place.folder, "the trial"):
                found.left_running += waited
                return
        except OutputError:
            waited = True
            time.sleep(0.01)
    found.troubles.append("the site is in use for ever")


def _note_step(place: Place, found: LoopTrial) -> None:
    from ptedge.loop.run import next_step

    rounds = rounds_of(place.folder)
    step = (next_step(rounds[-1]) if rounds else "pull") or "end"
    found.steps[step] = found.steps.get(step, 0) + 1


def _look(place: Place, found: LoopTrial) -> None:
    """Records are whole, no frame has two rounds, and each deployment runs one whole version, promoted once."""
    seen: dict[str, int] = {}
    try:
        for one in rounds_of(place.folder):
            one.records()
            ledger = one.folder / "ledger"
            if ledger.exists() and len(ledger.read_text().splitlines()) != 1:
                found.troubles.append(f"round {one.number} was adapted again")
            for key in _frames(one.frames / "frames.jsonl"):
                if key in seen:
                    found.troubles.append(f"a frame is in round {seen[key]} and in {one.number}")
                seen[key] = one.number
        for name in DEPLOYMENTS:
            deployment = Deployment(place.home / name)
            entries, state = deployment.history(), deployment.state()
            if state.version is not None:
                open_bundle(deployment.folder_of(state.version, state.files[state.version]))
            if len({entry.version for entry in entries}) != len(entries):
                found.troubles.append(f"{name} got a version twice")
    except (PtedgeError, ValueError) as error:
        found.troubles.append(str(error))


def _look_at_the_end(place: Place, found: LoopTrial) -> None:
    """Each frame has its round, each round all its steps, and all deployments got the versions of all rounds."""
    rounds = [one for one in rounds_of(place.folder) if one.ended]
    found.rounds = len(rounds)
    if (there := sum(len(_frames(one.frames / "frames.jsonl")) for one in rounds)) != found.frames:
        found.troubles.append(f"{found.frames} frames were sent, {there} are in rounds that ended")
    for one in rounds:
        if [record.step for record in one.records()] != list(STEPS):
            found.troubles.append(f"round {one.number} has no record of some step")
    versions = [[entry.version for entry in Deployment(place.home / name).history()] for name in DEPLOYMENTS]
    if any(len(row) != len(rounds) or row != versions[0] for row in versions):
        found.troubles.append(f"deployments got {list(map(len, versions))} versions in {len(rounds)} rounds")


def _frames(path: Path) -> list[str]:
    lines = path.read_bytes().split(b"\n")[:-1] if path.exists() else []
    return [json.loads(line)["sha256"] for line in lines]

"""SIGKILL at random moments of ``ptedge promote`` and ``ptedge rollback``, and what is looked at after each.

All is imported once; each attempt is a fork of that. Kills come while an attempt is at work on the deployment: the gate
before it changes nothing, so most of its time is left out.
"""

from __future__ import annotations

import random
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import onnxruntime  # noqa: F401  # not again in each fork
from forked import command, run_killed
from made_deployments import numbered_bundle

from ptedge.artifacts.bundle import open_bundle
from ptedge.errors import PtedgeError
from ptedge.runtime.deployment.history import FOLDER
from ptedge.runtime.deployment.place import VERSIONS, Deployment

BUNDLES = 6  # promoted in turns


@dataclass
class PromotionTrial:
    """What many kills came to.

    Attributes:
        kills: of attempts that were at work, by command.
        ends: attempts that came to their end.
        changed: kills after which another version ran than before, as the attempt wanted.
        unfinished: kills that left files of a version that no entry names.
        entries: in the history at the end.
        troubles: whatever is not as it should be.
    """

    kills: dict[str, int] = field(default_factory=lambda: {"promote": 0, "rollback": 0})
    ends: int = 0
    changed: int = 0
    unfinished: int = 0
    entries: int = 0
    troubles: list[str] = field(default_factory=list)


def promotion_trial(kills: int, seed: int, folder: Path) -> PromotionTrial:
    """Promote and roll back in turns, and kill it.

    Args:
        kills: how many in all.
        seed: of the moments.
        folder: empty.
    """
    found, rng = PromotionTrial(), random.Random(seed)
    bundles = [numbered_bundle(folder / f"bundle{number}", number) for number in range(BUNDLES)]
    place = folder / "deployment"
    seconds = {"promote": 0.0, "rollback": 0.0}
    for number in (0, 1, 2):
        begin = time.monotonic()
        assert run_killed(command(*_promotion(bundles[number], place)), folder / "log", None) == 0, (
            folder / "log"
        ).read_text()
        seconds["promote"] = time.monotonic() - begin
    seconds["rollback"] = seconds["promote"] / 2
    for turn in range(20 * kills):
        if sum(found.kills.values()) >= kills or len(found.troubles) > 10:
            break
        words = _next(bundles, place, rng)
        before = Deployment(place).state()
        begin = time.monotonic()
        # of a promotion the first part is the gate; the rest is where files change
        after = rng.uniform(0.0 if turn % 4 == 0 else 0.5, 1.2) * seconds[words[0]]
        status = run_killed(command(*words), folder / "log", after)
        if status == 0:
            found.ends += 1
            seconds[words[0]] = 0.5 * seconds[words[0]] + 0.5 * (time.monotonic() - begin)
        elif status == -signal.SIGKILL:
            found.kills[words[0]] += 1
            found.changed += Deployment(place).state().number > before.number
        else:
            found.troubles.append(f"{words}: exit status {status}: {(folder / 'log').read_text()[-300:]}")
        _look(Deployment(place), found)
    found.entries = len(Deployment(place).history())
    return found


def _promotion(bundle: Path, place: Path) -> list[str]:
    words = ["promote", str(bundle), "--to", str(place), "--seconds", "0", "--backend", "cpu", "--threads", "1"]
    return [*words, "--again", "--keep", "3"]


def _next(bundles: Sequence[Path], place: Path, rng: random.Random) -> list[str]:
    state = Deployment(place).state()
    if state.earlier is not None and rng.random() < 0.5:
        earlier = Deployment(place).path / VERSIONS / state.earlier / "manifest.json"
        if earlier.exists():
            return ["rollback", str(place)]
    return _promotion(rng.choice(bundles), place)


def _look(deployment: Deployment, found: PromotionTrial) -> None:
    """One whole version runs, and the history says which."""
    try:
        state = deployment.state()
        assert state.version is not None
        bundle = open_bundle(deployment.folder_of(state.version, state.files[state.version]))
        assert bundle.model_hash == deployment.history()[-1].model.get("model_hash", bundle.model_hash)
    except (PtedgeError, AssertionError, KeyError) as error:
        found.troubles.append(f"after {len(list(deployment.store.list(FOLDER)))} entries: {error}")
        return
    there = {item.key.split("/")[1] for item in deployment.store.list(VERSIONS)}
    found.unfinished += bool(there - set(state.files))

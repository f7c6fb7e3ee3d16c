"""The first steps: new frames into the round's own folder, and the decision whether to adapt to them."""

from __future__ import annotations

import contextlib
import json
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from ptedge.config import to_dict
from ptedge.errors import ArtifactError
from ptedge.files import atomic_write, sha256_file
from ptedge.shards.index import INDEX, is_site
from ptedge.stores.opening import open_store

from .decide import Facts, decide
from .rounds import Record, Round, parse_time, rounds_of
from .standing import Start, present_model
from .work import StepFailedError, Work

FRAMES_LIST = "frames.jsonl"  # of a field folder
CHANCE = "random"  # in ``why`` of a frame there
MOST_TOLD = 3  # of what moved


def pull(work: Work) -> Record:
    """Fetch what no round has yet. A source that fails is told, and does not keep the others from the round.

    Raises:
        StepFailedError: all of them fail.
    """
    sources = work.place.site.frames
    without = [word for folder in frame_folders(work) for word in ("--without", folder)]
    got: dict[str, Any] = {}
    troubles: dict[str, str] = {}
    for source in sources:
        address = work.place.located(source)
        try:
            if is_empty(address):
                got[source] = {"frames": 0}
                continue
            got[source] = dict(work.ptedge("pull", "field", "pull", address, work.round.frames, *without).needed())
        except StepFailedError as error:
            troubles[source] = str(error)
    if len(troubles) == len(sources):
        raise StepFailedError("; ".join(f"{source}: {text}" for source, text in troubles.items()))
    new, there = sum(one["frames"] for one in got.values()), len(frame_records(work.round.frames))
    told = f"{new} new frames, {there} in all"
    told += "".join(f"; {source} failed: {text}" for source, text in troubles.items())
    before = work.round.record("pull")
    event = "trouble" if troubles and troubles != (before.result.get("troubles") if before else None) else ""
    result = {"frames": there, "sources": got, "troubles": troubles}
    return Record("pull", "done", told, result=result, event=event)


def frame_folders(work: Work) -> list[Path]:
    """The frames of earlier rounds, which are nobody's a second time."""
    rounds = rounds_of(work.place.folder)
    return [one.frames for one in rounds if one.number < work.round.number and (one.frames / FRAMES_LIST).exists()]


def choose(work: Work) -> Record:
    """Decide. Once the answer is yes, no frame comes to this round any more."""
    rules, frames = work.place.site.decide, len(frame_records(work.round.frames))
    start = present_model(work)
    look = rules.drift and frames >= rules.min_frames
    drift, text = drift_of(work, start) if look else (None, "")
    decision = decide(rules, Facts(frames, days_since_adaptation(work.place.folder), drift, text))
    work.round.note("decisions.jsonl", {"adapt": decision.adapt, "frames": frames, "why": decision.why})
    settings = to_dict(rules)
    if not decision.adapt:
        result = {"frames": frames, "reasons": list(decision.reasons)}
        return Record("decide", "waiting", decision.why, settings=settings, result=result)
    result = {"frames": frames, "reasons": list(decision.reasons), "start": to_dict(start)}
    inputs = {"checkpoint": start.sha256, "version": start.version, "frames": frames_hash(work.round)}
    return Record("decide", "done", decision.why, settings=settings, inputs=inputs, result=result)


def frames_hash(one: Round) -> str:
    """The sha256 of the list of a round's frames; each line has that of its image."""
    return sha256_file(one.frames / FRAMES_LIST)


def drift_of(work: Work, start: Start) -> tuple[bool | None, str]:
    """Whether the newest frames that chance picked are like those that the present model was made for.

    The others were collected because they are unusual, so they tell nothing of the place. As many are looked at as an
    adaptation needs: with weeks of usual frames before them, a change would not show.

    Args:
        work: of the round.
        start: the present model.

    Returns:
        Whether there is drift, ``None`` where that cannot be told, and what moved or why not.
    """
    chosen = [r["file"] for r in frame_records(work.round.frames) if CHANCE in r.get("why", ())]
    chosen = chosen[-work.place.site.decide.min_frames :]
    if not chosen:
        return None, "no frame was picked by chance (ptedge run --collect-random)"
    names = work.round.folder / "by_chance.txt"
    with atomic_write(names, "w") as file:
        file.writelines(f"{work.round.frames.name}/{name}\n" for name in chosen)
    answer = work.ptedge("drift", "drift", start.checkpoint, names)
    if answer.status or "found" not in answer.document:
        return None, answer.said
    moved = [str(one["text"]) for one in answer.document.get("moved", ())]
    return bool(answer.document["found"]), "; ".join(moved[:MOST_TOLD])


def frame_records(folder: Path) -> list[dict[str, Any]]:
    """The whole lines of a field folder's list; none where there is none.

    Args:
        folder: field folder.

    Raises:
        ArtifactError: a line is broken.
    """
    path = folder / FRAMES_LIST
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return []
    except OSError as error:
        raise ArtifactError(f"{path} cannot be read: {error.strerror}") from None
    try:
        return [json.loads(line) for line in content.split(b"\n")[:-1]]
    except ValueError:
        raise ArtifactError(f"{path} has a broken line; remove it to go on") from None


def days_since_adaptation(folder: Path) -> float | None:
    """Since the last adaptation of any round of a site ended; ``None`` before the first."""
    ended = [r.ended for one in rounds_of(folder) if (r := one.record("adapt")) and r.state == "done"]
    if not ended:
        return None
    return (datetime.now(timezone.utc) - parse_time(ended[-1])).total_seconds() / 86400


def is_empty(address: str) -> bool:
    """Whether a store has no frames yet: nothing was pushed, which is no fault."""
    if (Path(address) / "field.json").is_file():
        return False
    with contextlib.suppress(OSError):
        if not is_site(address) and Path(address).exists() and any(Path(address).iterdir()):
            return False  # something else: the command says what
    return next(iter(open_store(address).list(INDEX)), None) is None

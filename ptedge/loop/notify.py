"""Tell others what happens: a command gets each event as JSON on stdin. Whatever becomes of it, the loop goes on."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from typing import Any

from ptedge.files import write_json

from .rounds import Record, Round, now
from .settings import Place

# adapted, canary, everywhere, refused, rolled back, given up, trouble (a source of frames), failed
TOLD = "told"  # of a round's folder: one file an event, with what became of telling it


def events_to_tell(one: Round) -> list[Record]:
    """Records with an event that nobody was told of yet: also those of a call that was killed."""
    return [r for r in one.records() if r.event and not (one.folder / TOLD / _name(r)).exists()]


def tell(place: Place, one: Round, record: Record) -> bool | None:
    """Tell of a record's event, and note that it was told; a kill in between tells it twice.

    Args:
        place: of the site.
        one: the round.
        record: with an event.

    Returns:
        Whether the command succeeded; ``None`` where none is set.
    """
    if not place.site.notify.command:
        return None
    wrong = send(place, one, record.event, record.step, record.why, dict(record.result))
    about = {"time": now(), "event": record.event, "step": record.step, "ok": not wrong, "wrong": wrong}
    write_json(one.folder / TOLD / _name(record), about)
    return not wrong


def send(place: Place, one: Round, event: str, step: str, why: str, details: dict[str, Any]) -> str:
    """Run the command with an event on its stdin.

    Returns:
        What went wrong; empty for nothing.
    """
    message = {"event": event, "site": place.file.stem, "round": one.number, "step": step, "why": why}
    text = json.dumps({**message, "time": now(), "folder": str(one.folder), "details": details}, ensure_ascii=False)
    settings = place.site.notify
    try:
        done = subprocess.run(
            settings.command,
            input=text.encode(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=place.home,
            timeout=settings.timeout,
            check=False,
            start_new_session=True,
        )
    except subprocess.TimeoutExpired:
        return f"it took more than notify.timeout = {settings.timeout:g} seconds"
    except OSError as error:
        return f"{settings.command[0]} cannot be started: {error.strerror}"
    return f"exit status {done.returncode}" if done.returncode else ""


def counted(folder: Path) -> dict[str, int]:
    """How many notifications of a round were sent and how many failed.

    Args:
        folder: of the round.
    """
    counts = {"sent": 0, "failed": 0}
    for path in (folder / TOLD).glob("*.json"):
        with contextlib.suppress(OSError, ValueError, KeyError):
            counts["sent" if json.loads(path.read_bytes())["ok"] else "failed"] += 1
    return counts


def _name(record: Record) -> str:
    """One file for each time a step ended with an event."""
    return f"{record.step}-{record.ended.replace(':', '')}.json"

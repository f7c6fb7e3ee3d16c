"""One call of ``ptedge loop``: the round that is at work goes on as far as it comes."""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Mapping
from typing import Any

from ptedge.errors import InputError, PtedgeError
from ptedge.folders import hold_folder

from . import gather, learn, register, ship
from .notify import counted, events_to_tell, send, tell
from .rounds import ENDS, GOES_ON, STEPS, Record, Round, current_round, now, rounds_of
from .settings import Place
from .work import StepFailedError, Work

DO: Mapping[str, Callable[[Work], Record]] = {
    "pull": gather.pull,
    "decide": gather.choose,
    "adapt": learn.adapt,
    "watch": learn.watch,
    "estimate": learn.estimate,
    "export": ship.export,
    "verify": ship.verify,
    "canary": ship.canary,
    "soak": ship.soak,
    "all": ship.everywhere,
    "register": register.register,
}


def run_round(place: Place, echo: Callable[[str], None]) -> dict[str, Any]:
    """Go on with the round, or begin one.

    Args:
        place: of the site.
        echo: told what happens.

    Returns:
        The answer of the command.

    Raises:
        OutputError: another call is at work, or the site's folder is not writable.
        StepFailedError: a step could not be done; the next call tries again.
    """
    with hold_folder(place.folder, f"ptedge loop {place.file.name}", inherited=True) as lock:
        one = current_round(place.folder)
        one.folder.mkdir(parents=True, exist_ok=True)
        work = Work(place, one, echo, lock)
        for record in events_to_tell(one):
            tell(place, one, record)
        did = []
        while (step := next_step(one)) is not None:
            record = _do(work, step)
            did.append(step)
            if record.state not in GOES_ON:
                break
        tidy(place)
        return describe(place, one, did)


def next_step(one: Round) -> str | None:
    """The step that comes next; ``None`` where the round has ended. Frames are fetched anew until it is decided."""
    if any(record.state in ENDS for record in one.records()):
        return None
    decided = one.record("decide")
    if decided is None or decided.state == "waiting":
        return "pull" if not _pulled_since(one, decided) else "decide"
    for step in STEPS[2:]:
        record = one.record(step)
        if record is None or record.state == "waiting":
            return step
    return None


def _pulled_since(one: Round, decided: Record | None) -> bool:
    """Whether frames were fetched after the last decision."""
    pulled = one.record("pull")
    return pulled is not None and (decided is None or pulled.began > decided.ended)


def _do(work: Work, step: str) -> Record:
    """Do a step, keep its record, and tell of it."""
    began = now()
    work.commands.clear()
    try:
        record = DO[step](work)
    except PtedgeError as error:
        note = {"step": step, "why": str(error), "commands": [list(words) for words in work.commands]}
        work.round.note("failures.jsonl", note)
        if work.place.site.notify.command:
            send(work.place, work.round, "failed", step, str(error), {})
        raise StepFailedError(f"round {work.round.number}, {step}: {error}. The same command tries again") from None
    record = dataclasses.replace(record, began=began, ended=now(), commands=tuple(work.commands))
    work.round.write(record)
    work.echo(f"round {work.round.number}, {step}: {record.state}: {record.why}")
    if record.event and tell(work.place, work.round, record) is False:
        work.echo(f"notify.command failed for {record.event!r}")
    return record


def give_up(place: Place, why: str) -> dict[str, Any]:
    """End the round that is at work, whatever it waits for; its frames are not used again.

    Raises:
        InputError: no round is at work.
    """
    with hold_folder(place.folder, f"ptedge loop {place.file.name}", inherited=True):
        one = current_round(place.folder)
        step = next_step(one)
        if step is None or not one.folder.is_dir():
            raise InputError(f"{place.file}: no round is at work")
        record = Record(step, "given up", why or "by hand", now(), now(), event="given up")
        one.write(record)
        tell(place, one, record)
        return describe(place, one, [step])


def describe(place: Place, one: Round, did: list[str]) -> dict[str, Any]:
    """A round as ``--json`` tells it.

    Args:
        place: of the site.
        one: the round.
        did: steps of this call.
    """
    records = one.records()
    state, why = state_of(records)
    steps = [{"step": r.step, "state": r.state, "why": r.why, "seconds": round(r.seconds, 1)} for r in records]
    return {
        "site": str(place.file),
        "folder": str(one.folder),
        "round": one.number,
        "state": state,
        "why": why,
        "did": did,
        "steps": steps,
        "notifications": counted(one.folder),
    }


def state_of(records: list[Record]) -> tuple[str, str]:
    """Where a round stands: ``waiting``, ``working``, ``soaking``, ``done``, ``refused`` or ``given up``; and why."""
    if not records:
        return "working", "it has not begun"
    last = records[-1]
    ending = next((record for record in records if record.state in ENDS), None)
    if ending is not None:
        return ending.state, ending.why
    if last.state == "waiting":
        return ("soaking" if last.step == "soak" else "waiting"), last.why
    if last.step == STEPS[-1]:
        shipped = next((record.why for record in records if record.step == "all"), last.why)
        return "done", shipped
    return "working", f"{last.step} is done: {last.why}"


def tidy(place: Place) -> None:
    """Remove what is large of rounds that ended some rounds ago; their records and lists of frames stay.

    What cannot be removed is left for the next call.
    """
    ended = [one for one in rounds_of(place.folder) if one.ended]
    for one in ended[: -place.site.keep_rounds]:
        for path in (one.frames / "images", one.run, one.bundle):
            shutil.rmtree(path, ignore_errors=True)

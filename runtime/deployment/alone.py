"""What this machine decided alone: versions it sent back where it may not write to the deployment.

Thousands of devices had better not be allowed to roll back for one another. One that is not goes back by itself, notes
it beside its copy of the deployment, and does not take this promotion again.
"""

from __future__ import annotations

import json

from ptedge.errors import StoreError
from ptedge.files import MOST_JSON_BYTES, parse_json
from ptedge.stores.store import Store, read_whole

from .crashes import FOLDER
from .history import Entry, State, now


def note(local: Store, promotion: int, why: str) -> None:
    """Note that a promotion was sent back here.

    Args:
        local: this machine's part of the deployment.
        promotion: number of its entry.
        why: in words.

    Raises:
        StoreError: not writable.
    """
    local.put(_key(promotion), json.dumps({"why": why, "time": now()}).encode())


def decided(local: Store, state: State) -> State:
    """A state without the promotions that were sent back here.

    Args:
        local: this machine's part of the deployment.
        state: of the deployment.
    """
    while state.earlier is not None and (why := _noted(local, state.promoted[str(state.version)])) is not None:
        state = state.after(Entry(state.number, "rollback", state.earlier, str(state.version), why=why))
    return state


def _noted(local: Store, promotion: int) -> str | None:
    if local.head(_key(promotion)) is None:
        return None
    try:
        return str(parse_json(read_whole(local, _key(promotion), MOST_JSON_BYTES))["why"])
    except (ValueError, KeyError, TypeError, StoreError):
        return "it was sent back before"


def _key(promotion: int) -> str:
    return f"{FOLDER}{promotion:08d}/sent-back.json"

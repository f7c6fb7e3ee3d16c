"""Runs that died while a version was on probation: a model can take the whole process with it.

Each run notes in the deployment when it begins a probation and when it leaves it. A note without its end, by a process
of this machine that is gone though the machine was not started again since, is a crash: a lost power is nobody's fault.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from pathlib import Path

from ptedge.errors import PtedgeError
from ptedge.files import MOST_JSON_BYTES, parse_json
from ptedge.stores.store import Store, read_whole

FOLDER = "trials/"
BEGUN, ENDED = ".begun.json", ".ended.json"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


def begin(store: Store, promotion: int) -> str | None:
    """Note that a probation begins.

    Args:
        store: of the deployment.
        promotion: number of the entry that promoted the version.

    Returns:
        For :func:`end`; ``None`` where nothing can be written.
    """
    about = {"host": socket.gethostname(), "process": os.getpid(), "boot": _boot()}
    with contextlib.suppress(PtedgeError):
        for number in range(1, 10_000):
            name = f"{FOLDER}{promotion:08d}/{number:04d}"
            if store.head(name + BEGUN) is None and store.put(name + BEGUN, json.dumps(about).encode()):
                return name
    return None


def end(store: Store, name: str | None) -> None:
    """Note that the run left the probation by itself.

    Args:
        store: of the deployment.
        name: of :func:`begin`.
    """
    if name is not None:
        with contextlib.suppress(PtedgeError):
            store.put(name + ENDED, b"{}")


def crashes(store: Store, promotion: int) -> int:
    """How many runs on this machine died in a version's probation since the machine was started.

    Args:
        store: of the deployment.
        promotion: as :func:`begin`.

    Raises:
        StoreError: the store cannot be read.
    """
    keys = [item.key for item in store.list(f"{FOLDER}{promotion:08d}/")]
    open_ones = [key for key in keys if key.endswith(BEGUN) and key.replace(BEGUN, ENDED) not in keys]
    return sum(_died(read_whole(store, key, MOST_JSON_BYTES)) for key in open_ones)


def _died(content: bytes) -> bool:
    try:
        about = parse_json(content)
        host, process, boot = about["host"], int(about["process"]), about["boot"]
    except (ValueError, KeyError, TypeError):
        return False
    if host != socket.gethostname() or not boot or boot != _boot():
        return False
    if process == os.getpid():  # of a container, where each program has the same number
        return True
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    except OSError:
        pass  # alive, of another user
    return False


def _boot() -> str:
    """Which start of the machine this is; empty where the system does not say."""
    if sys.platform != "linux":
        return ""
    with contextlib.suppress(OSError):
        return _BOOT.read_text().strip()
    return ""

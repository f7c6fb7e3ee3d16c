"""``ptedge field push`` killed at random moments: no frame lost, none there twice, no index of what is not there.

Run: python tests/bench/push_kills.py [--kills 200] [--seed 0] [--store folder --store rclone --store moto]
Each attempt is a fork of this program and gets SIGKILL at a random moment; after each, the site is looked at. When an
attempt comes to its end, all frames have to be there; then the folder is pruned and grows, and it goes on. Exit status
1 when anything is wrong.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import ptedge.runtime.transfer.push  # noqa: F401  # before the tests' folder is searched: it has one of that name

sys.path.append(str(Path(__file__).resolve().parents[1]))

from faulty_store import frames_in, troubles
from forked import run_killed
from made_field import digests, fill
from servers.buckets import ENVIRONMENT, KINDS, address, bucket_server

from ptedge.runtime.collection.prune import prune
from ptedge.runtime.field import open_field
from ptedge.runtime.transfer.push import push
from ptedge.stores.opening import open_store

FRAME, GROWTH, SHARD = 40_000, 25, 150_000  # bytes, frames, bytes: eight shards a turn
LONGEST = 300.0  # seconds of a push that is not killed
KEPT = 60  # frames that pruning leaves


def attempt(field: Path, site: str, after: float) -> int:
    """Push in a process of its own that is killed; its exit status, negative for a signal."""
    return run_killed(lambda: push(field, open_store(site), site, SHARD), field.with_name("log"), after)


def trial(kind: str, site: str, kills: int, rng: random.Random, folder: Path) -> tuple[str, list[str]]:
    """Kill pushes to one site; a row of the table, and what was wrong."""
    field = fill(folder / "field", GROWTH, FRAME)
    store = open_store(site)
    wrong: list[str] = []
    killed = ends = unindexed = 0
    begin = time.monotonic()
    wrong += [] if attempt(field, site, LONGEST) == 0 else ["the first push did not end"]
    whole = time.monotonic() - begin  # as long as it takes on this machine
    fill(field, GROWTH, FRAME)
    while killed < kills:
        status = attempt(field, site, rng.uniform(0.2 * whole, 1.3 * whole))
        if status == 0:
            ends += 1
            wrong += [] if digests(field) <= frames_in(store) else [f"after {killed} kills a frame is missing"]
            prune(open_field(field), None, KEPT)
            fill(field, GROWTH, FRAME)
        elif status == -signal.SIGKILL:
            killed += 1
        else:
            wrong.append(f"exit status {status}")
        found = troubles(store)
        unindexed += len(list(store.list("shards/"))) - len(list(store.list("index/")))
        wrong += [f"after {killed} kills: {text}" for text in found]
        if len(wrong) > 20:
            break
    push(field, open_store(site), site, SHARD)
    wrong += troubles(store) + ([] if digests(field) <= frames_in(store) else ["at the end a frame is missing"])
    frames, shards = len(frames_in(store)), len(list(store.list("shards/")))
    return f"| {kind} | {killed} | {ends} | {frames} | {shards} | {unindexed} | {len(wrong)} |", wrong


@contextlib.contextmanager
def place(kind: str, folder: Path) -> Iterator[str]:
    """The address of an empty site."""
    if kind == "folder":
        yield str(folder / "site")
        return
    with bucket_server(kind, folder / "server") as endpoint:
        yield address(endpoint, "site")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="of each store")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--store", choices=("folder", *KINDS), action="append")
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    troubled = False
    print("| store | kills | pushes that ended | frames | shards | seen without an index | wrong |")
    print("|---|---|---|---|---|---|---|")
    for kind in options.store or ("folder", *KINDS):
        with tempfile.TemporaryDirectory() as folder, place(kind, Path(folder)) as site:
            row, wrong = trial(kind, site, options.kills, random.Random(options.seed), Path(folder))
        print(row, *wrong, sep="\n", flush=True)
        troubled |= bool(wrong)
    sys.exit(troubled)


if __name__ == "__main__":
    main()

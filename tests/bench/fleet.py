"""A thousand devices against a bucket on this machine: push, index, canary, waves and rollback, see docs/fleet.md.

Run: python tests/bench/fleet.py [--devices 1000] [--frames 10] [--poll 10] [--faults 0.02] [--server rclone]
Requests are counted where the client sends them. Exit status 1 when a frame is lost or there twice, a device ends on
another version, or the bad version leaves the canary.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import time
from pathlib import Path

import ptedge.runtime.transfer.push  # noqa: F401  # before the tests' folder is searched: it has one of that name

sys.path.append(str(Path(__file__).resolve().parents[1]))

from fleet_trial import HEAD, Fleet, fleet_trial, shared_clients
from made_field import fill
from servers.buckets import ENVIRONMENT, KINDS, address, bucket_server

from ptedge.runtime.transfer.push import push
from ptedge.shards.index import ABOUT, Entry, Shard, index_lines
from ptedge.stores.opening import open_store
from ptedge.verbosity import quiet


def many_shards(place: str, folder: Path, count: int) -> str:
    """How long a push with nothing new takes where a site has many shards of one frame each."""
    store = open_store(place)
    field = fill(folder / "many", 1, 1000)
    push(field, store, place)
    for number in range(count):
        digest = f"{number:064x}"
        store.put(f"shards/{digest}.tar", b"x" * 2000)
        entry = Entry(digest, 512, 1000, 1536, 100, 1280, 720, f"{number:08d}_{digest[:12]}.jpg")
        store.put(f"index/{digest}.jsonl", index_lines(Shard(digest, 2000, "0" * 64, (entry,))))
    assert list(store.list(ABOUT))
    seconds = []
    for _ in range(2):
        begin = time.monotonic()
        push(field, store, place)
        seconds.append(time.monotonic() - begin)
    return f"{count} shards: a push reads their indexes in {seconds[0]:.1f} s, the next one takes {seconds[1]:.1f} s"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--devices", type=int, default=1000)
    parser.add_argument("--frames", type=int, default=10, help="of a device, and as many once more")
    parser.add_argument("--poll", type=float, default=10.0, help="seconds between two looks")
    parser.add_argument("--faults", type=float, default=0.02, help="share of the requests that fail")
    parser.add_argument("--shards", type=int, default=2000, help="of one site, in the end")
    parser.add_argument("--server", choices=KINDS, action="append")
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    logging.disable(logging.CRITICAL)
    troubled = False
    for kind in options.server or KINDS:
        with tempfile.TemporaryDirectory() as name, bucket_server(kind, Path(name) / "server") as endpoint:
            folder = Path(name) / "devices"
            folder.mkdir()
            os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
            fleet = Fleet(options.devices, folder, lambda place: address(endpoint, place), options.poll, options.faults)
            with quiet(), shared_clients(fleet.meter):
                fleet_trial(fleet, options.frames)
                print(f"{kind}, {options.devices} devices\n", HEAD, sep="\n")
                print(*(phase.row() for phase in fleet.phases), *fleet.troubles, sep="\n")
                print(many_shards(address(endpoint, "sites/many"), folder, options.shards), flush=True)
        troubled |= bool(fleet.troubles)
    sys.exit(troubled)


if __name__ == "__main__":
    main()

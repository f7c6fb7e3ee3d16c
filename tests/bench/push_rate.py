"""How fast frames go into a bucket by ``ptedge field push``, against the bare client with the same bytes.

Run: python tests/bench/push_rate.py [--megabytes 128] [--rounds 3] [--server rclone --server moto]
Servers run on 127.0.0.1 and end with the program. The bare client is boto3: ``put_object`` of files of 32 MB one after
the other, and its transfer manager (``upload_file``: parts, ten threads). All take turns within each round; the ratio
of a round is against the faster of the two. Exit status 1 where the median of the rounds is below 0.8.
"""

from __future__ import annotations

import argparse
import logging
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ptedge.runtime.transfer.push  # noqa: F401  # before the tests' folder is searched: it has one of that name

sys.path.append(str(Path(__file__).resolve().parents[1]))

from made_field import fill
from servers.buckets import ENVIRONMENT, KINDS, address, bucket_server

from ptedge.runtime.transfer.push import SHARD_BYTES, push
from ptedge.stores.opening import open_store

FRAME = 200_000  # bytes, as of a JPEG of 1280 x 720


def files_of(folder: Path, size: int) -> list[Path]:
    """Files as large as the shards that a push makes."""
    folder.mkdir()
    made = []
    for number in range(-(-size // SHARD_BYTES)):
        path = folder / str(number)
        path.write_bytes(os.urandom(min(SHARD_BYTES, size - number * SHARD_BYTES)))
        made.append(path)
    return made


def ways(endpoint: str, field: Path, files: list[Path], turns: int) -> dict[str, Callable[[str], Any]]:
    """What is measured: each gets a prefix that is new. Clients are made before."""
    client = open_store(address(endpoint, "bare"))._client  # type: ignore[attr-defined]
    stores = [open_store(address(endpoint, f"pushed-{turn}")) for turn in range(turns)]

    def one_by_one(prefix: str) -> None:
        for path in files:
            client.put_object(Bucket="frames", Key=f"{prefix}/{path.name}", Body=path.read_bytes())

    def transfer(prefix: str) -> None:
        for path in files:
            client.upload_file(str(path), "frames", f"{prefix}/{path.name}")

    def pushed(prefix: str) -> None:
        push(field, stores.pop(), prefix)

    return {"put_object": one_by_one, "upload_file": transfer, "push": pushed}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--megabytes", type=int, default=128, help="of frames")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--server", choices=KINDS, action="append")
    options = parser.parse_args()
    os.environ.update(ENVIRONMENT)
    logging.disable(logging.CRITICAL)
    size = options.megabytes << 20
    worst = 1.0
    print("| server | `put_object`, MB/s | `upload_file`, MB/s | push, MB/s | ratio |")
    print("|---|---|---|---|---|")
    for kind in options.server or KINDS:
        with tempfile.TemporaryDirectory() as folder, bucket_server(kind, Path(folder) / "server") as endpoint:
            field = fill(Path(folder) / "field", size // FRAME, FRAME)
            measured = ways(endpoint, field, files_of(Path(folder) / "files", size), options.rounds + 1)
            seconds: dict[str, list[float]] = {name: [] for name in measured}
            for turn in range(options.rounds + 1):
                for name, way in measured.items():
                    begin = time.perf_counter()
                    way(f"{name}-{turn}")
                    seconds[name] += [time.perf_counter() - begin] if turn else []  # the first warms up
            rates = [size / 1e6 / statistics.median(times) for times in seconds.values()]
            ratios = [min(bare) / pushed for *bare, pushed in zip(*seconds.values(), strict=True)]
            worst = min(worst, statistics.median(ratios))
            ratio = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"| {kind} | " + " | ".join(f"{rate:.1f}" for rate in rates) + f" | {ratio} |", flush=True)
    sys.exit(worst < 0.8)


if __name__ == "__main__":
    main()

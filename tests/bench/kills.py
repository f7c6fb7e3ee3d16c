"""``ptedge run --collect``, ``train`` and ``adapt`` killed at random moments: the table of docs/folders.md.

Run: python tests/bench/kills.py [--kills 200] [--only run]
Exit status 1 when anything is lost, twice there, half, or other than without kills.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from pathlib import Path

sys.path.append(str(Path(__file__).resolve().parents[1]))

from kill_trials import COMMANDS, table, trial


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="of each command")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    parser.add_argument("--only", choices=COMMANDS, action="append", help="this command; repeat")
    options = parser.parse_args()
    rows = []
    for command in options.only or COMMANDS:
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            rows.append(trial(command, options.kills, options.seed, Path(folder) / command))
        print(f"{command}: {rows[-1].kills} kills in {time.monotonic() - begin:.0f} s", file=sys.stderr)
    print(table(rows))
    sys.exit(any(row.troubles or row.kills < options.kills for row in rows))


if __name__ == "__main__":
    main()

"""``ptedge loop`` killed at random moments, see docs/loop.md.

Run: python tests/bench/loop_kills.py [--kills 200]
Exit status 1 when a frame is lost or used twice, or an adaptation or a promotion is done again.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import ptedge.loop.run  # noqa: F401  # before the tests' folder is searched: it has one of that name

sys.path.append(str(Path(__file__).resolve().parents[1]))

from loop_trials import loop_trial


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = loop_trial(options.kills, options.seed, Path(folder))
    for name, value in asdict(found).items():
        print(f"{name}: {value}")
    sys.exit(bool(found.troubles) or found.kills < options.kills)


if __name__ == "__main__":
    main()

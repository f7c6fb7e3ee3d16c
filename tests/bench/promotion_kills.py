"""``ptedge promote`` and ``ptedge rollback`` killed at random moments, see docs/deployments.md.

Run: python tests/bench/promotion_kills.py [--kills 200]
Exit status 1 when the deployment ever runs anything but one whole version.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from dataclasses import asdict
from pathlib import Path

import ptedge.runtime.deployment.change  # noqa: F401  # before the tests' folder is searched: it has one of that name

sys.path.append(str(Path(__file__).resolve().parents[1]))

from promotion_trials import promotion_trial


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200, help="of both commands together")
    parser.add_argument("--seed", type=int, default=0, help="of the moments")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = promotion_trial(options.kills, options.seed, Path(folder))
    for name, value in asdict(found).items():
        print(f"{name}: {value}")
    sys.exit(bool(found.troubles) or sum(found.kills.values()) < options.kills)


if __name__ == "__main__":
    main()

"""AP of several checkpoints in one process: ``python -m ptedge.training.study.score CONVENTION VAL CHECKPOINT...``."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ptedge.errors import PtedgeError

from ..validate import validate


def main() -> None:
    """Print one JSON line a checkpoint: ``{"checkpoint", "AP50", ...}``, as ``ptedge eval --json`` has them."""
    convention, val, *checkpoints = sys.argv[1:]
    try:
        for name in checkpoints:
            print(json.dumps({"checkpoint": name, **validate(Path(name), Path(val), convention)}), flush=True)
    except PtedgeError as error:
        sys.exit(f"ptedge: {error}")


if __name__ == "__main__":
    main()

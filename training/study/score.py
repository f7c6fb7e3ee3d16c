"""AP of several checkpoints in one process: ``python -m ptedge.training.study.score VAL CHECKPOINT...``, JSON lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ptedge.errors import PtedgeError

from ..validate import validate


def main() -> None:
    """Print one line a checkpoint: ``{"checkpoint", "AP50", "AP75", "AP", ...}`` as ``ptedge eval --json`` has them."""
    val, *checkpoints = sys.argv[1:]
    try:
        for name in checkpoints:
            print(json.dumps({"checkpoint": name, **validate(Path(name), Path(val))}), flush=True)
    except PtedgeError as error:
        sys.exit(f"ptedge: {error}")


if __name__ == "__main__":
    main()

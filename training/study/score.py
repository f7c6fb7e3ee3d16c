"""AP of several checkpoints in one process: ``python -m ptedge.training.study.score VAL CHECKPOINT...``, JSON lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from ptedge.errors import PtedgeError
from ptedge.scores.convention import VOC

from ..validate import validate

CONVENTION = "--convention="  # as the last word; the usual one without it


def main() -> None:
    """Print one line a checkpoint: ``{"checkpoint", "AP50", "AP75", "AP", ...}`` as ``ptedge eval --json`` has them."""
    val, *checkpoints = sys.argv[1:]
    named = checkpoints and checkpoints[-1].startswith(CONVENTION)
    convention = checkpoints.pop().removeprefix(CONVENTION) if named else VOC.name
    try:
        for name in checkpoints:
            print(json.dumps({"checkpoint": name, **validate(Path(name), Path(val), convention)}), flush=True)
    except PtedgeError as error:
        sys.exit(f"ptedge: {error}")


if __name__ == "__main__":
    main()

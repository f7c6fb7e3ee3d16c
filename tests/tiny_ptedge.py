"""``ptedge`` with the tiny detector in place of the real one: ``python tests/tiny_ptedge.py adapt ...``."""

from __future__ import annotations

import sys
from pathlib import Path

HERE = str(Path(__file__).parent)

if __name__ == "__main__":
    sys.path[:] = [path for path in sys.path if path != HERE]  # this folder has one of that name
    import pytest

    import ptedge.cli

    sys.path.append(HERE)
    from tiny_detector import use_tiny_detector

    with pytest.MonkeyPatch.context() as patch:
        use_tiny_detector(patch)
        sys.argv[0] = "ptedge"
        ptedge.cli.main()

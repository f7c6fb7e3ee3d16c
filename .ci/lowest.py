"""The lowest versions that pyproject.toml allows on a device, as requirements for pip: .ci/lowest.py

CI installs them with the lowest Python and runs the device tests on them, so that every lower bound is a tested one.
Needs Python 3.11 or tomli.
"""

from __future__ import annotations

import re
from pathlib import Path

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

PROJECT = Path(__file__).resolve().parents[1] / "pyproject.toml"


def lowest(requirement: str) -> str:
    """``name>=1.2; marker`` as ``name==1.2.*; marker``: the first release line that is allowed."""
    name, version, marker = re.fullmatch(r"([\w.-]+)>=([\d.]+)(;.*)?", requirement.replace(" ;", ";")).groups()  # type: ignore[union-attr]
    exact = version if version.count(".") > 1 else f"{version}.*"
    return f"{name}=={exact}{marker or ''}"


def main() -> None:
    """Print a line a requirement."""
    for requirement in tomllib.loads(PROJECT.read_text("utf-8"))["project"]["dependencies"]:
        print(lowest(requirement))


if __name__ == "__main__":
    main()

"""Versions and hashes of all a device needs, as requirements for ``pip install --require-hashes``: .ci/lock.py [FOLDER]

Resolved by pip for the Python and the machine it runs on, from wheels alone; nothing is installed. One file for each:
``requirements/device-x86_64-py311.txt``. Needs pip 23.2 or newer, in the environment of the Python that runs this.
"""

from __future__ import annotations

import json
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
WHAT = f"{ROOT}[sign]"
HEAD = """# Made by .ci/lock.py (make lock): all a device needs, with hashes. Python {version} on {system}, {machine}.
# Install: pip install --require-hashes -r {file} && pip install --no-deps ptedge-*.whl
"""


def resolve() -> list[dict[str, Any]]:
    """What pip would install, as its report has it."""
    quiet = ["--quiet", "--disable-pip-version-check", "--no-input"]
    command = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", *quiet]
    done = subprocess.run(
        [*command, "--only-binary", ":all:", "--report", "-", WHAT], stdout=subprocess.PIPE, text=True, check=True
    )
    found: list[dict[str, Any]] = json.loads(done.stdout)["install"]
    return found


def line(package: dict[str, Any]) -> str:
    """One package with the hash of the wheel that fits here."""
    about, hashes = package["metadata"], package["download_info"]["archive_info"]["hashes"]
    name = re.sub(r"[-_.]+", "-", about["name"]).lower()
    return f"{name}=={about['version']} \\\n    --hash=sha256:{hashes['sha256']}\n"


def main() -> None:
    """Write the file and name it."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "requirements"
    version = platform.python_version()
    machine, short = platform.machine(), f"py{sys.version_info.major}{sys.version_info.minor}"
    file = folder / f"device-{machine}-{short}.txt"
    packages = [package for package in resolve() if package["metadata"]["name"] != "ptedge"]
    head = HEAD.format(version=version, machine=machine, system=platform.system(), file=f"requirements/{file.name}")
    folder.mkdir(parents=True, exist_ok=True)
    file.write_text(head + "".join(sorted(map(line, packages))), "utf-8")
    print(f"{file}: {len(packages)} packages")


if __name__ == "__main__":
    main()

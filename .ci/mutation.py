"""Change the rules one small edit at a time with mutmut and count what the tests notice; docs/development.md.

    python .ci/mutation.py           a fresh copy, a sample of the edits of each file
    python .ci/mutation.py NAME...   these edits again, with the tests as they are now

mutmut takes the folder of a file for the name of its package, which is so in the wheel but not in this repository
(training/ is ptedge.training). So it works on a copy in the layout of the wheel, with the tests beside it:
build/mutation/src/ptedge/training/... Which files are changed and which tests run: pyproject.toml, [tool.mutmut].
"""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "build" / "mutation"
SAMPLE = 25  # edits of a file at most, drawn with seed 0: all of them take hours
PASSED, NO_TEST = 0, 33  # mutmut's exit codes of an edit that nobody noticed


def copy_in_wheel_layout() -> None:
    """The packages under ``src``."""
    shutil.rmtree(FOLDER, ignore_errors=True)
    with (ROOT / "pyproject.toml").open("rb") as file:
        places = tomllib.load(file)["tool"]["setuptools"]["package-dir"]
    for package, place in places.items():
        target = FOLDER / "src" / Path(*package.split("."))
        shutil.copytree(ROOT / place, target, ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)


def copy_tests() -> None:
    """The tests as they are now; which of them reach what is found out anew."""
    shutil.rmtree(FOLDER / "tests", ignore_errors=True)
    shutil.copytree(ROOT / "tests", FOLDER / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy2(ROOT / "pyproject.toml", FOLDER)
    (FOLDER / "mutants" / "mutmut-stats.json").unlink(missing_ok=True)


def try_edits(names: Iterable[str]) -> None:
    """Run the tests on these edits, one process at a time."""
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    words = [sys.executable, "-m", "mutmut", "run", "--max-children", "1", *names]
    subprocess.run(words, cwd=FOLDER, env=environment, check=True)


def exit_codes() -> dict[str, dict[str, int | None]]:
    """Of the tests on each edit, by file; ``None`` where it was not tried."""
    source = FOLDER / "mutants" / "src"
    found = {}
    for path in sorted(source.rglob("*.meta")):
        codes = json.loads(path.read_text(encoding="utf-8"))["exit_code_by_key"]
        if codes:
            found[path.relative_to(source).with_suffix("").as_posix()] = codes
    return found


def sample() -> list[str]:
    """Names of the edits to try."""
    names: list[str] = []
    for codes in exit_codes().values():
        names += random.Random(0).sample(sorted(codes), min(SAMPLE, len(codes)))
    return names


def report() -> None:
    """Print the table and the names of edits that nobody noticed."""
    left: list[str] = []
    print("\n| file | edits | tried | noticed |\n|---|---|---|---|")
    for file, codes in exit_codes().items():
        tried = {name: code for name, code in codes.items() if code is not None}
        passed = [name for name, code in tried.items() if code in (PASSED, NO_TEST)]
        left += passed
        print(f"| {file} | {len(codes)} | {len(tried)} | {len(tried) - len(passed)} |")
    print("\nnot noticed (in build/mutation, `mutmut show NAME` prints the edit):", *left, sep="\n")


def main(names: list[str]) -> None:
    """Try a sample of a fresh copy, or the edits of these names."""
    if not names:
        copy_in_wheel_layout()
    copy_tests()
    if not names:
        try_edits(["ptedge.boxes.x_box_area__mutmut_1"])  # the first run makes all edits, whichever it tries
        names = sample()
    try_edits(names)
    report()


if __name__ == "__main__":
    main(sys.argv[1:])

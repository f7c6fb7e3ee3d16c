"""Puts the type stubs of TensorRT where mypy finds them and Python does not: python .ci/tensorrt_stubs.py [FOLDER]

``tensorrt-stubs`` cannot be an ordinary requirement: it asks for TensorRT itself (gigabytes), and its folder
``tensorrt`` would make ``import tensorrt`` succeed where there is none. And as published its text is not Python
everywhere: some methods of plugins have parameters called ``in`` or in an impossible order; those are repaired here.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

STUBS = "tensorrt-stubs==10.13.0.35.1"
FOLDER = Path(__file__).resolve().parents[1] / ".venv" / "stubs"


def repair(text: str) -> str:
    """The stub text with parameters that Python takes.

    Args:
        text: of a ``.pyi`` file.
    """
    text = re.sub(r"(?<=[(,] )in: |(?<=\()in: ", "in_: ", text)
    # the module has a value called bool (a DataType), which hides the type
    text = re.sub(r"(?<=: )bool\b|(?<=-> )bool\b", "builtins.bool", text)
    text = text.replace("import annotations\n", "import annotations\nimport builtins\n", 1)
    # sequences by length and item alone, which Python iterates over and mypy does not
    text = text.replace("class Dims:\n", "class Dims:\n    def __iter__(self) -> typing.Iterator[int]: ...\n", 1)
    # a parameter without default after one with default: give it one
    return re.sub(r"(?<= def )[^=\n]+=.+", _with_defaults, text)


def _with_defaults(definition: re.Match[str]) -> str:
    head, _, tail = definition.group().partition("=")
    return head + "=" + re.sub(r"(, \w+: [\w.\[\]]+)(?=[,)])", r"\1 = ...", tail)


def main() -> None:
    """Install the stubs into the folder and repair them."""
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else FOLDER
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, "--no-deps", "--upgrade", "--target", str(folder), STUBS], check=True)
    for path in (folder / "tensorrt_bindings").glob("*.pyi"):
        path.write_text(repair(path.read_text("utf-8")), "utf-8")


if __name__ == "__main__":
    main()

"""``ptedge inspect`` of every hostile file: an answer or one sentence, in bounded memory, and none hangs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hostile_files import HOSTILE, make_all

MOST_MB = 500
# all in one process, with a limit that a bomb would meet; what each said goes out as JSON
PROGRAM = """
import json, resource, sys
from pathlib import Path
from click.testing import CliRunner
from ptedge.cli import cli
from ptedge.errors import PtedgeError
resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30))
found = {}
for path in map(Path, sys.argv[1:]):
    done = CliRunner().invoke(cli, ["inspect", str(path)])
    error = done.exception
    kind = "answer" if error is None else "sentence" if isinstance(error, PtedgeError) else repr(error)
    found[path.name] = [kind, str(error) if error is not None else done.stdout]
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10
print(json.dumps({"peak": peak, "found": found}))
"""
ANSWERED = {"far_memo.pt", "huge_dims.onnx", "other_version.engine", "sparse.engine"}
ANSWERED |= {"many_steps", "long_step", "many_frames"}


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    paths = make_all(tmp_path_factory.mktemp("hostile"))
    # started by a small process: one that has torch would pass its own peak on
    start = [sys.executable, "-c", "import subprocess, sys; subprocess.run(sys.argv[1:], check=True)"]
    command = [*start, sys.executable, "-c", PROGRAM, *map(str, paths.values())]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=120, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    for path in paths.values():  # half a gigabyte
        if path.is_file() and not path.is_symlink():
            path.unlink()
    assert done.returncode == 0, done.stderr[-2000:]
    document = json.loads(done.stdout)
    assert document["peak"] < MOST_MB
    assert not Path(paths["runs_code.pt"]).with_name("touched").exists()
    found: dict[str, list[str]] = document["found"]
    return found


@pytest.mark.parametrize("name", HOSTILE)
def test_inspect__hostile(said: dict[str, list[str]], name: str) -> None:
    kind, text = said[name]
    assert kind == ("answer" if name in ANSWERED else "sentence"), text[:500]
    assert len(text) < 4000
    assert kind == "answer" or (name in text and "\n" not in text)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("pipe.onnx", "it is a pipe, not a file"),
        ("zeros.pt", "it is a device, not a file"),
        ("loop.pt", "symbolic links"),
        ("compressed.pt", "is compressed, which torch does not do"),
        ("many_entries.pt", "20000 are the most"),
        ("torchscript.pt", "it is a program (TorchScript), not weights"),
        ("runs_code.pt", "more than tensors and plain values"),
        ("huge_shape.pt", "a tensor of shape [1099511627776, 2] with 1 numbers"),
        ("nested_key.pt", "instructions"),
        ("many_fields.onnx", "more fields than a model needs"),
        ("external_data.onnx", "keeps weights in other files"),
        ("million_classes", "more than 4 MB"),
        ("deep_manifest", "nested too deep"),
        ("many_frames", "only the first 50000 lines"),
    ],
)
def test_inspect__says_what_is_wrong(said: dict[str, list[str]], name: str, words: str) -> None:
    assert words in said[name][1]

"""The worker's life and death, on small programs."""

from __future__ import annotations

import sys

import pytest

from ptedge.errors import BackendError
from ptedge.export.engine.process import run_worker


def _child(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def test_run_worker__steps_are_told_and_the_result_returned() -> None:
    told: list[str] = []
    code = "import json,sys; job=json.load(open(sys.argv[1])); print('a library speaks'); print(json.dumps({'step': job['what']})); print(json.dumps({'done': {'seconds': 1.5}}))"  # fmt: skip  # noqa: E501
    assert run_worker({"what": "choosing kernels"}, told.append, _child(code)) == {"seconds": 1.5}
    assert len(told) == 1
    assert told[0].endswith("choosing kernels")


@pytest.mark.parametrize(
    ("code", "words"),
    [
        ('print(\'{"error": "TensorRT cannot read the model: node 3"}\'); exit(1)', "cannot read the model: node 3"),
        ("import os; os.kill(os.getpid(), 9)", "was killed after .* memory ran out.*--workspace"),
        ("import os; os.kill(os.getpid(), 11)", "ended with signal SIGSEGV"),
        ("import sys; print('CUDA error 2', file=sys.stderr); exit(3)", "ended with status 3: CUDA error 2"),
        ("pass", "ended with status 0: it said nothing"),
    ],
)
def test_run_worker__failures_are_explained(code: str, words: str) -> None:
    with pytest.raises(BackendError, match=words):
        run_worker({}, lambda line: None, _child(code))

"""The report of a verification: table, JSON, and what to do."""

from __future__ import annotations

from pathlib import Path

from ptedge.export.verify.check import BundleCheck
from ptedge.export.verify.report import failure, to_document, to_lines

CHECKS = [
    BundleCheck("files", True, "match"),
    BundleCheck("tensorrt", True, "not compared: no engine", judged=False, backend="tensorrt"),
    BundleCheck("onnxruntime cpu, black", False, "2 differ", backend="cpu"),
]


def test_to_lines__columns() -> None:
    assert to_lines(CHECKS) == [
        "ok    files                   match",
        "--    tensorrt                not compared: no engine",
        "FAIL  onnxruntime cpu, black  2 differ",
    ]


def test_to_document__as_it_has_always_been() -> None:
    assert to_document(CHECKS[:2], Path("b"), None, "limits") == {
        "bundle": "b",
        "against": None,
        "passed": True,
        "limits": "limits",
        "checks": [
            {"check": "files", "passed": True, "judged": True, "detail": "match"},
            {"check": "tensorrt", "passed": True, "judged": False, "detail": "not compared: no engine"},
        ],
    }
    assert not to_document(CHECKS, Path("b"), Path("m.pt"), "")["passed"]


def test_failure__the_repair_is_that_of_the_backend() -> None:
    assert failure(CHECKS, Path("b"), Path("m.pt")) == (
        "b fails 1 of 3 checks, first: onnxruntime cpu, black (2 differ). Write it again: ptedge export m.pt --out b"
    )
    engine = BundleCheck("a name that says nothing", False, "off", backend="tensorrt")
    assert "Build it again: ptedge build b --force" in failure([engine], Path("b"), None)

"""The report of a verification: table, JSON, and what to do."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from ptedge.export.verify.check import BundleCheck
from ptedge.export.verify.report import compared_detections, failure, nothing_compared, to_document, to_lines

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


COMPARED = BundleCheck("cuda against cpu", True, "agree", backend="cuda", compared=6)


def test_to_document__what_was_checked_and_compared() -> None:
    assert to_document([*CHECKS[:2], COMPARED], Path("b"), None, "limits") == {
        "bundle": "b",
        "against": None,
        "passed": True,
        "compared_detections": 6,
        "compared_nothing": None,
        "limits": "limits",
        "checks": [
            {"check": "files", "passed": True, "judged": True, "detail": "match"},
            {"check": "tensorrt", "passed": True, "judged": False, "detail": "not compared: no engine"},
            {"check": "cuda against cpu", "passed": True, "judged": True, "detail": "agree"},
        ],
    }
    assert not to_document([*CHECKS, COMPARED], Path("b"), Path("m.pt"), "")["passed"]


def test_to_document__nothing_compared_has_not_passed() -> None:
    document = to_document(CHECKS[:2], Path("b"), None, "")
    assert (document["passed"], document["compared_detections"]) == (False, 0)
    assert document["compared_nothing"] == "b: nothing was compared, as no backend runs here. The lines above say why"


def test_compared_detections__of_judged_comparisons() -> None:
    told = replace(COMPARED, judged=False, compared=100)
    assert compared_detections([*CHECKS, COMPARED, told, replace(COMPARED, compared=2)]) == 8


def test_nothing_compared__says_what_would_help() -> None:
    def words(*checks: BundleCheck) -> str:
        return nothing_compared(checks, Path("b")) or "something"

    cpu = BundleCheck("cpu, promises", True, "finite", backend="cpu")
    assert "only one backend ran (cpu), and no checkpoint. Build an engine for this device" in words(cpu, *CHECKS[:2])
    assert "Leave --backend out, which takes what is there, or compare with the checkpoint" in words(cpu)
    engine = replace(cpu, backend="tensorrt")
    assert words(engine).endswith("Let the CPU answer as well: ptedge verify b --backend cpu,tensorrt")
    assert "as an int8 bundle is judged on frames" in words(cpu, replace(COMPARED, judged=False))
    assert "as no image gave a detection that counts" in words(cpu, replace(COMPARED, compared=0))
    assert words(cpu, COMPARED, replace(COMPARED, compared=0)) == "something"
    assert words(cpu, replace(COMPARED, compared=0, passed=False)) == "something"  # it failed, which is told elsewhere


def test_failure__the_repair_is_that_of_the_backend() -> None:
    assert failure(CHECKS, Path("b"), Path("m.pt")) == (
        "b fails 1 of 3 checks, first: onnxruntime cpu, black (2 differ). Write it again: ptedge export m.pt --out b"
    )
    engine = BundleCheck("a name that says nothing", False, "off", backend="tensorrt")
    assert "Build it again: ptedge build b --force" in failure([engine], Path("b"), None)

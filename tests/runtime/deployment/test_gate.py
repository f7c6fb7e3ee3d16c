"""The gate: what it says of bundles that differ in one thing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from keys import key_pair
from made_deployments import frame, numbered_bundle
from tiny_model import ANSWER, tiny_bundle, tiny_manifest, tiny_onnx

from ptedge.artifacts.adaptation import AdaptationRecord
from ptedge.artifacts.bundle import open_bundle, sign_again
from ptedge.artifacts.estimate import LabelFreeEstimate
from ptedge.artifacts.signature import read_signing_key
from ptedge.artifacts.trust import Trust
from ptedge.backends.bundle_predictor import BundlePredictor
from ptedge.detections import Detections
from ptedge.errors import InputError
from ptedge.runtime.deployment.answers import check_answers, matched_share
from ptedge.runtime.deployment.check import GateCheck, failed, to_lines
from ptedge.runtime.deployment.gate import check_adaptation, check_estimate, run_gate, spread
from ptedge.runtime.deployment.options import GateOptions
from ptedge.runtime.deployment.speed import check_speed

QUICK = GateOptions(backend="cpu", threads=1, seconds=0)


def estimated(ap50: float, error: float) -> LabelFreeEstimate:
    return LabelFreeEstimate(10, 10, ap50, error, ap50, error, (0.1, 0.1, 0.1, 0.1))


def by_name(checks: list[GateCheck]) -> dict[str, GateCheck]:
    return {check.name: check for check in checks}


def test_run_gate__without_a_champion_nothing_is_compared(tmp_path: Path) -> None:
    checks = by_name(run_gate(open_bundle(numbered_bundle(tmp_path / "a", 0)), None, QUICK, print))
    assert list(checks) == ["signature", "classes", "answers", "speed", "champion", "adaptation", "estimate"]
    assert not failed(list(checks.values()))
    assert [name for name, check in checks.items() if check.judged] == ["answers"]


def test_run_gate__a_champion_that_cannot_be_loaded_keeps_nothing_out(tmp_path: Path) -> None:
    champion = numbered_bundle(tmp_path / "champion", 0)
    (champion / "model.onnx").write_bytes(b"broken")
    told: list[str] = []
    checks = by_name(run_gate(open_bundle(numbered_bundle(tmp_path / "a", 1)), champion, QUICK, told.append))
    assert not checks["classes"].judged
    assert "cannot be loaded" in checks["classes"].detail and "cannot be loaded" in told[-1]


def test_run_gate__signature_is_judged_with_trust(tmp_path: Path) -> None:
    private, public = key_pair(tmp_path)
    path = numbered_bundle(tmp_path / "a", 0)
    sign_again(open_bundle(path), read_signing_key(private))
    bundle = open_bundle(path, Trust.read([public]))
    options = GateOptions(backend="cpu", seconds=0, trust=(public,))
    check = by_name(run_gate(bundle, None, options, print))["signature"]
    assert check.judged and check.detail.startswith("signed by")


def test_check_answers__broken_promises_fail_and_speed_is_not_measured(tmp_path: Path) -> None:
    answer = {**ANSWER, "boxes": [[8, 16, 40, 48], [50, 10, 190, 30]]}  # beyond the input's 96 columns
    bundle = open_bundle(tiny_bundle(tmp_path / "a", tiny_onnx(answer)).path)
    checks = by_name(run_gate(bundle, None, QUICK, print))
    assert not checks["answers"].passed
    assert "black: a box is inverted or outside the input" in checks["answers"].detail
    assert "speed" not in checks


def test_check_answers__against_the_same_bundle_on_the_cpu(tmp_path: Path) -> None:
    one = BundlePredictor(numbered_bundle(tmp_path / "a", 0), "cpu", 1)
    moved = {**ANSWER, "boxes": [[8, 16, 40, 48], [5, 40, 45, 60]]}
    other = BundlePredictor(tiny_bundle(tmp_path / "b", tiny_onnx(moved)).path, "cpu", 1)
    assert check_answers(one, one, [frame()]).figures["matched"] == 1.0
    check = check_answers(one, other, [frame()])  # one of the two boxes is elsewhere
    assert not check.passed
    assert (check.figures["matched"], check.figures["sure"]) == (0.5, 4)


def test_matched_share__class_overlap_and_score_count() -> None:
    def found(boxes: list[list[float]], scores: list[float], labels: list[int]) -> Detections:
        n = len(boxes)
        return Detections(
            np.array(boxes, np.float32).reshape(-1, 4),
            np.array(scores, np.float32),
            np.array(labels),
            np.ones((n, 4), np.float32),
            np.zeros(n, np.float32),
        )

    one = found([[0, 0, 10, 10], [20, 0, 30, 10]], [0.9, 0.3], [0, 0])
    assert matched_share([one], [found([[0, 0, 10, 8]], [0.1], [0])]) == (1.0, 1)  # there, however unsure
    assert matched_share([one], [found([[0, 0, 10, 10]], [0.9], [1])]) == (0.0, 2)
    assert matched_share([one], [found([[0, 0, 10, 4]], [0.9], [0])]) == (0.0, 2)
    assert matched_share([Detections.empty()], [Detections.empty()]) == (1.0, 0)


class Clockwork(BundlePredictor):
    """Takes as long as it is told, by a clock that stands still otherwise."""

    seconds = 0.0
    now = 0.0

    def preprocess(self, images):  # type: ignore[no-untyped-def]
        Clockwork.now += self.seconds
        return super().preprocess(images)


@pytest.mark.parametrize(("seconds", "max_ms", "passed"), [(0.12, None, True), (0.13, None, False), (0.12, 110, False)])
def test_check_speed__by_ratio_and_by_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seconds: float, max_ms: float | None, passed: bool
) -> None:
    from ptedge.runtime.benchmark.measure import measure as really

    def measured(subjects, total, warm_up):  # type: ignore[no-untyped-def]
        return really(subjects, total, warm_up, clock=lambda: Clockwork.now, cpu=lambda: 0.0)

    monkeypatch.setattr("ptedge.runtime.deployment.speed.measure", measured)
    path = numbered_bundle(tmp_path / "a", 0)
    new, old = Clockwork(path, "cpu", 1), Clockwork(path, "cpu", 1)
    new.seconds, old.seconds = seconds, 0.10
    check = check_speed(new, old, [], GateOptions(seconds=2, max_ms=max_ms))
    assert check.passed is passed and check.judged
    assert check.figures["ratio"] == pytest.approx(seconds / 0.10, rel=1e-3)
    assert check.figures["p90_ms"] == pytest.approx(seconds * 1000, rel=1e-3)


def test_check_adaptation__ended_well_and_finds_as_much_again() -> None:
    def judged(**changes: object) -> GateCheck:
        values = {"steps": 100, "chosen": 90, "found_again": 1.0, "found_again_before": 1.0} | changes
        return check_adaptation(tiny_manifest(adaptation=AdaptationRecord(**values)))  # type: ignore[arg-type]

    assert judged().passed and judged().judged
    assert judged(found_again=0.9).passed
    assert not judged(found_again=0.89).passed
    assert judged(trips=("finite",)).passed  # it went on from an earlier state, and came to its end
    stopped = judged(trips=("finite",), stopped=True, chosen=0)
    assert not stopped.passed and "a guard ended the run" in stopped.detail
    assert stopped.figures["trips"] == 1.0
    assert not check_adaptation(tiny_manifest()).judged


def test_check_estimate__two_standard_errors() -> None:
    old = tiny_manifest(estimate=estimated(0.80, 0.03))
    # 2 * hypot(0.04, 0.03) = 0.1
    assert check_estimate(tiny_manifest(estimate=estimated(0.71, 0.04)), old, "").passed
    low = check_estimate(tiny_manifest(estimate=estimated(0.69, 0.04)), old, "")
    assert not low.passed and low.judged
    assert not check_estimate(tiny_manifest(), old, "").judged
    alone = check_estimate(tiny_manifest(estimate=estimated(0.1, 0.04)), tiny_manifest(), "")
    assert alone.passed and not alone.judged


def test_spread__over_all_there_is(tmp_path: Path) -> None:
    import cv2

    for number in range(11):
        cv2.imwrite(str(tmp_path / f"{number:02}.png"), np.full((4, 4, 3), number, np.uint8))
    assert [int(image[0, 0, 0]) for image in spread(str(tmp_path), 3)] == [0, 4, 8]
    with pytest.raises(InputError):
        spread(str(tmp_path / "none"), 3)


def test_to_lines__words_for_each_outcome() -> None:
    checks = [
        GateCheck("classes", True, "car"),
        GateCheck("speed", False, "slow"),
        GateCheck("answers", False, "odd", accepted=True),
        GateCheck("labels", True, "none", judged=False),
    ]
    assert [line.split()[0] for line in to_lines(checks)] == ["ok", "FAILED", "accepted", "-"]
    assert [check.name for check in failed(checks)] == ["speed"]

from __future__ import annotations

import contextlib
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scored_boxes import make_detections, make_sample

from ptedge.data.dataset import Sample
from ptedge.detections import Detections
from ptedge.scores.average_precision import (
    ClassMetrics,
    DetectionMetrics,
    average_precision_coco,
    average_precision_voc,
    evaluate_detections,
    match_detections,
)

NAMES = ("car", "person", "tram")


# --- slow references -----------------------------------------------------------------------------------------------


def area(b: list[float]) -> float:
    return max(0.0, b[2] - b[0]) * max(0.0, b[3] - b[1])


def common(a: list[float], b: list[float]) -> float:
    return area([max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])])


def reference_match(
    box: list[float], sample: Sample, label: int, threshold: float, taken: set[int]
) -> tuple[int | None, bool]:
    """The free box with the largest IoU, and whether an ignore box covers the detection."""
    best, best_iou, excused = None, threshold, False
    for k in range(len(sample.boxes)):
        if int(sample.labels[k]) != label or k in taken:
            continue
        truth = [float(v) for v in sample.boxes[k]]
        inside = common(box, truth)
        if sample.ignore[k]:
            excused = excused or (area(box) > 0 and inside / area(box) >= threshold)
        elif inside / (area(box) + area(truth) - inside) >= best_iou:
            best, best_iou = k, inside / (area(box) + area(truth) - inside)
    return best, excused


def reference_voc_ap(detections: list[Detections], samples: list[Sample], label: int, threshold: float) -> float | None:
    """Loops only, no numpy tricks: greedy matching, then the area under the envelope, step by step."""
    todo = [
        (float(found.scores[row]), image, row)
        for image, found in enumerate(detections)
        for row in range(len(found))
        if int(found.labels[row]) == label
    ]
    todo.sort(key=lambda t: -t[0])  # stable
    total = sum(int(s.labels[k]) == label and not bool(s.ignore[k]) for s in samples for k in range(len(s.boxes)))
    if total == 0:
        return None
    taken: list[set[int]] = [set() for _ in samples]
    curve = []  # (recall, precision)
    right = wrong = 0
    for _, image, row in todo:
        box = [float(v) for v in detections[image].boxes[row]]
        best, excused = reference_match(box, samples[image], label, threshold, taken[image])
        if best is not None:
            taken[image].add(best)
            right += 1
        elif excused:
            continue
        else:
            wrong += 1
        curve.append((right / total, right / (right + wrong)))
    result, before = 0.0, 0.0
    for i, (recall, _) in enumerate(curve):
        result += (recall - before) * max(p for _, p in curve[i:])
        before = recall
    return result


def reference_coco_ap(detections: list[Detections], samples: list[Sample]) -> dict[int, float]:
    """pycocotools, AP over all areas with at most 100 detections, by label; -1 for a class without boxes."""
    from pycocotools.coco import COCO
    from pycocotools.cocoeval import COCOeval

    def xywh(box: np.ndarray) -> list[float]:
        x1, y1, x2, y2 = (float(v) for v in box)
        return [x1, y1, x2 - x1, y2 - y1]

    annotations = []
    for image_id, sample in enumerate(samples, start=1):
        for box, label, ignore in zip(sample.boxes, sample.labels, sample.ignore, strict=True):
            w, h = xywh(box)[2:]
            annotations.append(
                {
                    "id": len(annotations) + 1,
                    "image_id": image_id,
                    "category_id": int(label) + 1,
                    "bbox": xywh(box),
                    "area": w * h,
                    "iscrowd": int(ignore),
                }
            )
    results = [
        {"image_id": image_id, "category_id": int(label) + 1, "bbox": xywh(box), "score": float(score)}
        for image_id, found in enumerate(detections, start=1)
        for box, label, score in zip(found.boxes, found.labels, found.scores, strict=True)
    ]
    with contextlib.redirect_stdout(io.StringIO()):
        coco = COCO()
        coco.dataset = {
            "info": {},
            "images": [{"id": i + 1, "width": 100, "height": 100} for i in range(len(samples))],
            "categories": [{"id": k + 1, "name": name} for k, name in enumerate(NAMES)],
            "annotations": annotations,
        }
        coco.createIndex()
        run = COCOeval(coco, coco.loadRes(results), "bbox")
        run.evaluate()
        run.accumulate()
    precision = run.eval["precision"][:, :, :, 0, 2]  # [T, R, K], all areas, 100 detections
    return {k: float(precision[:, :, k].mean()) for k in range(len(NAMES))}


# Boxes on a coarse grid: many ties in overlap and score, and exact arithmetic in every implementation.
coordinate = st.integers(0, 12).map(lambda v: float(v * 5))
side = st.integers(1, 8).map(lambda v: float(v * 5))
box = st.tuples(coordinate, coordinate, side, side).map(lambda b: [b[0], b[1], b[0] + b[2], b[1] + b[3]])
score = st.integers(1, 8).map(lambda v: v / 8)
label = st.integers(0, 1)
image = st.tuples(
    st.lists(st.tuples(box, score, label), max_size=8),
    st.lists(st.tuples(box, label, st.sampled_from([False, False, False, True])), max_size=6),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(image, min_size=1, max_size=5))
def test_evaluate_detections__agrees_with_pycocotools_and_a_slow_voc_reference(images: list) -> None:
    detections = [make_detections(found) for found, _ in images]
    samples = [make_sample(truth, i) for i, (_, truth) in enumerate(images)]
    got = evaluate_detections(detections, samples, NAMES)
    if sum(map(len, detections)):  # pycocotools cannot load an empty list of results
        for k, expected in reference_coco_ap(detections, samples).items():
            ap = got.per_class[NAMES[k]].ap
            assert (-1.0 if ap is None else ap) == pytest.approx(expected, abs=1e-6)
    for k, name in enumerate(NAMES):
        for threshold, value in ((0.5, got.per_class[name].ap50), (0.75, got.per_class[name].ap75)):
            assert value == pytest.approx(reference_voc_ap(detections, samples, k, threshold), abs=1e-9)


def test_evaluate_detections__agrees_with_pycocotools_on_jittered_boxes_and_over_100_detections() -> None:
    rng = np.random.default_rng(3)
    detections, samples = [], []
    for i in range(6):
        corner = rng.uniform(0, 60, (12, 2))
        truth = np.concatenate([corner, corner + rng.uniform(5, 40, (12, 2))], axis=1)
        copies = np.repeat(truth, 12, axis=0)
        boxes = copies + rng.normal(0, 2, copies.shape)
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1)
        rows = [(list(b), round(float(rng.uniform()), 2), 0) for b in boxes]  # 144 of one class: cut at 100
        detections.append(make_detections(rows))
        samples.append(make_sample([(list(b), 0, bool(rng.uniform() < 0.2)) for b in truth], i))
    got = evaluate_detections(detections, samples, NAMES)
    assert got.per_class["car"].ap == pytest.approx(reference_coco_ap(detections, samples)[0], abs=1e-6)
    assert 0.05 < (got.per_class["car"].ap or 0) < 0.95


@pytest.mark.parametrize("iou", [0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95])
def test_evaluate_detections__each_threshold_where_it_stands(iou: float) -> None:
    # a detection of 100 x h in a box of 100 x 100 has IoU h / 100: once at the threshold, once a little below
    sample = make_sample([([0, 0, 100, 100], 0, False)])
    for height, more in ((100 * iou, True), (100 * iou - 1, False)):
        got = evaluate_detections([make_detections([([0, 0, 100, height], 0.5, 0)])], [sample], ("car",))
        passed = sum(height / 100 >= t - 1e-9 for t in (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9, 0.95))
        assert got.ap == pytest.approx(passed / 10)
        assert got.ap50 == (1.0 if iou > 0.5 or more else 0.0)
        assert got.ap75 == (1.0 if iou > 0.75 or (iou == 0.75 and more) else 0.0)


def test_evaluate_detections__ap50_and_ap75_on_jittered_boxes() -> None:
    rng = np.random.default_rng(5)
    detections, samples = [], []
    for i in range(4):
        corner = rng.uniform(0, 60, (6, 2))
        truth = np.concatenate([corner, corner + rng.uniform(10, 40, (6, 2))], axis=1)
        boxes = np.repeat(truth, 3, axis=0)
        boxes += rng.normal(0, 2.5, boxes.shape)
        boxes[:, 2:] = np.maximum(boxes[:, 2:], boxes[:, :2] + 1)
        detections.append(make_detections([(list(b), float(rng.uniform()), 0) for b in boxes]))
        samples.append(make_sample([(list(b), 0, False) for b in truth], i))
    got = evaluate_detections(detections, samples, NAMES)
    expected = [reference_voc_ap(detections, samples, 0, threshold) for threshold in (0.5, 0.70, 0.75)]
    assert [got.ap50, got.ap75] == pytest.approx([expected[0], expected[2]])
    assert len(set(expected)) == 3  # another threshold would have been seen


def test_evaluate_detections__of_each_class_the_best_hundred_in_an_image() -> None:
    sample = make_sample([([0, 0, 10, 10], 0, False)])
    wrong = [([50, 50, 60, 60], 0.9, 0)] * 99
    for count, expected in ((99, 0.01), (100, 0.0)):
        rows = [([50, 50, 60, 60], 0.9, 0)] * count + [([0, 0, 10, 10], 0.1, 0)]
        got = evaluate_detections([make_detections(rows)], [sample], ("car",))
        assert got.ap50 == pytest.approx(expected)
    # another class has a hundred of its own
    two = make_sample([([0, 0, 10, 10], 0, False), ([0, 0, 10, 10], 1, False)])
    rows = [*wrong, ([50, 50, 60, 60], 0.9, 0), ([0, 0, 10, 10], 0.1, 1)]
    assert evaluate_detections([make_detections(rows)], [two], ("car", "person")).per_class["person"].ap50 == 1.0


def test_evaluate_detections__overall_is_the_mean_of_classes_with_boxes() -> None:
    sample = make_sample([([0, 0, 10, 10], 0, False), ([20, 0, 30, 10], 0, False), ([0, 20, 10, 30], 1, False)])
    found = make_detections([([0, 0, 10, 10], 0.9, 0)])
    got = evaluate_detections([found], [sample], ("car", "person", "tram"))
    assert (got.ap50, got.ap75, got.ap) == pytest.approx((0.25, 0.25, 51 / 101 / 2))
    assert (got.boxes, got.per_class["car"].boxes, got.per_class["tram"].boxes) == (3, 2, 0)


def test_evaluate_detections__an_ignore_region_excuses_by_the_detections_own_area() -> None:
    # of the second detection 60 % lie in the region: excused at 0.5, 0.55 and 0.6, wrong from 0.65 on
    sample = make_sample([([0, 0, 10, 10], 0, False), ([50, 0, 90, 90], 0, True)])
    found = make_detections([([44, 0, 54, 15], 0.9, 0), ([46, 20, 56, 30], 0.9, 0), ([0, 0, 10, 10], 0.5, 0)])
    got = evaluate_detections([found], [sample], ("car",))
    assert got.ap50 == pytest.approx(1 / 2)  # the first, with 40 %, is wrong; the second excused
    assert got.ap75 == pytest.approx(1 / 3)
    assert got.ap == pytest.approx((3 / 2 + 7 / 3) / 10)


def test_evaluate_detections__by_hand() -> None:
    # car: box A found exactly (0.9), a false alarm (0.8), box B found with IoU 0.6 (0.7); person: nothing to find
    samples = [make_sample([([0, 0, 10, 10], 0, False), ([50, 50, 60, 60], 0, False)])]
    found = [
        make_detections([([0, 0, 10, 10], 0.9, 0), ([80, 80, 90, 90], 0.8, 0), ([50, 50, 60, 56], 0.7, 0)]),
    ]
    got = evaluate_detections(found, samples, ("car", "person"))
    assert (got.images, got.boxes) == (1, 2)
    # precision 1, 1/2, 2/3 at recall 1/2, 1/2, 1: area 1/2 * 1 + 1/2 * 2/3
    assert got.per_class["car"].ap50 == pytest.approx(5 / 6)
    assert got.per_class["car"].ap75 == pytest.approx(0.5)
    # recall 0..0.50 is 51 of the 101 points
    low = (51 + 50 * 2 / 3) / 101  # IoU 0.50, 0.55, 0.60
    assert got.per_class["car"].ap == pytest.approx((3 * low + 7 * 51 / 101) / 10)
    assert got.per_class["person"].ap50 is None
    assert got.ap50 == got.per_class["car"].ap50
    assert got.to_json()["per_class"]["person"] == {"AP50": None, "AP75": None, "AP": None, "boxes": 0}


def test_evaluate_detections__images_without_objects_count_and_their_detections_are_wrong() -> None:
    samples = [make_sample([([0, 0, 10, 10], 0, False)], 1), make_sample([], 2)]
    found = [make_detections([([0, 0, 10, 10], 0.5, 0)]), make_detections([([0, 0, 10, 10], 0.9, 0)])]
    got = evaluate_detections(found, samples, ("car",))
    assert got.images == 2
    assert got.ap50 == pytest.approx(0.5)


def test_evaluate_detections__an_ignore_region_for_every_class_excuses_each_of_them() -> None:
    sample = make_sample([([0, 0, 10, 10], 0, False), ([0, 20, 10, 30], 1, False), ([50, 50, 90, 90], -1, True)])
    found = make_detections(
        [
            ([60, 60, 70, 70], 0.9, 0),
            ([60, 60, 70, 70], 0.9, 1),
            ([0, 0, 10, 10], 0.5, 0),
            ([0, 20, 10, 30], 0.5, 1),
        ]
    )
    got = evaluate_detections([found], [sample], ("car", "person"))
    assert (got.boxes, got.ap50, got.ap) == (2, 1.0, 1.0)


def test_evaluate_detections__nothing_at_all_gives_none() -> None:
    got = evaluate_detections([], [], ("car",))
    assert (got.images, got.boxes, got.ap50, got.ap) == (0, 0, None, None)


def test_evaluate_detections__no_detections_gives_zero() -> None:
    got = evaluate_detections([Detections.empty()], [make_sample([([0, 0, 5, 5], 0, False)])], ("car",))
    assert (got.ap50, got.ap75, got.ap) == (0.0, 0.0, 0.0)


def test_evaluate_detections__lists_of_unequal_length_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        evaluate_detections([Detections.empty()], [], ("car",))


def test_match_detections__pairs_boxes_with_their_sigma() -> None:
    sample = make_sample([([0, 0, 10, 10], 1, False), ([20, 0, 30, 10], 0, False), ([40, 0, 50, 10], 0, True)])
    found = make_detections(
        [([20, 0, 30, 8], 0.9, 0), ([0, 0, 10, 10], 0.8, 0), ([40, 0, 50, 10], 0.7, 0), ([0, 0, 10, 9], 0.6, 1)]
    )
    got = match_detections([found, Detections.empty()], [sample, make_sample([])], 2)
    assert got.boxes.tolist() == [[20, 0, 30, 8], [0, 0, 10, 9]]
    assert got.truth.tolist() == [[20, 0, 30, 10], [0, 0, 10, 10]]
    assert got.iou.tolist() == pytest.approx([0.8, 0.9])
    assert got.scores.tolist() == pytest.approx([0.9, 0.6])
    assert got.sigma.shape == (2, 4)


def test_match_detections__no_images() -> None:
    got = match_detections([], [], 3)
    assert len(got) == 0
    assert got.boxes.shape == got.truth.shape == got.sigma.shape == (0, 4)
    assert got.scores.shape == got.iou.shape == (0,)


def test_to_json__every_value_under_its_name() -> None:
    car = ClassMetrics(ap50=0.5, ap75=0.25, ap=0.125, boxes=3)
    got = DetectionMetrics(images=7, boxes=4, ap50=0.75, ap75=0.375, ap=0.2, per_class={"car": car}).to_json()
    assert got == {
        "images": 7,
        "boxes": 4,
        "AP50": 0.75,
        "AP75": 0.375,
        "AP": 0.2,
        "per_class": {"car": {"AP50": 0.5, "AP75": 0.25, "AP": 0.125, "boxes": 3}},
    }


def test_average_precision__by_hand() -> None:
    hits = np.array([True, False, True])
    # three boxes, of which one is never found: recall 1/3, 1/3, 2/3; envelope 1, 2/3, 2/3
    assert average_precision_voc(hits, 3) == pytest.approx(1 / 3 + 1 / 3 * 2 / 3)
    # points 0..0.33 (34) at 1, 0.34..0.66 (33) at 2/3
    assert average_precision_coco(hits, 3) == pytest.approx((34 + 33 * 2 / 3) / 101)


def test_average_precision__edges() -> None:
    none = np.zeros(0, bool)
    assert average_precision_voc(none, 0) is None
    assert average_precision_coco(none, 0) is None
    assert average_precision_voc(none, 4) == 0.0
    assert average_precision_coco(none, 4) == 0.0

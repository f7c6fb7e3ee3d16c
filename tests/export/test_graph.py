"""The static graph answers as the eager detector does."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch
from spread_detector import CONFIG, make_model, noise
from torch import Tensor

from ptedge.detector.config import ROI_WEIGHTS, RPN_WEIGHTS
from ptedge.detector.gaussian import decode
from ptedge.detector.model import ProbabilisticFasterRCNN
from ptedge.export.graph import StaticGraph, StaticOutput
from ptedge.graph_contract import output_signature


def answer(model: ProbabilisticFasterRCNN, images: Tensor) -> StaticOutput:
    with torch.no_grad():
        output: StaticOutput = StaticGraph(model)(images)
    return output


def check_equal(model: ProbabilisticFasterRCNN, images: Tensor) -> int:
    """Compare row by row; returns how many detections there were."""
    got, total = answer(model, images), 0
    for i, eager in enumerate(model.detect(images)):
        n = int(got.num_detections[i])
        assert n == len(eager.scores)
        assert got.converged[i] == 1
        torch.testing.assert_close(got.boxes[i, :n], eager.boxes, atol=1e-3, rtol=1e-4)
        torch.testing.assert_close(got.scores[i, :n], eager.scores, atol=1e-5, rtol=1e-4)
        torch.testing.assert_close(got.sigma[i, :n], eager.sigma, atol=1e-3, rtol=1e-4)
        torch.testing.assert_close(got.entropy[i, :n], eager.entropy, atol=1e-5, rtol=1e-4)
        assert got.labels[i, :n].tolist() == eager.labels.tolist()
        for value in (got.boxes, got.scores, got.labels, got.sigma, got.entropy):
            assert not value[i, n:].any()
        total += n
    return total


@pytest.mark.parametrize("num_classes", [1, 3])
@pytest.mark.parametrize("rule", ["class", "certainty"])
@pytest.mark.parametrize("sigma_rule", ["cluster", "own"])
def test_static_graph__agrees_with_eager(num_classes: int, rule: str, sigma_rule: str) -> None:
    model = make_model(replace(CONFIG, score_rule=rule, sigma_rule=sigma_rule), num_classes)
    assert check_equal(model, noise(2)) > 4


def test_static_graph__the_rule_of_sigma_changes_nothing_else() -> None:
    own, cluster = (answer(make_model(replace(CONFIG, sigma_rule=rule), 3), noise(2)) for rule in ("own", "cluster"))
    for name, value in own._asdict().items():
        assert torch.equal(value, getattr(cluster, name)) == (name != "sigma"), name


def test_static_graph__corrects_sides_as_eager_does() -> None:
    model = make_model()
    plain = answer(model, noise(1))
    model.set_sides((0.1, -0.2, 0.3, -0.05), (2.0, 1.0, 0.5, 3.0))
    assert check_equal(model, noise(2)) > 4
    assert not torch.equal(answer(model, noise(1)).boxes, plain.boxes)


def test_static_graph__light_head() -> None:
    model = make_model(replace(CONFIG, roi_channels=6, roi_hidden=24))
    assert model.roi_head.fc1.weight.shape == (24, 6 * 49)
    assert check_equal(model, noise(2)) > 4


def test_static_graph__portrait_input() -> None:
    model = make_model(replace(CONFIG, input_size=(128, 80)))
    assert check_equal(model, noise(1, (128, 80))) > 0


def test_static_graph__vanilla_detector_has_no_sigma() -> None:
    model = make_model(replace(CONFIG, probabilistic=False))
    images = noise(1)
    assert check_equal(model, images) > 0
    assert not answer(model, images).sigma.any()


def test_static_graph__more_objects_than_slots() -> None:
    model = make_model(replace(CONFIG, max_detections=3, score_threshold=0.0))
    assert check_equal(model, noise(1)) == 3


def test_static_graph__nothing_above_the_threshold() -> None:
    model = make_model(replace(CONFIG, score_threshold=1.0))
    assert check_equal(model, noise(1)) == 0


def test_static_graph__fewer_pairs_than_slots_are_padded() -> None:
    model = make_model(replace(CONFIG, rpn_test_top_n=(20, 10), max_detections=50))
    assert answer(model, noise(1)).boxes.shape == (1, 50, 4)
    assert check_equal(model, noise(1)) > 0


def test_static_graph__rows_that_the_proposals_leave_over_take_no_part() -> None:
    # NMS at 0.1 leaves fewer proposals than the 40 slots; what fills the others would give detections of its own
    model, images = make_model(replace(CONFIG, rpn_nms=0.1)), noise(2)
    with torch.no_grad():
        graph = StaticGraph(model)
        _, alive, _ = graph.propose(*graph.score_anchors(model.features(images)))
    eager = [len(found) for found in model(images).proposals]
    assert alive.sum(1).tolist() == eager and 0 < max(eager) < 40
    assert alive.sort(descending=True).values.equal(alive)  # those that are left over come last
    assert check_equal(model, images) > 0


def test_static_graph__boxes_thrown_off_the_image_take_no_slot() -> None:
    model, images = make_model(replace(CONFIG, max_detections=60)), noise(2)
    with torch.no_grad():
        model.roi_head.deltas.bias[0] = 12.0  # 1.2 widths to the right: beyond the border for proposals there
        outputs = model(images)
        moved = decode(
            model.roi(outputs.features, outputs.proposals).deltas[:, 0], torch.cat(outputs.proposals), ROI_WEIGHTS
        )
    outside = moved[:, 0] >= 128
    assert outside.any() and not outside.all()
    assert check_equal(model, images) > 0


def test_static_graph__anchors_thrown_off_the_image_are_no_proposals() -> None:
    model, images = make_model(), noise(2)
    with torch.no_grad():
        model.rpn_head.deltas.bias[0::4] = 1.5  # 1.5 widths to the right
        outputs, graph = model(images), StaticGraph(model)
        proposals, alive, _ = graph.propose(*graph.score_anchors(outputs.features))
    assert (decode(outputs.rpn.deltas, outputs.rpn.anchors, RPN_WEIGHTS)[..., 0] >= 128).any()
    for found, own, taking_part in zip(outputs.proposals, proposals, alive > 0, strict=True):
        torch.testing.assert_close(own[taking_part], found)
    assert check_equal(model, images) > 0


@pytest.mark.parametrize(("first", "both"), [(0.0, 0), (1.0, 1)])
def test_static_graph__converged_speaks_of_the_proposals_too(first: float, both: int) -> None:
    model, images = make_model(), noise(2)
    with torch.no_grad():
        graph, features = StaticGraph(model), model.features(images)
        proposals, alive, converged = graph.propose(*graph.score_anchors(features))
        assert converged.tolist() == [1.0, 1.0]
        output = graph.detect(graph.classify(features, proposals), proposals, alive, torch.tensor([1.0, first]))
    assert output.converged.tolist() == [1, both]


def test_static_graph__too_few_rounds_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ptedge.export.graph.PROPOSAL_ROUNDS", 1)
    monkeypatch.setattr("ptedge.export.graph.ROUNDS", 1)
    model = make_model()
    with torch.no_grad():
        graph, features = StaticGraph(model), model.features(noise(1))
        proposals, alive, converged = graph.propose(*graph.score_anchors(features))
        assert converged.tolist() == [0.0]  # 150 anchors that overlap
        assert graph.detect(
            graph.classify(features, proposals), proposals, alive, torch.ones(1)
        ).converged.tolist() == [0]


def test_static_graph__names_shapes_and_types_are_those_of_the_contract() -> None:
    model = make_model()
    found = {name: value.numpy() for name, value in answer(model, noise(2))._asdict().items()}
    expected = output_signature(2, model.config.max_detections)
    assert list(found) == list(expected)
    assert {name: (value.shape, value.dtype) for name, value in found.items()} == expected


def test_static_graph__another_input_size_uses_the_same_weights() -> None:
    model = make_model()
    with torch.no_grad():
        got = StaticGraph(model, (128, 160))(noise(1, (128, 160)))
    moved = make_model(replace(CONFIG, input_size=(128, 160)))
    moved.load_state_dict(model.state_dict())
    expected = moved.detect(noise(1, (128, 160)))[0]
    torch.testing.assert_close(got.boxes[0, : len(expected.boxes)], expected.boxes, atol=1e-3, rtol=1e-4)


def test_static_graph__leaves_the_model_unchanged() -> None:
    model = make_model()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    trainable = {name: p.requires_grad for name, p in model.named_parameters()}
    answer(model, noise(1))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    assert {name: p.requires_grad for name, p in model.named_parameters()} == trainable

"""Data as it comes in the field: empty, tiny, broken, black, of every size and depth. Runs end well, all is finite."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from tiny_detector import HEIGHT, WIDTH
from training_shell import Shell, lines, summary

from ptedge.artifacts.checkpoint import load_checkpoint, save_checkpoint

Boxes = Sequence[tuple[int, Sequence[float | None]]]  # class, COCO's x, y, width, height


def picture(height: int = HEIGHT, width: int = WIDTH, seed: int = 0) -> NDArray[np.uint8]:
    """Noise with a bright rectangle in the middle."""
    image = np.random.default_rng(seed).integers(80, 140, (height, width, 3), dtype=np.uint8)
    image[height // 4 : 3 * height // 4, width // 4 : 3 * width // 4] = (30, 60, 220)
    return image


def write_data(
    folder: Path, images: Sequence[NDArray[Any]], boxes: Sequence[Boxes], names: Sequence[str] = ("car", "person")
) -> Path:
    """A COCO file with ``images`` beside it."""
    (folder / "images").mkdir(parents=True)
    documents: dict[str, list[dict[str, Any]]] = {"images": [], "annotations": []}
    for i, (image, of_image) in enumerate(zip(images, boxes, strict=True)):
        name = f"{i:02d}.png"
        assert cv2.imwrite(str(folder / "images" / name), image)
        size = {"width": image.shape[1], "height": image.shape[0]}
        documents["images"].append({"id": i, "file_name": name, **size})
        for label, box in of_image:
            number = len(documents["annotations"])
            entry = {"id": number, "image_id": i, "category_id": label + 1, "bbox": list(box), "iscrowd": 0}
            documents["annotations"].append(entry)
    categories = [{"id": k + 1, "name": name} for k, name in enumerate(names)]
    path = folder / "data.json"
    path.write_text(json.dumps({**documents, "categories": categories}), "utf-8")  # NaN as Python and others write it
    return path


def check_run(result: tuple[int, str], run: Path, steps: int) -> str:
    """The run is whole, all its numbers and weights are finite; returns what it said."""
    status, err = result
    assert status == 0, err
    assert "Traceback" not in err and "Warning" not in err
    for line in lines(run):
        for key, value in line.items():
            if isinstance(value, float):
                assert math.isfinite(value), (key, line)
    assert lines(run)[-1]["step"] == steps == summary(run)["steps"]
    assert not any("guard" in line for line in lines(run))
    for name, tensor in load_checkpoint(run / "model.pt").state.items():
        assert tensor.isfinite().all(), name
    return err


MIDDLE = (24.0, 16.0, 48.0, 32.0)


@pytest.fixture
def train(ptedge: Shell, tmp_path: Path) -> Callable[..., str]:
    """Four steps of ``ptedge train``, checked."""

    def run(data: Path, *sets: str) -> str:
        return check_run(ptedge.train(data, tmp_path / "source", steps=4, sets=sets), tmp_path / "source", 4)

    return run


@pytest.fixture
def adapt(ptedge: Shell, tmp_path: Path) -> Callable[..., str]:
    """Four steps of ``ptedge adapt`` of what ``train`` made, checked; ``run`` is the folder's name."""

    def run(target: Path, *sets: str, source: Path | None = None, model: Path | None = None, name: str = "run") -> str:
        mode = ["--source-free"] if source is None else ["--source", source]
        start = model or tmp_path / "source" / "model.pt"
        result = ptedge.adapt(start, tmp_path / name, "--target", target, *mode, steps=4, sets=sets)
        return check_run(result, tmp_path / name, 4)

    return run


def test_source__most_batches_have_no_box(
    train: Callable[..., str], adapt: Callable[..., str], target_frames: Path, tmp_path: Path
) -> None:
    data = write_data(tmp_path / "data", [picture(seed=i) for i in range(6)], [[(0, MIDDLE)], *[[]] * 5])
    assert "6 images (5 without objects), 1 boxes" in train(data, "optim.batch=1")
    run = lines(tmp_path / "source")
    assert any(line["rpn_box"] == 0 and line["roi_box"] == 0 and line["loss"] > 0 for line in run)
    adapt(target_frames, "optim.batch=1", source=data)


def without_answers(model: Path, out: Path) -> Path:
    """The same checkpoint, but sure that everything is background: its pseudo boxes are none."""
    checkpoint = load_checkpoint(model)
    state = {name: tensor.clone() for name, tensor in checkpoint.state.items()}
    state["roi_head.logits.weight"].zero_()
    state["roi_head.logits.bias"][:] = torch.tensor([0.0, 0.0, 30.0])
    save_checkpoint(out, dataclasses.replace(checkpoint, state=state))
    return out


@pytest.mark.parametrize("batch_norm", ["batch", "frozen"])
def test_target__black_frames_without_any_pseudo_box(
    adapt: Callable[..., str], pretrained: Path, tmp_path: Path, batch_norm: str
) -> None:
    black = [np.zeros((HEIGHT, WIDTH, 3), np.uint8)] * 3
    frames = write_data(tmp_path / "black", black, [[]] * 3).parent / "images"
    model = without_answers(pretrained, tmp_path / "silent.pt")
    sets = ("optim.anchor_lr=0.1", "optim.weight_decay=0", "optim.momentum=0.9", f"batch_norm={batch_norm}")
    adapt(frames, *sets, model=model)
    run = lines(tmp_path / "run")
    assert all(line["pseudo_boxes"] == 0 and line["loss"] == 0 and line["grad_norm"] == 0 for line in run)
    assert run[0]["anchors"] == run[-1]["anchors"]
    before = load_checkpoint(model).state
    after = torch.load(tmp_path / "run" / "last.pt", weights_only=True)["student"]
    for name, tensor in before.items():
        if "running" not in name and "num_batches" not in name:  # statistics see black frames, weights stay
            torch.testing.assert_close(after[name], tensor, rtol=0, atol=0)


def test_target__no_pseudo_box_with_source(
    adapt: Callable[..., str], pretrained: Path, source_data: Path, tmp_path: Path
) -> None:
    frames = write_data(tmp_path / "black", [np.zeros((HEIGHT, WIDTH, 3), np.uint8)], [[]]).parent / "images"
    adapt(frames, "optim.anchor_lr=0.1", source=source_data, model=without_answers(pretrained, tmp_path / "silent.pt"))
    run = lines(tmp_path / "run")
    assert all(line["target_rpn_box"] == 0 and line["target_roi_cls"] == 0 for line in run)
    assert run[-1]["loss"] > 0 and run[0]["anchors"] == run[-1]["anchors"]  # source losses do not move anchors


def test_target__black_frames_among_others(
    train: Callable[..., str], adapt: Callable[..., str], tmp_path: Path
) -> None:
    images = [picture(), np.zeros((HEIGHT, WIDTH, 3), np.uint8), np.full((HEIGHT, WIDTH, 3), 255, np.uint8)]
    data = write_data(tmp_path / "data", images, [[(1, MIDDLE)], [(0, MIDDLE)], []])
    train(data)
    adapt(data.parent / "images", "optim.anchor_lr=0.01", source=data)


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("car", "bus", "person"), (0, 2)),  # bus has no box anywhere
        (("car",), (0,)),
        (tuple(f"class {k}" for k in range(80)), (0, 41, 79)),
    ],
    ids=["one never seen", "1", "80"],
)
def test_classes(
    train: Callable[..., str],
    adapt: Callable[..., str],
    tmp_path: Path,
    names: tuple[str, ...],
    labels: tuple[int, ...],
) -> None:
    images = [picture(seed=i) for i in range(3)]
    data = write_data(tmp_path / "data", images, [[(labels[i % len(labels)], MIDDLE)] for i in range(3)], names)
    low = "model.score_threshold=0.001"  # of 81 classes none gets far in four steps
    train(data, low)
    assert load_checkpoint(tmp_path / "source" / "model.pt").class_names == names
    adapt(data.parent / "images", source=data)
    adapt(data.parent / "images", "optim.anchor_lr=0.01", name="source_free")
    signals = next(line["monitor"] for line in reversed(lines(tmp_path / "source_free")) if "monitor" in line)
    assert lines(tmp_path / "source_free")[-1]["pseudo_boxes"] > 0
    assert signals["classes"] is None or len(signals["classes"]) == len(names)


@pytest.mark.parametrize("side", [1.0, 0.3])
def test_source__boxes_of_a_pixel(
    train: Callable[..., str], adapt: Callable[..., str], tmp_path: Path, side: float
) -> None:
    tiny = [(0, (20.0, 30.0, side, side)), (1, (95.0, 63.0, side, side)), (0, (0.0, 10.0, 96.0, side))]
    data = write_data(tmp_path / "data", [picture(seed=i) for i in range(3)], [tiny, [(1, MIDDLE)], tiny])
    assert "7 boxes" in train(data)
    adapt(data.parent / "images", source=data)


def test_source__degenerate_boxes_are_told_and_left_out(train: Callable[..., str], tmp_path: Path) -> None:
    nan = float("nan")
    bad: Boxes = [
        (0, (50, 40, -20, -10)),  # inverted
        (0, (50, 40, -20, 10)),
        (0, (50, 40, 0, 10)),  # no area
        (1, (nan, 40, 10, 10)),
        (1, (50, 40, nan, 10)),
        (1, (50, 40, float("inf"), 10)),
        (0, (200, 10, 10, 10)),  # outside
        (0, (-30, -30, 20, 20)),
        (0, (None, 1, 2, 3)),
    ]
    over = [(0, (-10.0, -10.0, 50.0, 50.0)), (1, (60.0, 30.0, 500.0, 500.0))]  # partly outside: cut
    data = write_data(tmp_path / "data", [picture(), picture(seed=1)], [[*bad, (0, MIDDLE)], over])
    err = train(data)
    assert "3 boxes of car, person; left out: 4 malformed box, 3 no area, 2 outside the image" in err


def test_source__only_degenerate_boxes_is_an_error(ptedge: Shell, tmp_path: Path) -> None:
    data = write_data(tmp_path / "data", [picture()], [[(0, (50, 40, 0, 0)), (0, (float("nan"), 1, 2, 3))]])
    status, err = ptedge.train(data, tmp_path / "run")
    assert status == 1 and "no box to learn from" in err and "1 malformed box" in err and "1 no area" in err


def test_images__of_all_sizes(train: Callable[..., str], adapt: Callable[..., str], tmp_path: Path) -> None:
    sizes = [(HEIGHT, WIDTH), (300, 20), (20, 300), (1, 1), (1, 400), (400, 1), (480, 640), (65, 97)]
    images = [picture(h, w, seed=i) for i, (h, w) in enumerate(sizes)]
    boxes = [[(i % 2, (w / 4, h / 4, w / 2, h / 2))] for i, (h, w) in enumerate(sizes)]
    data = write_data(tmp_path / "data", images, boxes)
    train(data)
    adapt(data.parent / "images", source=data)
    adapt(data.parent / "images", name="source_free")


def test_images__of_all_depths(train: Callable[..., str], adapt: Callable[..., str], tmp_path: Path) -> None:
    colour = picture()
    alpha = np.dstack([colour, np.full((HEIGHT, WIDTH), 128, np.uint8)])
    grey = cv2.cvtColor(colour, cv2.COLOR_BGR2GRAY)
    deep_grey, deep = grey.astype(np.uint16) * 257, colour.astype(np.uint16) * 257
    deep_alpha = alpha.astype(np.uint16) * 257
    images = [colour, alpha, grey, deep_grey, deep, deep_alpha]
    data = write_data(tmp_path / "data", images, [[(0, MIDDLE)]] * len(images))
    train(data)
    adapt(data.parent / "images", source=data)
    assert summary(tmp_path / "source")["skipped_images"] == {} == summary(tmp_path / "run")["skipped_images"]


def test_data__one_image_in_a_batch_of_three(
    train: Callable[..., str], adapt: Callable[..., str], tmp_path: Path
) -> None:
    data = write_data(tmp_path / "data", [picture()], [[(0, MIDDLE)]])
    train(data, "optim.batch=3")
    adapt(data.parent / "images", "optim.batch=3", source=data)
    adapt(data.parent / "images", "optim.batch=3", "teacher.adabn=true", name="source_free")

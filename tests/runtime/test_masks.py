from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest
from click.testing import CliRunner
from places import ROOT
from tiny_model import tiny_bundle

from ptedge.errors import ConfigError
from ptedge.runtime.cli import run
from ptedge.runtime.masks import Mask, Masks, read_masks

LEFT = ((0.0, 0.0), (0.5, 0.0), (0.5, 1.0), (0.0, 1.0))


def noise(height: int = 40, width: int = 81) -> np.ndarray:
    return np.random.default_rng(0).integers(1, 256, (height, width, 3), np.uint8)


def hide(image: np.ndarray, *masks: Mask) -> np.ndarray:
    hidden = Masks(masks).of("a", image)
    assert hidden is not None
    return hidden.hide(image)


def test_hide__fill_is_black_to_one_pixel_beyond_the_polygon() -> None:
    image = noise()
    before = image.copy()
    shown = hide(image, Mask(LEFT))  # x from 0 to 40 of 0 to 80
    assert (shown[:, :42] == 0).all() and (shown[:, 42:] == image[:, 42:]).all()
    assert (image == before).all()


def test_hide__blur_leaves_eight_by_eight_means_at_most() -> None:
    image = noise(200, 401)
    shown = hide(image, Mask(LEFT, "blur")).astype(float)
    assert (shown[:, 202:] == image[:, 202:]).all()
    # of noise from 1 to 255, each mean is of 25 x 25 pixels: its spread is 74 / 25; less between the means
    assert 1.5 < shown[:, :202].std() < 3 and abs(shown[:, :202].mean() - 128) < 2


def test_hide__a_small_blurred_place_has_one_colour() -> None:
    image = noise()
    shown = hide(image, Mask(((0.1, 0.1), (0.15, 0.1), (0.1, 0.2)), "blur"))
    changed = (shown != image).any(axis=2)
    assert 5 < changed.sum() < 80 and len(np.unique(shown[changed], axis=0)) == 1


def test_hide__one_pixel_of_a_picture_is_still_hidden() -> None:
    image = noise(1, 1)
    assert (hide(image, Mask(LEFT), Mask(LEFT, "blur")) == 0).all()


def test_of__each_source_has_its_own_and_those_of_all() -> None:
    masks = Masks([Mask(LEFT, source="a"), Mask(((0.9, 0.0), (1.0, 0.0), (1.0, 1.0)))])
    image = noise()
    a, b = masks.of("a", image), masks.of("b", image)
    assert a is not None and b is not None and a.everywhere[20, 10] and not b.everywhere[20, 10]
    assert a.everywhere[5, 80] and b.everywhere[5, 80]
    assert Masks([Mask(LEFT, source="a")]).of("b", image) is None
    assert masks.of("a", image) is a


def test_of__pictures_of_another_size_get_it_in_proportion() -> None:
    masks = Masks([Mask(LEFT)])
    for width in (81, 41, 81):
        hidden = masks.of("a", noise(width=width))
        assert hidden is not None and hidden.everywhere.sum() == 40 * (width // 2 + 2)


def test_covers__by_the_middle_of_a_box() -> None:
    hidden = Masks([Mask(LEFT)]).of("a", noise())
    assert hidden is not None
    boxes = np.array([[0, 0, 60, 10], [40, 0, 60, 10], [-50, -9, 10, 2], [70, 30, 99, 60]], np.float32)
    assert hidden.covers(boxes).tolist() == [True, False, True, False]
    assert hidden.covers(np.zeros((0, 4), np.float32)).shape == (0,)


def test_read_masks__pixels_are_those_of_the_size_given(tmp_path: Path) -> None:
    path = tmp_path / "masks.toml"
    path.write_text(
        'units = "pixels"\nsize = [200, 100]\n[[mask]]\nhow = "blur"\nsource = "gate"\n'
        "polygon = [[0, 0], [100, 0], [100, 50]]\n"
    )
    assert read_masks(path, ["yard", "gate"]).masks == [Mask(((0, 0), (0.5, 0), (0.5, 0.5)), "blur", "gate")]
    with pytest.raises(ConfigError, match="no source is called 'gate'; this run has yard"):
        read_masks(path, ["yard"])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "there is no mask"),
        ("[[mask]]\npolygon = [[0, 0], [1, 1]]\n", "polygon has 2 corners"),
        ("[[mask]]\npolygon = [[0, 0], [1, 1], [1.2, 0]]\n", r"x is 1.2; it must be at least 0 and at most 1"),
        ('[[mask]]\nhow = "pixelate"\npolygon = [[0, 0], [1, 1], [1, 0]]\n', "how is 'pixelate'"),
        ('units = "pixels"\n[[mask]]\npolygon = [[0, 0], [9, 9], [9, 0]]\n', "give both, or neither"),
        ("[[masks]]\n", r"unknown key 'masks'; did you mean 'mask'\?"),
    ],
)
def test_read_masks__says_what_is_wrong_and_where(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "masks.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        read_masks(path, ["a"])
    assert str(path) in str(caught.value)


def test_read_masks__the_sample() -> None:
    masks = read_masks(ROOT / "samples" / "deploy" / "masks.toml", ["a"])
    assert [mask.how for mask in masks.masks] == ["fill", "blur"]


def test_run__no_file_shows_what_is_masked_and_detection_sees_it(tmp_path: Path) -> None:
    bundle = tiny_bundle(tmp_path / "car.bundle").path
    (tmp_path / "frames").mkdir()
    for i in range(3):
        cv2.imwrite(str(tmp_path / "frames" / f"{i}.png"), noise(64, 96))
    masks = tmp_path / "masks.toml"
    masks.write_text("[[mask]]\npolygon = [[0, 0], [0.5, 0], [0.5, 1], [0, 1]]\n")
    words: list[object] = [bundle, tmp_path / "frames", "--save", "jsonl,images", "--draw-score", 1, "--seed", 1]
    words += ["--collect-random", 1, "--collect-interval", 0]
    run_cli([*words, "--out", tmp_path / "open"])
    run_cli([*words, "--out", tmp_path / "out", "--collect", tmp_path / "field", "--mask", masks])
    with pytest.raises(ConfigError, match="cannot read masks"):
        run_cli([*words, "--out", tmp_path / "not", "--mask", tmp_path / "absent.toml"])
    assert not (tmp_path / "not").exists()
    assert (tmp_path / "open" / "detections.jsonl").read_text() == (tmp_path / "out" / "detections.jsonl").read_text()
    pictures = [*(tmp_path / "out" / "images").iterdir(), *(tmp_path / "field" / "images").iterdir()]
    assert len(pictures) == 4  # three frames, and one of them, as they are alike
    for path in pictures:
        picture = cv2.imread(str(path))
        assert picture is not None and picture[:, :40].max() < 16 and picture[:, 56:].std() > 30


def run_cli(words: list[object]) -> None:
    result = CliRunner().invoke(run, [str(word) for word in words], standalone_mode=False)
    if result.exception is not None:
        raise result.exception

"""Weather and blur on pictures: what they do to values that can be worked out, and that a seed fixes the rest."""

import math

import numpy as np
import pytest

pytest.importorskip("kornia", reason="kornia is not installed: pip install 'ptedge[shift]'")

from ptedge.samples.effects import AIRLIGHT, EFFECTS, apply_effects, blur, fog, night, road_depth


def grey(value: float, height: int = 20, width: int = 32) -> np.ndarray:
    return np.full((height, width, 3), value, np.float32)


def test_road_depth__falls_with_the_rows_below_the_horizon() -> None:
    depth = road_depth(20, 3)
    assert depth.shape == (20, 3)
    assert depth[8].tolist() == [120.0] * 3  # its centre is at 0.425 of the height, above the horizon at 0.45
    # at 0.975 of the height: 6 m * 0.55 / 0.525
    assert depth[19, 0] == pytest.approx(6 * 0.55 / 0.525, rel=1e-5)


def test_fog__lies_between_the_densities_of_its_banks() -> None:
    foggy = fog(grey(0.0), 1.0)
    depth = road_depth(20, 32)
    for row in (12, 19):
        low, high = (1 - math.exp(-0.05 * share * depth[row, 0]) for share in (0.6, 1.4))
        assert (foggy[row, :, 0] >= AIRLIGHT[0] * low - 1e-5).all()
        assert (foggy[row, :, 0] <= AIRLIGHT[0] * high + 1e-5).all()


def test_night__mid_grey_falls_to_a_tenth_and_is_bluish() -> None:
    dark = night(grey(0.5, 200, 200), 1.0).mean(axis=(0, 1))
    # 0.5 ^ 1.8 * (1 - 0.6), and the tint; noise of 0.03 means out
    assert dark == pytest.approx(0.5**1.8 * 0.4 * np.array([0.75, 0.85, 1.0]), abs=2e-3)


def test_blur__leaves_the_light_and_spreads_an_edge() -> None:
    edge = grey(0.0, 40, 400)
    edge[:, 200:] = 1.0
    soft = blur(edge, 1.0)
    assert soft.mean() == pytest.approx(0.5, abs=5e-3)
    assert 0.05 < soft[20, 199, 0] < 0.95
    assert blur(grey(0.3), 0.5) == pytest.approx(0.3, abs=1e-5)


@pytest.mark.parametrize("name", sorted(EFFECTS))
def test_apply_effects__same_seed_same_picture(name: str) -> None:
    image = np.random.default_rng(0).integers(0, 256, (40, 64, 3), dtype=np.uint8)
    once, again, other = (apply_effects(image, [(name, 0.7)], seed) for seed in (3, 3, 4))
    assert once.shape == image.shape
    assert once.dtype == np.uint8
    assert np.array_equal(once, again)
    assert not np.array_equal(once, image)
    if name != "blur":  # whose angles may agree in so small a picture
        assert not np.array_equal(once, other)


def test_apply_effects__none_is_the_picture() -> None:
    image = np.arange(48, dtype=np.uint8).reshape(4, 4, 3)
    assert np.array_equal(apply_effects(image, [], 0), image)

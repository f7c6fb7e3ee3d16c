"""Fog, dusk and camera against their formulas."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ptedge.samples.weather import Domain, add_fog, dusk_light, fog_light, take_picture, transmission


def test_transmission__by_hand() -> None:
    depth = np.array([[0.0, 20.0]], dtype=np.float32)
    assert transmission(depth, 0.05) == pytest.approx(np.array([[1.0, math.exp(-1)]]), rel=1e-6)


def test_add_fog__scattering_law_at_a_pixel() -> None:
    image = np.full((1, 1, 3), (0.2, 0.4, 0.9), dtype=np.float32)
    foggy = add_fog(image, np.array([[30.0]], dtype=np.float32), 0.04, (0.8, 0.8, 0.7))
    t = math.exp(-0.04 * 30.0)
    expected = [0.2 * t + 0.8 * (1 - t), 0.4 * t + 0.8 * (1 - t), 0.9 * t + 0.7 * (1 - t)]
    assert foggy[0, 0] == pytest.approx(expected, rel=1e-5)


@given(st.floats(0, 0.2), st.floats(0.5, 500), st.floats(0, 1), st.floats(0, 1))
def test_add_fog__lies_between_object_and_airlight(beta: float, depth: float, colour: float, air: float) -> None:
    image = np.full((1, 1, 3), colour, dtype=np.float32)
    value = float(add_fog(image, np.array([[depth]], dtype=np.float32), beta, (air, air, air))[0, 0, 0])
    assert min(colour, air) - 1e-5 <= value <= max(colour, air) + 1e-5


def test_dusk_light__off_by_day() -> None:
    ambient, sun = np.array([0.6, 0.6, 0.7]), np.array([0.5, 0.5, 0.4])
    assert dusk_light(ambient, sun, 0.0) == (pytest.approx(ambient), pytest.approx(sun))
    dim, gone = dusk_light(ambient, sun, 1.0)
    assert (dim < 0.5 * ambient).all()
    assert not gone.any()


def test_fog_light__keeps_clear_air_as_it_is() -> None:
    ambient, sun = np.array([0.6, 0.6, 0.7]), np.array([0.5, 0.5, 0.4])
    assert fog_light(ambient, sun, 0.0) == (pytest.approx(ambient), pytest.approx(sun))


def test_take_picture__ideal_camera_only_rounds() -> None:
    ideal = Domain("ideal", blur=0.0, noise=0.0)
    image = np.array([[[0.0, 0.5, 2.0]]], dtype=np.float32)
    assert take_picture(image, ideal, np.random.default_rng(0)).tolist() == [[[0, 128, 255]]]


def test_take_picture__vignette_darkens_corners_only() -> None:
    domain = Domain("dark corners", blur=0.0, noise=0.0, vignette=0.5)
    picture = take_picture(np.full((5, 5, 3), 0.8, dtype=np.float32), domain, np.random.default_rng(0))
    assert picture[2, 2, 0] == 204
    assert picture[0, 0, 0] == 102  # half


def test_take_picture__gain_gamma_contrast_by_hand() -> None:
    domain = Domain("toned", blur=0.0, noise=0.0, gain=(0.5, 1.0, 1.0), gamma=2.0, contrast=0.5)
    picture = take_picture(np.full((1, 1, 3), 0.8, dtype=np.float32), domain, np.random.default_rng(0))
    # (0.8 * 0.5)^2 = 0.16 -> 0.33; 0.8^2 = 0.64 -> 0.57
    assert picture[0, 0].tolist() == [round(0.33 * 255), round(0.57 * 255), round(0.57 * 255)]


def test_take_picture__noise_has_the_stated_deviation() -> None:
    domain = Domain("noisy", blur=0.0, noise=6.0)
    picture = take_picture(np.full((100, 100, 3), 0.5, dtype=np.float32), domain, np.random.default_rng(0))
    assert picture.astype(float).std() == pytest.approx(6.0, rel=0.05)

"""Fog by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from ptedge.data.public.fog import add_fog, atmospheric_light, transmittance, visibility


def test_transmittance__by_hand() -> None:
    distance = np.array([[0.0, 50.0, 100.0, np.inf]])
    np.testing.assert_allclose(transmittance(distance, 0.02), [[1, math.exp(-1), math.exp(-2), 0]])


@pytest.mark.parametrize(("beta", "metres"), [(0.005, 599.1), (0.01, 299.6), (0.02, 149.8)])
def test_visibility__where_a_twentieth_arrives(beta: float, metres: float) -> None:
    assert visibility(beta) == pytest.approx(metres, abs=0.05)
    assert float(transmittance(np.array(visibility(beta)), beta)) == pytest.approx(0.05)


def test_add_fog__by_hand() -> None:
    image = np.array([[[100, 0, 255], [100, 0, 255], [100, 0, 255]]], np.uint8)
    foggy = add_fog(image, np.array([[1.0, 0.25, 0.0]]), np.array([200.0, 200.0, 250.0]))
    # 100 / 4 + 200 * 3 / 4 = 175; 150; 63.75 + 187.5 = 251.25
    assert foggy.tolist() == [[[100, 0, 255], [175, 150, 251], [200, 200, 250]]] and foggy.dtype == np.uint8


def test_atmospheric_light__the_median_of_the_brightest_in_the_dark_channel() -> None:
    image = np.full((100, 100, 3), 40, np.uint8)
    image[:40] = (200, 210, 220)  # sky: its dark channel is 200
    image[70, 70] = 255  # a lamp, smaller than the window, so that the dark channel does not see it
    assert atmospheric_light(image).tolist() == [200, 210, 220]
    # 11 pixels count of 10,000; inside a sky of three greys the middle one is taken
    image = np.zeros((100, 100, 3), np.uint8)
    image[:, :50] = (240, 240, 240)
    image[10, 10:13] = ((250, 250, 250), (245, 245, 245), (241, 241, 241))
    assert atmospheric_light(image).tolist() == [240, 240, 240]


def test_atmospheric_light__of_a_tiny_image() -> None:
    assert atmospheric_light(np.array([[[1, 2, 3]]], np.uint8)).tolist() == [1, 2, 3]

"""Projection and clipping against hand-computed values."""

import numpy as np
import pytest

from ptedge.samples.camera import NEAR, Camera, clip_near


def test_to_pixels__point_by_hand() -> None:
    camera = Camera(320, 192, focal=280, position=(1.0, 1.5, 2.0))
    pixels = camera.to_pixels(camera.to_camera(np.array([[3.0, 0.5, 12.0]])))
    # 2 m right, 1 m down, 10 m ahead: 160 + 280 * 0.2, 96 + 280 * 0.1
    assert pixels[0] == pytest.approx([216.0, 124.0])


def test_to_camera__pitch_down_lifts_the_horizon_and_yaw_right_moves_things_left() -> None:
    ahead = np.array([[0.0, 0.0, 100.0]])
    pitched = Camera(320, 192, 280, (0, 0, 0), pitch=0.1)
    turned = Camera(320, 192, 280, (0, 0, 0), yaw=0.1)
    assert pitched.to_pixels(pitched.to_camera(ahead))[0] == pytest.approx([160, 96 - 280 * np.tan(0.1)])
    assert turned.to_pixels(turned.to_camera(ahead))[0] == pytest.approx([160 - 280 * np.tan(0.1), 96])


def test_clip_near__cuts_where_the_plane_is_crossed() -> None:
    polygon = np.array([[0.0, 0.0, NEAR - 1], [0.0, 0.0, NEAR + 1], [2.0, 0.0, NEAR + 1]])
    clipped = clip_near(polygon)
    assert clipped[:, 2].min() == pytest.approx(NEAR)
    assert {tuple(np.round(point, 6)) for point in clipped} == {
        (0.0, 0.0, NEAR),
        (0.0, 0.0, NEAR + 1),
        (2.0, 0.0, NEAR + 1),
        (1.0, 0.0, NEAR),
    }
    assert clip_near(polygon - [0, 0, 5]).shape == (0, 3)


def test_world_rays__come_back_to_their_pixels() -> None:
    camera = Camera(32, 16, 20, (1.0, 2.0, 3.0), pitch=0.2, yaw=-0.3)
    points = np.array(camera.position) + 5 * camera.world_rays().astype(np.float64)
    pixels = camera.to_pixels(camera.to_camera(points.reshape(-1, 3))).reshape(16, 32, 2)
    assert pixels[3, 7] == pytest.approx([7.5, 3.5], abs=1e-4)

"""Depth, visibility, light and painting order against hand-computed values."""

import numpy as np
import pytest

from ptedge.samples.camera import Camera
from ptedge.samples.render import SKY_DEPTH, Canvas, PartBuilder

DAY = (np.ones(3), np.zeros(3), np.array([0.0, 1.0, 0.0]))


def wall(z: float, half: float, colour: tuple[float, float, float] = (1, 0, 0)) -> PartBuilder:
    """A square facing the camera, centred on the optical axis of a camera at height 0."""
    builder = PartBuilder((0, 0, z + 1))
    builder.face(np.array([[-half, -half, z], [half, -half, z], [half, half, z], [-half, half, z]]), colour)
    return builder


def test_draw__size_and_depth_of_a_wall() -> None:
    canvas = Canvas(Camera(64, 64, focal=64, position=(0, 0, 0)))
    canvas.draw(wall(8.0, 1.0).build(), instance=5)
    ys, xs = np.nonzero(canvas.instances() == 5)
    # 2 m at 8 m with focal 64 px: 16 pixels, from 24 to 40
    assert (xs.min(), xs.max() + 1, ys.min(), ys.max() + 1) == pytest.approx((24, 40, 24, 40), abs=1)
    depth = canvas.depth()
    assert depth[32, 32] == pytest.approx(8.0, rel=1e-5)
    assert depth[2, 2] == SKY_DEPTH


def test_depth__ground_plane_by_hand() -> None:
    ground = PartBuilder((0, -1, 0), ground=True)
    ground.face(np.array([[-500, 0, -10], [500, 0, -10], [500, 0, 200], [-500, 0, 200]]), (0.5, 0.5, 0.5))
    canvas = Canvas(Camera(320, 192, focal=280, position=(0, 1.5, 0)))
    canvas.draw(ground.build())
    # the sample of row 150 lies at 150.25: 54.25 px under the horizon, so 1.5 m * 280 / 54.25 ahead
    assert canvas.depth()[150, 10] == pytest.approx(1.5 * 280 / 54.25, rel=1e-4)
    assert (canvas.depth()[:96] == SKY_DEPTH).all()
    assert (canvas.depth()[100:] < 120).all()  # all under the horizon, though the plane begins behind the camera


def test_draw__back_of_a_face_is_not_painted() -> None:
    canvas = Canvas(Camera(64, 64, 64, (0, 0, 20)))  # behind the wall, looking away from its front
    canvas.draw(wall(28.0, 1.0).build(), instance=1)
    assert (canvas.instances() == 1).any()
    turned = Canvas(Camera(64, 64, 64, (0, 0, 0)))
    turned.draw(wall(0.0, 1.0).build(), position=(0, 0, 8), heading=np.pi, instance=1)
    assert not turned.instances().any()


def test_visibility__half_covered_wall() -> None:
    canvas = Canvas(Camera(128, 128, focal=128, position=(0, 0, 0)))
    canvas.draw(wall(10.0, 2.0).build(), instance=1)
    canvas.draw(wall(5.0, 1.0).build(), position=(1.0, 0, 0), instance=2)  # hides everything right of the axis
    seen = canvas.visibility()
    assert seen[1] == pytest.approx(0.5, abs=0.03)
    assert seen[2] == 1.0


def test_visibility__counts_what_is_outside_the_frame_as_hidden() -> None:
    canvas = Canvas(Camera(128, 128, focal=128, position=(0, 0, 0)))
    # 4 m at 10 m are 51 pixels; its middle on the frame's right edge, 5 m beside the axis
    canvas.draw(wall(10.0, 2.0).build(), position=(5.0, 0, 0), instance=1)
    assert canvas.visibility()[1] == pytest.approx(0.5, abs=0.03)


def test_colours__albedo_times_light() -> None:
    canvas = Canvas(Camera(64, 64, 64, (0, 0, 0)))
    canvas.draw(wall(8.0, 2.0, (0.5, 0.25, 1.0)).build())
    reflected, emitted = canvas.colours(*DAY, lights=0.0)
    # an upright face gets 0.8 of the ambient light
    assert reflected[32, 32] == pytest.approx([0.4, 0.2, 0.8], rel=1e-5)
    assert reflected[1, 1] == pytest.approx([0, 0, 0])
    assert not emitted.any()

"""What a scene promises: exact boxes, one seed one picture, the same street in every domain."""

import cv2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptedge.samples.camera import Camera
from ptedge.samples.layout import Daylight
from ptedge.samples.render import SKY_DEPTH, PartBuilder
from ptedge.samples.scenes import CLASS_NAMES, DOMAINS, Domain, render_scene, render_street
from ptedge.samples.shapes import car, pedestrian, truck
from ptedge.samples.world import CAR, PEDESTRIAN, TRUCK, Street, Thing

CLEAR = DOMAINS["clear"]
IDEAL = Domain("ideal", blur=0.0, noise=0.0)


def empty_street(*things: Thing) -> Street:
    """A grey plane under a white sky, with these things on it."""
    ground = PartBuilder((0, -1, 0), ground=True)
    ground.face(np.array([[-200, 0, -10], [200, 0, -10], [200, 0, 400], [-200, 0, 400]]), (0.4, 0.4, 0.4))
    up = np.array([0.0, 1.0, 0.0])
    daylight = Daylight(np.ones(3) * 0.8, np.ones(3) * 0.3, up, np.ones(3), np.ones(3), 0.0)
    return Street(ground.build(), (), things, daylight, 0.0, 0)


def camera() -> Camera:
    return Camera(320, 192, 288, (0.0, 1.4, 0.0))


@settings(max_examples=12, deadline=None)
@given(st.integers(0, 10_000), st.integers(0, 10_000), st.sampled_from(sorted(DOMAINS)))
def test_render_scene__boxes_are_inside_and_around_the_visible_pixels(seed: int, index: int, name: str) -> None:
    scene = render_scene(seed, index, DOMAINS[name])
    assert scene.image.shape == (192, 320, 3)
    assert scene.image.dtype == np.uint8
    assert scene.depth.dtype == np.float32
    assert scene.depth.min() > 0
    assert scene.depth.max() <= SKY_DEPTH
    count = len(scene.boxes)
    for array in (scene.labels, scene.track_ids, scene.visibility, scene.ignore):
        assert len(array) == count
    assert set(scene.labels.tolist()) <= set(range(len(CLASS_NAMES)))
    assert set(scene.track_ids.tolist()) == set(np.unique(scene.instances).tolist()) - {0}
    for box, track, visibility in zip(scene.boxes, scene.track_ids, scene.visibility, strict=True):
        ys, xs = np.nonzero(scene.instances == track)
        assert box.tolist() == [xs.min(), ys.min(), xs.max() + 1, ys.max() + 1]
        assert 0 <= box[0] < box[2] <= 320
        assert 0 <= box[1] < box[3] <= 192
        assert 0 < visibility <= 1


def test_render_scene__same_seed_same_bytes_whatever_came_before() -> None:
    first = render_scene(3, 5, CLEAR)
    render_scene(3, 4, DOMAINS["fog"])
    again = render_scene(3, 5, CLEAR)
    assert first.image.tobytes() == again.image.tobytes()
    assert first.depth.tobytes() == again.depth.tobytes()
    assert first.boxes.tolist() == again.boxes.tolist()


def test_render_scene__other_index_or_seed_other_picture() -> None:
    pictures = {render_scene(seed, index, CLEAR).image.tobytes() for seed, index in ((0, 0), (0, 1), (1, 0), (1, 1))}
    assert len(pictures) == 4


def test_render_scene__fog_and_dusk_keep_the_street() -> None:
    clear, fog, dusk = (render_scene(1, 2, DOMAINS[name]) for name in ("clear", "fog", "dusk"))
    for other in (fog, dusk):
        assert np.array_equal(clear.boxes, other.boxes)
        assert np.array_equal(clear.depth, other.depth)
        assert not np.array_equal(clear.image, other.image)


def test_render_scene__fog_takes_contrast_with_depth() -> None:
    def contrast(name: str, near: float, far: float) -> float:
        spread = []
        for index in range(4):
            scene = render_scene(11, index, DOMAINS[name])
            band = (scene.depth >= near) & (scene.depth < far)
            spread.append(scene.image[band].astype(float).std())
        return float(np.mean(spread))

    kept_near = contrast("fog", 4, 10) / contrast("clear", 4, 10)
    kept_far = contrast("fog", 40, 80) / contrast("clear", 40, 80)
    assert kept_far < 0.25
    assert kept_far < 0.5 * kept_near


def test_render_scene__other_sizes() -> None:
    scene = render_scene(0, 0, CLEAR, width=160, height=96)
    assert scene.image.shape == (96, 160, 3)
    assert scene.boxes[:, 2].max() <= 160


def test_render_scene__every_class_occurs() -> None:
    labels = np.concatenate([scene.labels[~scene.ignore] for scene in (render_scene(0, i, CLEAR) for i in range(8))])
    assert set(labels.tolist()) == {CAR, TRUCK, PEDESTRIAN}


def test_render_street__pedestrian_has_the_size_that_projection_says() -> None:
    person = pedestrian(np.random.default_rng(0), 0.0)
    scene = render_street(empty_street(Thing(person, 1.0, 12.0, 0.0, PEDESTRIAN)), camera(), IDEAL)
    x1, y1, x2, y2 = scene.boxes[0]
    # head at 1.4 m - height over the axis, feet 1.4 m under it, 12 m ahead
    assert y1 == pytest.approx(96 - 288 * (person.size[1] - 1.4) / 12, abs=1.5)
    assert y2 == pytest.approx(96 + 288 * 1.4 / 12, abs=1.5)
    assert (x1 + x2) / 2 == pytest.approx(160 + 288 * 1.0 / 12, abs=1.5)
    assert scene.visibility[0] == 1.0
    assert np.median(scene.depth[scene.instances == 1]) == pytest.approx(12.0, abs=0.4)


def test_render_street__near_truck_hides_a_car() -> None:
    rng = np.random.default_rng(1)
    lorry, behind = truck(rng), car(rng)
    far = Thing(behind, 0.0, 30.0, 0.0, CAR)
    alone = render_street(empty_street(far), camera(), IDEAL)
    assert alone.visibility.tolist() == [1.0]
    assert not alone.ignore[0]
    half = render_street(empty_street(far, Thing(lorry, -1.25, 12.0, 0.0, TRUCK)), camera(), IDEAL)
    hidden_car = half.track_ids.tolist().index(1)
    assert 0 < half.visibility[hidden_car] < 0.9
    assert half.boxes[hidden_car][0] > alone.boxes[0][0]  # its left side is covered
    assert half.boxes[hidden_car][2] == alone.boxes[0][2]
    full = render_street(empty_street(far, Thing(lorry, 0.0, 12.0, 0.0, TRUCK)), camera(), IDEAL)
    assert full.track_ids.tolist() == [2]


def test_render_street__far_and_hidden_objects_are_marked() -> None:
    rng = np.random.default_rng(2)
    small = Thing(pedestrian(rng, 0.0), 0.0, 80.0, 0.0, PEDESTRIAN)
    scene = render_street(empty_street(small), camera(), IDEAL)
    assert scene.boxes[0][3] - scene.boxes[0][1] < 16
    assert scene.ignore.tolist() == [True]
    near = Thing(small.shape, 0.0, 20.0, 0.0, PEDESTRIAN)
    assert render_street(empty_street(near), camera(), IDEAL).ignore.tolist() == [False]
    thick = Domain("thick", beta=0.2)  # exp(-0.2 * 20) = 0.018
    assert render_street(empty_street(near), camera(), thick).ignore.tolist() == [True]


def test_render_street__fog_law_between_two_pictures() -> None:
    street = empty_street(Thing(truck(np.random.default_rng(3)), 0.0, 15.0, 0.0, TRUCK))
    thin, thick = (Domain("f", beta=b, airlight=(0.9, 0.9, 0.9), blur=0.0, noise=0.0) for b in (0.05, 0.3))
    # only scattering: take the sun away, which fog would soften
    dark = Street(
        street.ground,
        (),
        street.things,
        Daylight(np.ones(3) * 0.8, np.zeros(3), np.array([0.0, 1.0, 0.0]), np.ones(3), np.ones(3), 0.0),
        0.0,
        0,
    )
    clear = render_street(dark, camera(), IDEAL)
    for domain in (thin, thick):
        foggy = render_street(dark, camera(), domain)
        for y, x in ((100, 160), (170, 40), (80, 160)):
            t = np.exp(-domain.beta * float(clear.depth[y, x]))
            expected = clear.image[y, x] * t + 0.9 * 255 * (1 - t)
            assert foggy.image[y, x] == pytest.approx(expected, abs=1.5)


def test_render_scene__dusk_is_darker_and_has_lamps() -> None:
    clear, dusk = render_scene(1, 2, CLEAR).image, render_scene(1, 2, DOMAINS["dusk"]).image
    assert np.median(dusk) < 0.6 * np.median(clear)
    assert dusk.max() > 230


def test_render_scene__camera_sees_wider() -> None:
    clear, wide = render_scene(0, 3, CLEAR), render_scene(0, 3, DOMAINS["camera"])
    shared = sorted(set(clear.track_ids[clear.visibility == 1]) & set(wide.track_ids[wide.visibility == 1]))
    assert shared
    for track in shared:
        height = [float(np.diff(scene.boxes[scene.track_ids == track][0][[1, 3]])[0]) for scene in (clear, wide)]
        assert height[1] < height[0]
    smooth = cv2.GaussianBlur(wide.image, (0, 0), 2)
    assert np.abs(wide.image.astype(float) - smooth).mean() > 3  # noise

from __future__ import annotations

import numpy as np
import pytest
from drift_streams import Frame, reference, stream

from ptedge.drift.monitor import SCALES, Monitor


def watch(frames: list[Frame], between: float = 86400.0, streams: int = 1) -> Monitor:
    monitor = Monitor(reference(), between, streams)
    for second, one in enumerate(frames):
        monitor.add(float(second), one)
    return monitor


def test_monitor__the_named_rate_is_kept_on_a_constant_stream() -> None:
    # 8 hours in which the user takes one false alarm a quarter of an hour: 32 would be allowed
    assert watch(stream(8 * 3600, 0), between=900.0).total <= 32


def test_monitor__dependent_frames_are_no_more_evidence() -> None:
    # every scene stays for 20 seconds
    frames = [one for one in stream(2 * 3600 // 20, 1) for _ in range(20)]
    assert watch(frames, between=900.0).total <= 8


@pytest.mark.parametrize(("kind", "by"), [("sharpness", -4.0), ("score", -5.0), ("light", 4.0), ("boxes", 4.0)])
def test_monitor__an_alarm_begins_and_ends_with_the_change(kind: str, by: float) -> None:
    monitor = watch(stream(1200, 2, lambda i: {kind: by} if 400 <= i < 800 else {}))
    (alarm,) = monitor.alarms
    assert 400 < alarm.began <= 520 and monitor.alarm is None
    assert alarm.since == pytest.approx(400, abs=20) and {name.partition(":")[0] for name, _ in alarm.told} == {kind}
    assert alarm.ended is not None and 800 < alarm.ended < 1000


def test_monitor__says_what_moved_while_it_lasts() -> None:
    monitor = watch(stream(700, 3, lambda i: {"contrast": -4.0} if i >= 400 else {}))
    assert monitor.alarm is not None
    (moved,) = monitor.alarm.moved.values()
    known = reference()
    assert (moved.name, moved.side) == ("contrast", "low") and moved.usual == known.usual("contrast")
    assert moved.since == pytest.approx(400, abs=20) and moved.share > 0.7
    assert moved.now == pytest.approx(-400, abs=30)  # 4 spreads of 10 * 10


def test_monitor__a_small_change_needs_a_long_window() -> None:
    # most frames are within the margin of the rarest 2 %, and so no matter in two minutes
    monitor = watch(stream(3600, 4, lambda i: {"contrast": -2.5} if i >= 900 else {}))
    assert monitor.alarm is not None
    assert min(moved.seconds for moved in monitor.alarm.moved.values()) > SCALES[0].beats


def test_monitor__from_the_first_frame_in_another_place() -> None:
    monitor = watch(stream(200, 5, lambda i: {"brightness": -5.0}))
    assert monitor.alarm is not None and monitor.alarm.since == 0 and monitor.alarm.began < 130


def test_monitor__more_streams_have_stricter_tests() -> None:
    one, many = (watch(stream(600, 6, lambda i: {"score": -4.0}), streams=count) for count in (1, 10_000))
    assert one.alarm is not None and many.alarm is not None and one.alarm.began <= many.alarm.began


def test_monitor__the_first_hours_are_no_whole_day() -> None:
    # as dark as the darkest twelfth of what is usual: for hours no matter, for a day it would be
    assert watch(stream(3 * 3600, 8, lambda i: {"brightness": -1.6})).total == 0


def test_monitor__frames_without_detections() -> None:
    frames = stream(300, 7)
    for one in frames:
        for name in ("score:0", "size:0", "sigma:0", "entropy:0"):
            one[name] = np.zeros(0)
    assert watch(frames).total == 0


def test_monitor__refuses_a_rate_of_nothing() -> None:
    with pytest.raises(ValueError, match="seconds_between"):
        Monitor(reference(), 0.0)

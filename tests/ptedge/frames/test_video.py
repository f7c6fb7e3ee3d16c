"""What OpenCV is asked for: cameras, CSI, pipelines, addresses; and GStreamer for real where the system has it."""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from places import ROOT

from ptedge.errors import BackendError, InputError
from ptedge.frames import video
from ptedge.frames.source import open_frames
from ptedge.frames.status import LiveOptions, StreamError
from ptedge.frames.video import CaptureStream, to_rgb

QUICK = LiveOptions(connect=1, stall=0.3, first_wait=0.01, longest_wait=0.02)


class Device:
    """Stands for cv2.VideoCapture: opens or not, gives frames, then fails; what it was asked for is kept."""

    asked: list[tuple[Any, ...]]
    opens: list[bool]
    frames: list[Any]

    def __init__(self, *arguments: Any) -> None:
        type(self).asked.append(arguments)
        self._opened = self.opens.pop(0) if self.opens else True
        self._left = list(self.frames)
        self.released = False

    def isOpened(self) -> bool:  # noqa: N802
        return self._opened

    def get(self, what: int) -> float:
        return 30.0 if what == cv2.CAP_PROP_FPS else 0.0

    def read(self) -> tuple[bool, Any]:
        if not self._left:
            return False, None
        step = self._left.pop(0)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, float):
            time.sleep(step)
            return True, np.zeros((4, 6, 3), np.uint8)
        return True, step

    def release(self) -> None:
        self.released = True


@pytest.fixture
def device(monkeypatch: pytest.MonkeyPatch) -> type[Device]:
    kind = type("Made", (Device,), {"asked": [], "opens": [], "frames": [np.zeros((4, 6, 3), np.uint8)]})
    monkeypatch.setattr(cv2, "VideoCapture", kind)
    return kind


@pytest.mark.skipif(os.name != "posix" or not Path("/dev").is_dir(), reason="cameras are files on Linux only")
def test_camera__by_number_and_by_file(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video.sys, "platform", "linux")
    monkeypatch.setattr(video.os.path, "exists", lambda path: path != "/dev/video7")
    for spec in ("2", "/dev/video2"):
        assert CaptureStream(spec, QUICK).fps == 30.0
    assert device.asked == [("/dev/video2", cv2.CAP_V4L2)] * 2
    with pytest.raises(StreamError, match="no camera /dev/video7; "):
        CaptureStream("7", QUICK)
    device.opens.append(False)
    with pytest.raises(InputError, match=r"^2 cannot be opened: check that nothing else uses it"):
        open_frames("2", live=QUICK)
    monkeypatch.setattr(video.sys, "platform", "darwin")
    CaptureStream("1", QUICK)
    assert device.asked[-1] == (1,)


def test_camera__unplugged_and_plugged_in(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video.os.path, "exists", lambda path: True)
    device.opens += [True, False, False, True]
    with open_frames("0", live=QUICK, limit=2) as source:
        assert len(list(source)) == 2
    assert (source.status.reconnects, source.status.failures) == (1, 2)


def test_csi_and_pipelines__go_to_gstreamer(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "has_gstreamer", lambda: True)
    CaptureStream("csi://1", QUICK)
    CaptureStream("a ! appsink", QUICK)
    (csi, first), (given, second) = device.asked
    assert first == second == cv2.CAP_GSTREAMER and given == "a ! appsink"
    assert csi.startswith("nvarguscamerasrc sensor-id=1 ! ") and csi.endswith("drop=1 max-buffers=1 sync=false")


def test_gstreamer__absent_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(video, "has_gstreamer", lambda: False)
    spec = "rtspsrc location=rtsp://user:secret@cam/1 ! decodebin ! videoconvert ! appsink"
    with pytest.raises(BackendError, match=r"\*\*\*@cam.*built without.*JetPack.*apt install python3-opencv") as error:
        open_frames(spec, live=QUICK)
    assert "secret" not in str(error.value)


def test_address__ffmpeg_alone_with_limits(device: Any) -> None:
    CaptureStream("rtsp://cam/1", LiveOptions(connect=3, stall=2))
    address, backend, limits = device.asked[0]
    assert (address, backend) == ("rtsp://cam/1", cv2.CAP_FFMPEG)
    given = dict(zip(limits[::2], limits[1::2], strict=True))
    assert given[cv2.CAP_PROP_OPEN_TIMEOUT_MSEC] == 3000 and given[cv2.CAP_PROP_READ_TIMEOUT_MSEC] == 2000
    assert given[cv2.CAP_PROP_N_THREADS] == 1
    CaptureStream("rtsp://cam/1", LiveOptions(newest=False))
    assert cv2.CAP_PROP_N_THREADS not in device.asked[1][2]


def test_read__a_frame_after_the_time_limit_is_an_old_one(device: Any) -> None:
    device.frames[:] = [0.31, 0.0]
    stream = CaptureStream("rtsp://cam/1", QUICK)
    with pytest.raises(StreamError, match=r"no frame in 0\.3 s") as fault:
        stream.read()
    assert fault.value.kind == "stalled"
    assert stream.read().shape == (4, 6, 3)
    with pytest.raises(StreamError, match="the stream ended") as fault:
        stream.read()
    assert fault.value.kind == "lost"


def test_read__an_error_of_opencv_is_a_lost_connection(device: Any) -> None:
    device.frames[:] = [cv2.error("broken")]
    with pytest.raises(StreamError, match="OpenCV cannot read on"):
        CaptureStream("rtsp://cam/1", QUICK).read()


@pytest.mark.parametrize(
    ("address", "why"),
    [
        ("rtsp://127.0.0.1:1/x", "nothing answers at 127.0.0.1 port 1"),
        ("rtsp://cam:port/x", "no number"),
        ("udp://", "check the address"),
    ],
)
def test_address__why_it_cannot_be_opened(device: Any, address: str, why: str) -> None:
    device.opens.append(False)
    with pytest.raises(StreamError, match=why):
        CaptureStream(address, QUICK)


def test_to_rgb() -> None:
    pixel = np.array([[[10, 20, 30]]], np.uint8)
    assert to_rgb(pixel).tolist() == [[[30, 20, 10]]]
    assert to_rgb(np.dstack([pixel, np.array([[99]], np.uint8)])).tolist() == [[[30, 20, 10]]]
    assert to_rgb(np.array([[7]], np.uint8)).tolist() == to_rgb(np.array([[[7]]], np.uint8)).tolist() == [[[7, 7, 7]]]


def test_gstreamer__a_pipeline_on_the_system_opencv() -> None:
    python = "/usr/bin/python3"
    look = "import cv2, sys; sys.exit('GStreamer:                   YES' not in cv2.getBuildInformation())"
    if not Path(python).is_file() or subprocess.run([python, "-c", look], capture_output=True, check=False).returncode:
        pytest.skip("the system's Python has no OpenCV with GStreamer: apt install python3-opencv")
    code = """
from ptedge.frames import LiveOptions, open_frames
spec = ("videotestsrc num-buffers=6 ! video/x-raw,width=64,height=48,framerate=25/1 ! videoconvert ! "
        "video/x-raw,format=BGR ! appsink sync=false")
with open_frames(spec, limit=8, live=LiveOptions(newest=False, first_wait=0.01)) as source:
    shapes = {frame.image.shape for frame in source}
print(shapes, source.status.delivered, source.status.reconnects)
"""
    done = subprocess.run([python, "-c", code], cwd=ROOT, capture_output=True, text=True, check=False, timeout=30)
    assert done.stdout.strip() == "{(48, 64, 3)} 8 1", done.stderr

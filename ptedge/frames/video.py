"""Videos and cameras through OpenCV: frames with the container's own timestamps."""

from __future__ import annotations

import contextlib
import os
import re
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import BackendError, InputError
from ptedge.frames.address import is_camera, is_http, is_pipeline, mask_credentials
from ptedge.frames.status import LiveOptions, StreamError

# how far a container's frame count may be off before the file counts as cut short: it is often duration times rate
_COUNT_SLACK = 0.05

# NVIDIA's camera element, converted to what OpenCV's appsink takes; only the newest frame waits
_CSI_PIPELINE = (
    "nvarguscamerasrc sensor-id={sensor} ! video/x-raw(memory:NVMM), format=NV12 ! nvvidconv ! "
    "video/x-raw, format=BGRx ! videoconvert ! video/x-raw, format=BGR ! appsink drop=1 max-buffers=1 sync=false"
)
_PORTS = {"rtsp": 554, "rtsps": 322, "rtmp": 1935}


@dataclass(frozen=True)
class Capture:
    """An open video file.

    Attributes:
        device: OpenCV's object.
        count: frames the container claims; ``None`` when it claims none.
        fps: frames a second it claims; ``None`` when it claims none.
    """

    device: cv2.VideoCapture
    count: int | None
    fps: float | None


@contextlib.contextmanager
def open_capture(path: str) -> Iterator[Capture]:
    """Open a video file; it is released at the end.

    Args:
        path: file, or ``http://`` address of one.

    Raises:
        InputError: OpenCV cannot open it.
    """
    if os.path.isfile(path) and os.path.getsize(path) == 0:
        raise InputError(f"video {path} is empty. Replace or remove it")
    # an address is FFmpeg's alone: other parts of OpenCV would try it as well, and print it with its password
    device = cv2.VideoCapture(path, cv2.CAP_FFMPEG if is_http(path) else cv2.CAP_ANY)
    try:
        if not device.isOpened():
            shown = mask_credentials(path)
            raise InputError(f"{shown} is no image, list or video that OpenCV can open, or it is cut short")
        count = int(device.get(cv2.CAP_PROP_FRAME_COUNT))
        yield Capture(device, count if count > 0 else None, _fps(device))
    finally:
        device.release()


def read_capture(
    path: str, start: int, stride: int, skipped: list[tuple[str, str]]
) -> Iterator[tuple[int, float | None, NDArray[np.uint8]]]:
    """Frames of a video file in order.

    Args:
        path: video file, or ``http://`` address of one.
        start: frames passed over first.
        stride: every so-many-th from there.
        skipped: gets an entry when the file ends clearly before the count it claims.

    Yields:
        Index, seconds from the source's timestamps (right for variable frame rates), [H, W, 3] uint8 RGB.

    Raises:
        InputError: it cannot be opened, or not one frame can be decoded.
    """
    shown = mask_credentials(path)
    with open_capture(path) as capture:
        device, index = capture.device, 0
        while device.grab():
            if index >= start and (index - start) % stride == 0:
                # before retrieve: OpenCV's timestamp is that of the frame grabbed last
                milliseconds = float(device.get(cv2.CAP_PROP_POS_MSEC))
                ok, image = device.retrieve()
                if ok and image is not None:
                    yield index, milliseconds / 1000.0 if milliseconds >= 0 else None, to_rgb(image)
                else:
                    skipped.append((f"{shown} frame {index}", "it cannot be decoded"))
            index += 1
        if index == 0:
            raise InputError(f"video {shown} holds no frame that can be decoded. It is empty or cut short")
        if capture.count is not None and index < capture.count * (1 - _COUNT_SLACK) - 1:
            skipped.append((shown, f"it ends after {index} of {capture.count} frames; the file seems to be cut short"))


class CaptureStream:
    """A camera, stream or pipeline through OpenCV, open until it is closed.

    OpenCV must not be used by two threads at once, so a read cannot be interrupted; for FFmpeg it ends after
    ``options.stall`` seconds, for others whoever waits has to give up this object.

    Attributes:
        fps: frames a second as announced; ``None`` where they are not.
    """

    def __init__(self, address: str, options: LiveOptions) -> None:
        """Open it.

        Args:
            address: camera index or device, address, ``csi://`` sensor number, or a GStreamer pipeline.
            options: how long to wait.

        Raises:
            StreamError: it cannot be opened.
            BackendError: it needs GStreamer, and this OpenCV is built without.
        """
        self._stall, self._limited = options.stall, False
        if address.startswith("csi://") or is_pipeline(address):
            require_gstreamer(address)
            pipeline = _CSI_PIPELINE.format(sensor=address[6:] or "0") if address.startswith("csi://") else address
            self._device = cv2.VideoCapture(pipeline, cv2.CAP_GSTREAMER)
            why = "GStreamer refuses it. Try it with gst-launch-1.0; it must end in an appsink that takes BGR"
        elif is_camera(address):
            self._device = _open_camera(address)
            why = "check that nothing else uses it and that you may read it (group video)"
        else:
            limits = [cv2.CAP_PROP_OPEN_TIMEOUT_MSEC, round(options.connect * 1000)]
            limits += [cv2.CAP_PROP_READ_TIMEOUT_MSEC, round(options.stall * 1000)]
            # more threads decode several frames at a time, so that each comes that many frames late
            limits += [cv2.CAP_PROP_N_THREADS, 1] if options.newest else []
            # FFmpeg by name: otherwise other parts of OpenCV try the address too, and print it with its password
            self._device = cv2.VideoCapture(address, cv2.CAP_FFMPEG, limits)
            self._limited = True
            why = "" if self._device.isOpened() else _diagnosis(address)
        if not self._device.isOpened():
            self._device.release()
            raise StreamError("lost", why)
        self.fps = _fps(self._device)

    def read(self) -> NDArray[np.uint8]:
        """The next frame as it came, [H, W] or [H, W, C] uint8 BGR.

        Raises:
            StreamError: the stream ended, or gave nothing in time.
        """
        began = time.monotonic()
        try:
            ok, image = self._device.read()
        except cv2.error as error:
            raise StreamError("lost", f"OpenCV cannot read on: {error.err}") from None
        # FFmpeg, when its time is up, may hand out an old frame that its decoder still holds
        if time.monotonic() - began >= 0.99 * self._stall and (self._limited or not ok):
            raise StreamError("stalled", f"no frame in {self._stall:g} s")
        if ok and image is not None:
            return np.asarray(image, np.uint8)
        raise StreamError("lost", "the stream ended")

    def interrupt(self) -> None:
        """Nothing: see the class."""

    def close(self) -> None:
        """Release it; only by the thread that reads."""
        self._device.release()


def require_gstreamer(spec: str) -> None:
    """Refuse what needs GStreamer when this OpenCV is built without.

    Raises:
        BackendError: it is; the text says what to do.
    """
    if not has_gstreamer():
        raise BackendError(
            f"{mask_credentials(spec)} needs GStreamer, but this OpenCV is built without it, as all from pip are. Use "
            "the system's OpenCV: on a Jetson it comes with JetPack, on Debian and Ubuntu: apt install python3-opencv "
            "gstreamer1.0-plugins-good; then: pip uninstall opencv-python-headless, in an environment made with "
            "python3 -m venv --system-site-packages"
        )


def has_gstreamer() -> bool:
    """Whether this OpenCV is built with GStreamer."""
    return re.search(r"GStreamer:\s+YES", cv2.getBuildInformation()) is not None


def _open_camera(address: str) -> cv2.VideoCapture:
    if sys.platform != "linux":
        return cv2.VideoCapture(int(address))
    path = f"/dev/video{address}" if address.isdecimal() else address
    if not os.path.exists(path):
        present = sorted(str(found) for found in Path("/dev").glob("video*"))
        raise StreamError(
            "lost",
            f"there is no camera {path}; " + (f"present: {', '.join(present)}" if present else "this machine has none"),
        )
    return cv2.VideoCapture(path, cv2.CAP_V4L2)


def _diagnosis(address: str) -> str:
    """Why FFmpeg could not open an address, which OpenCV does not tell: whether anything listens there."""
    parts = urlsplit(address)
    try:
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "the port in the address is no number"
    if not host or not port:
        return "check the address"
    try:
        socket.create_connection((host, port), timeout=2.0).close()
    except OSError as error:
        why = "no answer" if isinstance(error, TimeoutError) else (error.strerror or str(error))
        return f"nothing answers at {host} port {port} ({why.lower()})"
    return f"{host} port {port} answers, so check the path, the user name and the password"


def _fps(device: cv2.VideoCapture) -> float | None:
    fps = float(device.get(cv2.CAP_PROP_FPS))
    return fps if 0 < fps < 1000 else None


def to_rgb(image: object) -> NDArray[np.uint8]:
    """A frame as OpenCV gives it, [H, W] or [H, W, C] BGR, as contiguous [H, W, 3] uint8 RGB."""
    array = np.asarray(image, np.uint8)
    grey = array.ndim == 2 or array.shape[2] == 1
    rgb = cv2.cvtColor(array, cv2.COLOR_GRAY2RGB) if grey else cv2.cvtColor(array[:, :, :3], cv2.COLOR_BGR2RGB)
    return np.ascontiguousarray(rgb, dtype=np.uint8)

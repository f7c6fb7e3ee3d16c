"""Cameras, streams and pipelines through OpenCV, open until they are closed."""

from __future__ import annotations

import os
import re
import socket
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import BackendError
from ptedge.frames.address import foreign_text, is_camera, is_pipeline, mask_credentials, parse_address
from ptedge.frames.status import LiveOptions, StreamError

# NVIDIA's camera element, converted to what OpenCV's appsink takes; only the newest frame waits
_CSI_PIPELINE = (
    "nvarguscamerasrc sensor-id={sensor} ! video/x-raw(memory:NVMM), format=NV12 ! nvvidconv ! "
    "video/x-raw, format=BGRx ! videoconvert ! video/x-raw, format=BGR ! appsink drop=1 max-buffers=1 sync=false"
)
_PORTS = {"rtsp": 554, "rtsps": 322, "rtmp": 1935}


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
        self._address, self._stall, self._limited = address, options.stall, False
        csi = address[:6].lower() == "csi://"
        if csi or is_pipeline(address):
            require_gstreamer(address)
            pipeline = _CSI_PIPELINE.format(sensor=_sensor(address)) if csi else address
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
            self._device = cv2.VideoCapture(parse_address(address).full, cv2.CAP_FFMPEG, limits)
            self._limited = True
            why = "" if self._device.isOpened() else _diagnosis(address)
        if not self._device.isOpened():
            self._device.release()
            raise StreamError("lost", why)
        self.fps = claimed_fps(self._device)

    def read(self) -> NDArray[np.uint8]:
        """The next frame as it came, [H, W] or [H, W, C] uint8 BGR.

        Raises:
            StreamError: the stream ended, or gave nothing in time.
        """
        began = time.monotonic()
        try:
            ok, image = self._device.read()
        except cv2.error as error:
            raise StreamError("lost", f"OpenCV cannot read on: {foreign_text(str(error.err), self._address)}") from None
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


def _sensor(address: str) -> str:
    """The number in ``csi://0``, without one 0; anything else would become a part of the pipeline."""
    sensor = address[6:].strip("/") or "0"
    if not (sensor.isascii() and sensor.isdecimal() and len(sensor) <= 4):
        raise StreamError("lost", "csi:// has to be followed by the number of a sensor, as in csi://0")
    return sensor


def _diagnosis(address: str) -> str:
    """Why FFmpeg could not open an address, which OpenCV does not tell: whether anything listens there."""
    given = parse_address(address)
    if given.doubtful:
        return f"check the address{given.hint}"
    try:
        parts = urlsplit(given.bare)
        host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return "its host or port cannot be read; the port in the address is no number, or a bracket is too many"
    if not host or not port:
        return "check the address"
    try:
        socket.create_connection((host, port), timeout=2.0).close()
    except (OSError, UnicodeError) as error:
        why = "no answer" if isinstance(error, TimeoutError) else (getattr(error, "strerror", None) or str(error))
        return f"nothing answers at {host} port {port} ({foreign_text(why, address).lower()})"
    return f"{host} port {port} answers, so check the path, the user name and the password"


def claimed_fps(device: cv2.VideoCapture) -> float | None:
    """Frames a second as claimed; ``None`` for 0, for nonsense, and for a clock rate such as 90000."""
    fps = float(device.get(cv2.CAP_PROP_FPS))
    return fps if 0.001 <= fps < 1000 else None


def to_rgb(image: object) -> NDArray[np.uint8]:
    """A frame as OpenCV gives it, [H, W] or [H, W, C] BGR, as contiguous [H, W, 3] uint8 RGB."""
    array = np.asarray(image, np.uint8)
    grey = array.ndim == 2 or array.shape[2] == 1
    rgb = cv2.cvtColor(array, cv2.COLOR_GRAY2RGB) if grey else cv2.cvtColor(array[:, :, :3], cv2.COLOR_BGR2RGB)
    return np.ascontiguousarray(rgb, dtype=np.uint8)

"""Video files and live sources through OpenCV: frames with the container's own timestamps."""

from __future__ import annotations

import contextlib
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.errors import BackendError, InputError

# how far a container's frame count may be off before the file counts as cut short: it is often duration times rate
_COUNT_SLACK = 0.05

# NVIDIA's camera element, converted to what OpenCV's appsink takes; a full queue drops the oldest frame
_CSI_PIPELINE = (
    "nvarguscamerasrc sensor-id={sensor} ! video/x-raw(memory:NVMM), format=NV12 ! nvvidconv ! "
    "video/x-raw, format=BGRx ! videoconvert ! video/x-raw, format=BGR ! appsink drop=1 max-buffers=2"
)


@dataclass(frozen=True)
class Capture:
    """An open video or camera.

    Attributes:
        device: OpenCV's object.
        count: frames the container claims; ``None`` when it claims none.
        fps: frames a second it claims; ``None`` when it claims none.
    """

    device: cv2.VideoCapture
    count: int | None
    fps: float | None


def is_live(spec: str) -> bool:
    """Whether a text names a camera index, a stream or a GStreamer pipeline."""
    return spec.isdecimal() or re.match(r"[a-z][a-z0-9+.-]*://", spec) is not None or _is_pipeline(spec)


@contextlib.contextmanager
def open_capture(spec: str) -> Iterator[Capture]:
    """Open a video file or a live source; it is released at the end.

    Args:
        spec: video file, camera index, ``rtsp://`` or ``http://`` address, ``csi://`` sensor number, or a GStreamer
            pipeline (it holds ``!``).

    Raises:
        InputError: OpenCV cannot open it.
        BackendError: it needs GStreamer, and this OpenCV is built without.
    """
    file = os.path.isfile(spec)
    live = not file and is_live(spec)
    if live and (spec.startswith("csi://") or _is_pipeline(spec)):
        if not has_gstreamer():
            raise BackendError(
                f"{spec} needs GStreamer, but this OpenCV is built without it. Use the OpenCV of your system "
                "(on a Jetson the one JetPack brings) instead of the one from pip"
            )
        pipeline = _CSI_PIPELINE.format(sensor=spec[6:] or "0") if spec.startswith("csi://") else spec
        device = cv2.VideoCapture(pipeline, cv2.CAP_GSTREAMER)
    elif live and spec.isdecimal():
        device = cv2.VideoCapture(int(spec))
    else:
        if file and os.path.getsize(spec) == 0:
            raise InputError(f"video {spec} is empty. Replace or remove it")
        device = cv2.VideoCapture(spec)
    try:
        if not device.isOpened():
            if live:
                raise InputError(f"{spec} cannot be opened. Check the address or index, and that nothing else uses it")
            raise InputError(f"{spec} is no image, list or video that OpenCV can open, or it is cut short")
        count, fps = int(device.get(cv2.CAP_PROP_FRAME_COUNT)), float(device.get(cv2.CAP_PROP_FPS))
        yield Capture(device, count if count > 0 and not live else None, fps if 0 < fps < 1000 else None)
    finally:
        device.release()


def read_capture(
    spec: str, start: int, stride: int, skipped: list[tuple[str, str]]
) -> Iterator[tuple[int, float | None, NDArray[np.uint8]]]:
    """Frames of a video or live source in order.

    Args:
        spec: as :func:`open_capture`.
        start: frames passed over first.
        stride: every so-many-th from there.
        skipped: gets an entry when the file ends clearly before the count it claims.

    Yields:
        Index, seconds from the source's timestamps (right for variable frame rates), [H, W, 3] uint8 RGB.

    Raises:
        InputError: it cannot be opened, or not one frame can be decoded.
    """
    with open_capture(spec) as capture:
        device, index = capture.device, 0
        while device.grab():
            if index >= start and (index - start) % stride == 0:
                # before retrieve: OpenCV's timestamp is that of the frame grabbed last
                milliseconds = float(device.get(cv2.CAP_PROP_POS_MSEC))
                ok, image = device.retrieve()
                if ok and image is not None:
                    yield (
                        index,
                        milliseconds / 1000.0 if milliseconds >= 0 else None,
                        _to_rgb(np.asarray(image, np.uint8)),
                    )
                else:
                    skipped.append((f"{spec} frame {index}", "it cannot be decoded"))
            index += 1
        if index == 0:
            raise InputError(f"video {spec} holds no frame that can be decoded. It is empty or cut short")
        if capture.count is not None and index < capture.count * (1 - _COUNT_SLACK) - 1:
            skipped.append((spec, f"it ends after {index} of {capture.count} frames; the file seems to be cut short"))


def has_gstreamer() -> bool:
    """Whether this OpenCV is built with GStreamer."""
    return re.search(r"GStreamer:\s+YES", cv2.getBuildInformation()) is not None


def _is_pipeline(spec: str) -> bool:
    return " ! " in spec


def _to_rgb(image: NDArray[np.uint8]) -> NDArray[np.uint8]:
    grey = image.ndim == 2 or image.shape[2] == 1
    rgb = cv2.cvtColor(image, cv2.COLOR_GRAY2RGB) if grey else cv2.cvtColor(image[:, :, :3], cv2.COLOR_BGR2RGB)
    return np.ascontiguousarray(rgb, dtype=np.uint8)

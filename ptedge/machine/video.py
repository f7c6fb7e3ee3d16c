"""What OpenCV can read video with. It is loaded for that, since only it knows how it was built."""

from __future__ import annotations

from functools import partial

from ptedge.machine.finding import Finding
from ptedge.machine.packages import version_of

HEADLESS = "pip install --force-reinstall opencv-python-headless"
_opencv = partial(Finding, "opencv", "OpenCV")
_video = partial(Finding, "video", "video files, rtsp://")
_gstreamer = partial(Finding, "gstreamer", "csi://, GStreamer")


def check_opencv(on_jetson: bool) -> list[Finding]:
    """OpenCV and what it can read video with.

    Args:
        on_jetson: this is a Jetson.
    """
    try:
        import cv2

        build = cv2.getBuildInformation()
    except (ImportError, OSError) as error:
        # the usual reason is libGL, which opencv-python needs for windows that ptedge never opens
        remove = "pip uninstall -y opencv-python && " if version_of("opencv-python") else ""
        return [_opencv("problem", f"cannot be loaded: {error}", remove + HEADLESS)]
    checks = [_opencv("ok", cv2.__version__)]
    if _has(build, "FFMPEG"):
        checks.append(_video("ok", "OpenCV with FFMPEG"))
    else:
        checks.append(_video("problem", "this OpenCV is built without FFMPEG", HEADLESS))
    if _has(build, "GStreamer"):
        checks.append(_gstreamer("ok", "OpenCV with GStreamer"))
    else:
        detail = (
            "this OpenCV is built without GStreamer; the system's has it. Use a venv made with --system-site-packages, "
            "without opencv-python-headless in it"
        )
        fix = f"sudo apt-get install {'nvidia-opencv' if on_jetson else 'python3-opencv'}"
        checks.append(_gstreamer("problem" if on_jetson else "missing", detail, fix))
    return checks


def _has(build: str, feature: str) -> bool:
    """Whether a line such as ``FFMPEG: YES`` stands in OpenCV's build information."""
    lines = [row for row in build.splitlines() if row.strip().startswith(feature + ":")]
    return bool(lines) and "YES" in lines[0]

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest
from pretend import forbid_import, pretend_installed

from ptedge.machine.video import check_opencv


def fake_opencv(monkeypatch: pytest.MonkeyPatch, build: str) -> None:
    fake = SimpleNamespace(__version__="4.8.0", getBuildInformation=lambda: build)
    monkeypatch.setitem(sys.modules, "cv2", fake)


def test_check_opencv__reads_the_build(monkeypatch: pytest.MonkeyPatch) -> None:
    fake_opencv(monkeypatch, "  Video I/O:\n    FFMPEG:    YES\n    GStreamer:  NO\n")
    version, ffmpeg, gstreamer = check_opencv(on_jetson=False)
    assert (version.detail, ffmpeg.status, gstreamer.status) == ("4.8.0", "ok", "missing")
    assert gstreamer.fix == "sudo apt-get install python3-opencv"
    fake_opencv(monkeypatch, "  Video I/O:\n    FFMPEG:    NO\n    GStreamer:  YES (1.20.3)\n")
    _, ffmpeg, gstreamer = check_opencv(on_jetson=True)
    assert (ffmpeg.status, gstreamer.status) == ("problem", "ok")


def test_check_opencv__cannot_be_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    forbid_import(monkeypatch, "cv2", "libGL.so.1: cannot open shared object file")
    pretend_installed(monkeypatch, {"opencv-python": "4.8"})
    (got,) = check_opencv(on_jetson=False)
    assert got.status == "problem"
    assert "libGL.so.1" in got.detail
    assert got.fix.startswith("pip uninstall -y opencv-python && pip install")

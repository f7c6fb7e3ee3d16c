from __future__ import annotations

import gc
import logging
import time
from pathlib import Path

import cv2
import numpy as np
import pytest
from servers.mjpeg_server import MjpegServer
from tiny_model import tiny_bundle

from ptedge.api.model import load
from ptedge.api.stream import stream
from ptedge.errors import BackendError, InputError
from ptedge.frames.status import LiveOptions


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    return tiny_bundle(tmp_path / "b").path


@pytest.fixture
def frames(tmp_path: Path) -> Path:
    """Five pictures, the third one broken."""
    (tmp_path / "frames").mkdir()
    for i in range(5):
        cv2.imwrite(str(tmp_path / "frames" / f"{i}.png"), np.full((64, 96, 3), i, np.uint8))
    (tmp_path / "frames" / "2.png").write_bytes(b"broken")
    return tmp_path / "frames"


def test_stream__folder_with_a_loaded_model(bundle: Path, frames: Path) -> None:
    with load(bundle) as model:
        found = stream(frames, model, start=1, min_score=0.7)
        pairs = [(frame.index, detections.names) for frame, detections in found]
        assert pairs == [(1, ["car"]), (3, ["car"]), (4, ["car"])]
        assert [Path(name).name for name, _ in found.skipped] == ["2.png"]
        assert found.status.delivered == 3
        assert len(model(np.zeros((64, 96, 3), np.uint8))) == 2  # still open


def test_stream__a_path_is_loaded_for_it_alone(bundle: Path, frames: Path) -> None:
    with stream(frames, bundle, stride=2, limit=1) as found:
        assert [len(detections) for _, detections in found] == [2]
    with pytest.raises(BackendError):
        found.model(np.zeros((64, 96, 3), np.uint8))


def test_stream__what_cannot_be_opened(bundle: Path, frames: Path) -> None:
    with pytest.raises(InputError, match="missing"):
        stream("missing", bundle)
    with pytest.raises(InputError, match=r"without a clock.*rate=10"):
        stream(frames, bundle, realtime=True)


def test_stream__camera_comes_back_and_leaving_the_loop_leaves_it(
    bundle: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with MjpegServer(frames=3) as camera, caplog.at_level(logging.INFO, "ptedge"), load(bundle) as model:
        found = stream(camera.url, model, realtime=False)
        for number, (frame, detections) in enumerate(found, start=1):
            assert detections.image is frame.image
            if number == 5:
                break
        del frame, detections
        gc.collect()
        assert found.status.reconnects >= 1
        assert found.status.state == "ended"
    assert "lost" in caplog.text or "ended" in caplog.text


def test_stream__gives_up_as_told(bundle: Path) -> None:
    with MjpegServer(frames=2) as camera:
        found = stream(camera.url, bundle, live=LiveOptions(first_wait=0.01, attempts=2))
        pairs = iter(found)
        next(pairs)
        camera.stop()
        with pytest.raises(InputError, match="no connection in 2 attempts"):
            list(pairs)


def test_stream__realtime_plays_a_file_at_its_speed(
    bundle: Path, frames: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    monkeypatch.setattr(time, "sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    (frames / "2.png").unlink()  # times at 10 a second: 0, 0.1, 0.2, 0.3
    found = stream(frames, bundle, realtime=True, rate=10)
    seen = []
    for frame, _ in found:
        seen.append((frame.index, round(now[0] - 100, 3)))
        now[0] += 0.16  # so long does the model take
    # at 0.16 the second one is the newest whose time (0.1) has come; at 0.32 that is the fourth, and the third is over
    assert seen == [(0, 0.0), (1, 0.16), (3, 0.32)]
    assert found.dropped == 1

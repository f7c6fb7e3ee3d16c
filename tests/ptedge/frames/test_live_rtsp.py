"""RTSP against a real server on 127.0.0.1 (GStreamer's, of Debian): killed, frozen, slow, damaged, changed."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from functools import partial

import pytest
from servers import reconnecting
from servers.mjpeg_server import number_in
from servers.rtsp_camera import Proxy, RtspCamera, rtsp_absent

from ptedge.errors import InputError
from ptedge.frames.source import LiveOptions, open_frames

ABSENT = rtsp_absent()
pytestmark = pytest.mark.skipif(bool(ABSENT), reason=ABSENT)
QUICK = LiveOptions(connect=5.0, stall=0.8, first_wait=0.02, longest_wait=0.2)
after = partial(reconnecting.after, seconds=6.0)


def test_rtsp__frames_and_their_age() -> None:
    with RtspCamera() as camera, open_frames(camera.url, limit=60, live=QUICK) as source:
        read = list(source)
    assert source.fps == 25 and read[0].image.shape == (240, 320, 3)
    times = [frame.time for frame in read]
    assert times == sorted(times) and times[0] is not None
    # the server writes into each frame when it was made; connecting takes a second, in which frames pile up
    ages = [((frame.wall or 0) * 25 - number_in(frame.image)) % 50 / 25 for frame in read]
    assert sorted(ages[-10:])[2] < 1.0


def test_rtsp__killed_and_restarted_with_another_size() -> None:
    with RtspCamera() as camera, open_frames(camera.url, live=QUICK) as source:
        frames = iter(source)
        next(frames)
        camera.kill()
        camera.size = (160, 128)
        camera.start()
        assert after(frames, 1, source).image.shape == (128, 160, 3)
        assert source.status.resizes == 1 and source.status.outage > 0


def test_rtsp__frozen() -> None:
    with RtspCamera() as camera, open_frames(camera.url, live=QUICK) as source:
        frames = iter(source)
        next(frames)
        camera.freeze()
        threading.Timer(2.5, camera.thaw).start()
        after(frames, 1, source)
        assert source.status.stalls >= 1


def test_rtsp__slow_is_no_stall() -> None:
    with RtspCamera(fps=6) as camera, open_frames(camera.url, limit=4, live=QUICK) as source:
        assert len(list(source)) == 4
        assert source.status.reconnects == 0


def test_rtsp__damaged_and_cut() -> None:
    with (
        RtspCamera() as camera,
        Proxy(camera.port) as proxy,
        open_frames(f"rtsp://127.0.0.1:{proxy.port}/stream", live=QUICK) as source,
    ):
        frames = iter(source)
        next(frames)
        proxy.damage = 0.3
        end = time.monotonic() + 1
        while time.monotonic() < end:  # what FFmpeg makes of it is its own affair; frames go on
            assert next(frames).image.shape == (240, 320, 3)
        proxy.damage = 0.0
        seen = source.status.reconnects
        proxy.cut()
        after(frames, seen + 1, source)


def test_rtsp__login_never_shows(capfd: pytest.CaptureFixture[str]) -> None:
    with RtspCamera(login="user:secret") as camera:
        with open_frames(camera.url.replace("//", "//user:secret@"), limit=2, live=QUICK) as source:
            read = list(source)
        assert len(read) == 2
        with pytest.raises(InputError, match="answers, so check the path, the user name and the password") as error:
            open_frames(camera.url.replace("//", "//user:secret0@"), live=QUICK)
    shown = f"{source!r} {read[0].source} {error.value}" + "".join(capfd.readouterr())
    assert "secret" not in shown and "rtsp://***@127.0.0.1" in shown


def test_rtsp__nothing_listens(capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(InputError, match=r"rtsp://\*\*\*@127\.0\.0\.1:1/x .*nothing answers .*port 1 .*refused"):
        open_frames("rtsp://user:secret@127.0.0.1:1/x", live=QUICK)
    assert "secret" not in "".join(capfd.readouterr())


def test_rtsp__the_process_ends_properly_while_a_camera_is_silent() -> None:
    code = """
import sys
from ptedge.frames import LiveOptions, open_frames
source = open_frames(sys.argv[1], live=LiveOptions(stall=1.5))
frames = iter(source)
next(frames)
print("frame", flush=True)
sys.stdin.readline()
sys.exit(7)
"""
    with (
        RtspCamera() as camera,
        subprocess.Popen(
            [sys.executable, "-c", code, camera.url],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        ) as client,
    ):
        assert client.stdout is not None and client.stdin is not None
        assert client.stdout.readline() == "frame\n"
        camera.freeze()
        time.sleep(0.2)
        client.stdin.write("\n")
        client.stdin.close()
        assert client.wait(6) == 7  # not 134: an aborted process

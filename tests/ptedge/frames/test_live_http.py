"""Motion JPEG and single pictures over HTTP, against a real server on 127.0.0.1 with faults to switch on."""

from __future__ import annotations

import shutil
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from places import SHARED
from servers.mjpeg_server import MjpegServer, number_in
from servers.reconnecting import after

from ptedge.errors import InputError
from ptedge.frames import http
from ptedge.frames.source import LiveOptions, open_frames
from ptedge.frames.status import StreamError

QUICK = LiveOptions(connect=1.0, stall=0.4, first_wait=0.02, longest_wait=0.1)


def test_mjpeg__killed_and_restarted_ten_times_with_other_sizes() -> None:
    sizes = [(64, 48), (96, 64), (48, 64)]
    with MjpegServer(every=0.01) as camera, open_frames(camera.url, live=QUICK) as source:
        frames = iter(source)
        seen = [next(frames).index]
        for n in range(1, 11):
            camera.stop()
            camera.size = sizes[n % 3]
            camera.start()
            frame = after(frames, n, source)
            seen.append(frame.index)
            assert frame.image.shape[:2] == sizes[n % 3][::-1]
        status = source.status
        assert status.reconnects == 10 and status.resizes == 10
        assert seen == sorted(set(seen))
        assert status.frames == status.delivered + status.dropped + status.corrupt + (status.frames - seen[-1] - 1)


def test_mjpeg__stalled() -> None:
    with MjpegServer() as camera, open_frames(camera.url, live=QUICK) as source:
        frames = iter(source)
        next(frames)
        camera.stalled = True
        threading.Timer(0.6, setattr, (camera, "stalled", False)).start()
        after(frames, 1, source)
        assert source.status.stalls >= 1 and 0.4 < source.status.outage < 3


def test_mjpeg__bytes_that_never_make_a_picture_are_a_stall() -> None:
    with MjpegServer() as camera, open_frames(camera.url, live=QUICK) as source:
        frames = iter(source)
        next(frames)
        camera.trickle = 0.02  # some 700 bytes: 14 s a picture
        threading.Timer(0.7, setattr, (camera, "trickle", 0.0)).start()
        after(frames, 1, source)
        assert source.status.stalls >= 1


def test_mjpeg__slow_is_no_stall() -> None:
    with MjpegServer(every=0.25) as camera, open_frames(camera.url, live=QUICK) as source:
        frames = iter(source)
        read = [next(frames) for _ in range(4)]
        assert [number_in(frame.image) for frame in read] == [0, 1, 2, 3]
        assert source.status.stalls == 0 and source.status.reconnects == 0


@pytest.mark.parametrize("newest", [True, False])
def test_mjpeg__corrupt_pictures_are_counted(newest: bool) -> None:
    with (
        MjpegServer(every=0.005, corrupt=3, frames=30) as camera,
        open_frames(camera.url, live=LiveOptions(newest=newest, connect=1, attempts=1)) as source,
    ):
        numbers = [number_in(frame.image) for frame, _ in zip(source, range(15), strict=False)]
    assert not [n for n in numbers if n % 3 == 2]  # every third is cut in half
    status = source.status
    assert 1 <= status.corrupt <= 10 and status.reconnects == 0
    assert status.frames - (status.delivered + status.dropped + status.passed + status.corrupt) in range(9)  # waiting
    if not newest:
        assert numbers == [n for n in range(30) if n % 3 != 2][:15]


def test_mjpeg__garbage_between_parts() -> None:
    lossless = LiveOptions(newest=False, connect=1, stall=1)
    with MjpegServer(every=0.005, garbage=4) as camera, open_frames(camera.url, live=lossless) as source:
        frames = iter(source)
        assert [number_in(next(frames).image) for _ in range(9)] == [0, 1, 2, 4, 5, 6, 8, 9, 10]
        assert source.status.reconnects == 0


@pytest.mark.parametrize("settings", [{"with_length": False}, {"wrong_length": 300}, {"announced": "--frame"}])
def test_mjpeg__what_cameras_get_wrong(settings: dict[str, object]) -> None:
    lossless = LiveOptions(newest=False, connect=1, stall=1)
    with MjpegServer(every=0.005, **settings) as camera, open_frames(camera.url, live=lossless) as source:
        frames = iter(source)
        assert [number_in(next(frames).image) for _ in range(10)] == list(range(10))
        assert source.status.corrupt == source.status.reconnects == 0


def test_mjpeg__a_slow_taker_gets_the_newest() -> None:
    with MjpegServer(every=0.01) as camera, open_frames(camera.url, live=QUICK) as source:
        frames = iter(source)
        next(frames)
        for _ in range(3):
            time.sleep(0.1)
            frame = next(frames)
            assert frame.arrived is not None and time.monotonic() - frame.arrived < 0.08
        assert source.status.dropped >= 10
        assert frame.index == source.status.delivered + source.status.dropped + source.status.passed - 1


def test_mjpeg__start_stride_rate_limit() -> None:
    lossless = LiveOptions(newest=False, connect=1)
    with MjpegServer(every=0.005) as camera:
        with open_frames(camera.url, live=lossless, start=2, stride=3, limit=4) as source:
            assert [frame.index for frame in source] == [2, 5, 8, 11]
        with open_frames(camera.url, live=lossless, rate=20, limit=5) as source:
            times = [frame.time for frame in source]
            assert source.fps == 20
    assert [round(time * 20) for time in times if time is not None] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("digest", [False, True])
def test_login(digest: bool, capfd: pytest.CaptureFixture[str]) -> None:
    with MjpegServer(login=("us er", "se/cret"), digest=digest) as camera:
        address = camera.url.replace("//", "//us%20er:se%2Fcret@")
        with open_frames(address, limit=3, live=QUICK) as source:
            read = list(source)
        assert len(read) == 3
        shown = f"{source!r} {read[0].source} {source.spec} {[e.text for e in source.status.events]}"
        with pytest.raises(InputError, match=r"wants another user name or password \(HTTP 401") as error:
            open_frames(camera.url.replace("//", "//user:wrong-cret@"), live=QUICK)
    shown += str(error.value) + "".join(capfd.readouterr())
    assert "cret" not in shown and "us%20er" not in shown and "***" in shown


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificate")
def test_https__a_camera_with_a_certificate_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "camera.pem"
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 2 -subj /CN=camera "
    command += f"-addext subjectAltName=IP:127.0.0.1 -keyout {file} -out {tmp_path / 'certificate.pem'}"
    subprocess.run(command.split(), check=True, capture_output=True)
    file.write_text(file.read_text() + (tmp_path / "certificate.pem").read_text())
    with MjpegServer(certificate=file) as camera:
        with pytest.raises(InputError, match=r"certificate is not trusted .*SSL_CERT_FILE"):
            open_frames(camera.url, live=QUICK)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        with open_frames(camera.url, limit=3, live=QUICK) as source:
            assert len(list(source)) == 3


def test_pictures_one_at_a_time() -> None:
    with MjpegServer() as camera:
        with open_frames(camera.url.replace("stream", "picture.jpg"), rate=20, limit=4, live=QUICK) as source:
            numbers = [number_in(frame.image) for frame in source]
        assert numbers == sorted(set(numbers)) and numbers[0] == 0  # each asked for once
        assert len(numbers) == 4 and camera.requests >= 4


def test_pictures_one_at_a_time__that_never_end() -> None:
    with (
        MjpegServer(trickle=0.02) as camera,
        open_frames(camera.url.replace("stream", "picture"), live=QUICK) as source,
    ):
        stalled = lambda: [event for event in source.status.events if "no picture in 0.4 s" in event.text]  # noqa: E731
        until = time.monotonic() + 10
        while not stalled() and time.monotonic() < until:
            time.sleep(0.01)
        assert stalled()


def test_pictures_one_at_a_time__that_are_too_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http, "LONGEST_SNAPSHOT", 100)
    with MjpegServer() as camera:
        stream = http.HttpStream(camera.url.replace("stream", "picture"), QUICK)
        with pytest.raises(StreamError, match="longer than"):
            stream.read()


@pytest.mark.parametrize(("path", "why"), [("nothing", "HTTP 404"), ("text", "cannot be opened")])
def test_wrong_addresses(path: str, why: str) -> None:
    with MjpegServer() as camera, pytest.raises(InputError, match=why):
        open_frames(camera.url.replace("stream", path), live=QUICK)


def test_nothing_listens() -> None:
    camera = MjpegServer()
    camera.start()
    camera.stop()
    with pytest.raises(InputError, match="refused"):
        open_frames(camera.url, live=QUICK)


def test_loop__is_refused_for_live_sources() -> None:
    with MjpegServer() as camera, pytest.raises(InputError, match="no end"):
        open_frames(camera.url, loop=True, live=QUICK)


def test_second_iteration_connects_anew() -> None:
    with MjpegServer() as camera, open_frames(camera.url, limit=2, live=QUICK) as source:
        for _ in range(2):
            assert len(list(source)) == 2
            assert source.status.delivered == 2 and source.status.state == "ended"


def test_video_file_over_http(tmp_path: Path) -> None:
    sample = SHARED / "video" / "test_video.mp4"
    if not sample.is_file():
        pytest.skip("shared/data/video is absent")
    code = "import http.server, sys; s = http.server.ThreadingHTTPServer(('127.0.0.1', 0), "
    code += "http.server.SimpleHTTPRequestHandler); print(s.server_address[1], flush=True); s.serve_forever()"
    with subprocess.Popen(
        [sys.executable, "-c", code], cwd=sample.parent, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        try:
            assert server.stdout is not None
            port = int(server.stdout.readline())
            source = open_frames(f"http://u:secret@127.0.0.1:{port}/{sample.name}", stride=10)
            assert (source.kind, source.count, source.fps) == ("video", 4, 25.0)
            read = list(source)
        finally:
            server.kill()
    assert [frame.time for frame in read] == pytest.approx([0, 0.4, 0.8, 1.2])
    assert read[0].source.startswith("http://***@127.0.0.1") and "secret" not in repr(source)

"""Logins from the environment and from files, and where they may go."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import pytest
from servers.mjpeg_server import MjpegServer

from ptedge.errors import InputError
from ptedge.frames.http_client import same_origin
from ptedge.frames.login import read_logins, with_login
from ptedge.frames.source import open_frames
from ptedge.frames.status import LiveOptions

QUICK = LiveOptions(connect=1.0, stall=0.4, first_wait=0.02, longest_wait=0.1)


@pytest.fixture(autouse=True)
def no_logins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PTEDGE_SOURCE_AUTH", "PTEDGE_SOURCE_AUTH_FILE"):
        monkeypatch.delenv(name, raising=False)


def test_with_login__from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    assert with_login("rtsp://cam/1") == "rtsp://cam/1"
    monkeypatch.setenv("PTEDGE_SOURCE_AUTH", "admin:Ge#h:e/im")
    assert with_login("rtsp://cam:554/1") == "rtsp://admin:Ge%23h%3Ae%2Fim@cam:554/1"
    assert with_login("HTTP://cam/1?a=b") == "http://admin:Ge%23h%3Ae%2Fim@cam/1?a=b"
    for own in (
        "rtsp://a:b@cam/1",
        "rtsp://a@cam/1",
        "csi://0",
        "0",
        "a ! b",
        "rtspsrc location=rtsp://cam/1 ! appsink",
    ):
        assert with_login(own) == own


def test_with_login__from_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "logins"
    file.write_text(
        "# cameras\n"
        "machine Cam1 login a password b\n"
        'machine cam2:8080\n  login viewer\n  password "with \\" and \\\\ #"\n'
        "machine cam2 login c password d account ignored\n"
        "machine fe80::1 login six password x\n"
    )
    assert with_login("rtsp://cam1:554/x", file) == "rtsp://a:b@cam1:554/x"
    assert with_login("http://CAM2:8080/", file) == "http://viewer:with%20%22%20and%20%5C%20%23@CAM2:8080/"
    assert with_login("http://cam2/", file) == "http://c:d@cam2/"
    assert with_login("http://[fe80::1]:80/", file) == "http://six:x@[fe80::1]:80/"
    assert with_login("http://cam3/", file) == "http://cam3/"
    monkeypatch.setenv("PTEDGE_SOURCE_AUTH", "e:f")
    assert with_login("http://cam3/", file) == "http://e:f@cam3/"
    monkeypatch.setenv("PTEDGE_SOURCE_AUTH_FILE", str(file))
    assert with_login("rtsp://cam1/x") == "rtsp://a:b@cam1/x"
    file.write_text("default login g password h")
    assert with_login("http://anything/", file) == "http://g:h@anything/"


@pytest.mark.parametrize(
    "content", ["login a", "machine", "machine x login", "machine x user Geheim", "Geheim", "\xff Geheim"]
)
def test_read_logins__another_form_is_not_shown(tmp_path: Path, content: str) -> None:
    (tmp_path / "logins").write_text("\n" + content, "latin-1")
    with pytest.raises(InputError, match=r"logins, line 2: it should read: machine HOST") as error:
        read_logins(tmp_path / "logins")
    assert "Geheim" not in str(error.value)


def test_read_logins__no_file(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "nothing", Path("/dev/zero")):
        with pytest.raises(InputError, match="cannot be read"):
            read_logins(path)


@pytest.mark.parametrize("digest", [False, True])
def test_open_frames__with_a_login_of_the_environment(monkeypatch: pytest.MonkeyPatch, digest: bool) -> None:
    monkeypatch.setenv("PTEDGE_SOURCE_AUTH", "ad min:Ge#heim")
    with (
        MjpegServer(login=("ad min", "Ge#heim"), digest=digest) as camera,
        open_frames(camera.url, limit=2, live=QUICK) as source,
    ):
        assert len(list(source)) == 2
    shown = f"{source!r} {source.spec} {[event.text for event in source.status.events]}"
    assert "heim" not in shown and "@" not in source.spec


@pytest.mark.parametrize("digest", [False, True])
def test_redirect__the_login_is_kept_within_an_origin(digest: bool) -> None:
    with MjpegServer(login=("u", "secret"), digest=digest) as camera:
        camera.moved = camera.url
        address = camera.url.replace("//", "//u:secret@").replace("stream", "moved")
        with open_frames(address, limit=2, live=QUICK) as source:
            assert len(list(source)) == 2


@pytest.mark.parametrize("digest", [False, True])
def test_redirect__the_login_is_dropped_elsewhere(digest: bool) -> None:
    with MjpegServer(login=("u", "secret"), digest=digest) as other, MjpegServer(moved=other.url) as camera:
        address = camera.url.replace("//", "//u:secret@").replace("stream", "moved")
        with pytest.raises(InputError, match=r"sent us on to another server. Give that address: http://127.0.0.1"):
            open_frames(address, live=QUICK)
        assert other.logins and not any(other.logins)


def test_redirect__from_a_login_that_was_given_to_a_server_without_one() -> None:
    with MjpegServer() as other, MjpegServer(login=("u", "secret"), moved=other.url) as camera:
        address = camera.url.replace("//", "//u:secret@").replace("stream", "moved")
        with open_frames(address, limit=2, live=QUICK) as source:
            assert len(list(source)) == 2
        assert any(camera.logins) and not any(other.logins)


@pytest.mark.parametrize("target", ["file:///etc/passwd", "ftp://127.0.0.1/a", "data:image/png;base64,AA", "moved"])
def test_redirect__to_nowhere(target: str) -> None:
    with MjpegServer(moved=target) as camera, pytest.raises(InputError, match=r"HTTP 302|url type"):
        open_frames(camera.url.replace("stream", "moved"), live=QUICK)


def test_same_origin() -> None:
    assert same_origin("http://cam/a", "HTTP://Cam:80/b")
    assert same_origin("https://cam", "https://cam:443/")
    for other in ("https://cam/a", "http://cam:81/a", "http://cam2/a", "http://cam:x/"):
        assert not same_origin("http://cam/a", other)


def test_connecting__a_header_byte_by_byte_does_not_last_for_ever() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        done = threading.Event()

        def trickle() -> None:
            connection, _ = server.accept()
            with connection:
                while not done.wait(0.05):
                    try:
                        connection.sendall(b"H")
                    except OSError:
                        done.set()

        thread = threading.Thread(target=trickle, daemon=True)
        thread.start()
        with pytest.raises(InputError, match=r"no (answer|connection) in 0\.3 s"):
            open_frames(f"http://127.0.0.1:{server.getsockname()[1]}/", live=LiveOptions(connect=0.3, stall=0.3))
        thread.join(3)
        assert done.is_set()  # the connection is closed, and not only left behind
        done.set()

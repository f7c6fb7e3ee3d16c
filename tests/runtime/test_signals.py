from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time

from ptedge.runtime.signals import Stop, stop_on_signals


def test_stop_on_signals__first_signal_only_asks() -> None:
    before = signal.getsignal(signal.SIGTERM)
    with stop_on_signals() as stop:
        assert (stop.exit_status, stop.event.is_set()) == (0, False)
        os.kill(os.getpid(), signal.SIGTERM)
        assert stop.event.wait(5)
    assert stop.signal == signal.SIGTERM and stop.exit_status == 143
    assert signal.getsignal(signal.SIGTERM) is before


def test_stop_on_signals__second_signal_ends_the_process() -> None:
    code = """
import time
from ptedge.runtime.signals import stop_on_signals
with stop_on_signals() as stop:
    print("ready", flush=True)
    stop.event.wait()
    print("asked", flush=True)
    time.sleep(60)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for word in ("ready", "asked"):
            assert process.stdout.readline().strip() == word
            process.send_signal(signal.SIGINT)
        # by the signal itself, or by the watching thread where a busy machine lets the main one wait: 130 to a shell
        assert process.wait(timeout=30) in (-signal.SIGINT, 128 + signal.SIGINT)


def test_stop_on_signals__second_signal_ends_a_process_that_hangs() -> None:
    """The main thread sits in a long call of a library, as in a driver; no Python handler can run."""
    code = """
import hashlib
from ptedge.runtime.signals import stop_on_signals
with stop_on_signals():
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"x", b"y", 1_000_000_000)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline().strip() == "ready"
        process.send_signal(signal.SIGTERM)
        time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 143


def test_stop_on_signals__on_another_thread_installs_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[Stop] = []

    def work() -> None:
        with stop_on_signals() as stop:
            assert signal.getsignal(signal.SIGINT) is before
            seen.append(stop)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen[0].exit_status == 0

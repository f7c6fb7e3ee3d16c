from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable

import pytest

from ptedge.signals import Stop, finishing, leave_to_parent, unwatch, watch

HANG = "import hashlib; hashlib.pbkdf2_hmac('sha256', b'x', b'y', 1_000_000_000)"  # no Python handler can run


def talk(code: str, *steps: tuple[str, signal.Signals], command: tuple[str, ...] = ()) -> tuple[int, str]:
    """Run code; after each word that it prints send a signal. Its exit status, and what else it printed."""
    with subprocess.Popen([*command, sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            for word, number in steps:
                assert process.stdout.readline().strip() == word
                process.send_signal(number)
            rest = process.stdout.read()
            return process.wait(60), rest
        finally:
            process.kill()


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)], ids=str
)
def test_finishing__first_signal_only_asks(
    number: signal.Signals, status: int, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(number)
    with finishing("ending soon") as stop:
        assert (stop.exit_status, stop.event.is_set()) == (0, False)
        os.kill(os.getpid(), number)
        assert stop.event.wait(5)
    assert stop.signal == number and stop.exit_status == status
    assert signal.getsignal(number) is before
    assert capsys.readouterr().err.strip() == f"{number.name}: ending soon"


def test_finishing__second_signal_ends_the_process_and_others_with_it() -> None:
    code = """
import time
from ptedge.signals import finishing
with finishing(again=lambda: print("others", flush=True)) as stop:
    print("ready", flush=True)
    stop.event.wait()
    print("asked", flush=True)
    time.sleep(60)
"""
    status, rest = talk(code, ("ready", signal.SIGINT), ("asked", signal.SIGINT))
    # by the signal itself, or by the counting thread where a busy machine lets the main one wait: 130 to a shell
    assert status in (-signal.SIGINT, 130) and rest.split()[0] == "others"


def test_finishing__second_signal_ends_a_process_that_hangs() -> None:
    code = f"""
import os, signal, threading, time
from ptedge.signals import finishing
def ask():
    time.sleep(0.2)
    os.kill(os.getpid(), signal.SIGTERM)
with finishing():
    print("ready", flush=True)
    threading.Thread(target=ask, daemon=True).start()
    {HANG}
"""
    assert talk(code, ("ready", signal.SIGTERM))[0] == 143


def test_finishing__a_signal_after_the_block_is_the_second() -> None:
    code = """
import time
from ptedge.signals import finishing, watch
watch()
with finishing() as stop:
    print("ready", flush=True)
    stop.event.wait()
print("reporting", flush=True)
time.sleep(60)
"""
    assert talk(code, ("ready", signal.SIGTERM), ("reporting", signal.SIGTERM))[0] in (-signal.SIGTERM, 143)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_watch__with_nothing_to_finish_the_first_signal_ends(number: signal.Signals) -> None:
    code = """
import time
from ptedge.signals import watch
watch()
try:
    print("ready", flush=True)
    time.sleep(60)
finally:
    print("cleaned", flush=True)
"""
    assert talk(code, ("ready", number)) == (128 + number, "cleaned\n")


@pytest.mark.parametrize("swallowed", [False, True])
def test_watch__also_while_the_main_thread_hangs_or_does_not_listen(swallowed: bool) -> None:
    code = f"""
import time
from ptedge.signals import watch
watch()
print("ready", flush=True)
try:
    time.sleep(60) if {swallowed} else None
except BaseException:  # as a callback of a C library does
    time.sleep(60)
{HANG}
"""
    assert talk(code, ("ready", signal.SIGTERM))[0] == 143


def test_watch__a_hangup_that_nohup_ignores_stays_ignored() -> None:
    before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with finishing() as stop:
            os.kill(os.getpid(), signal.SIGHUP)
            assert not stop.event.wait(0.1)
    finally:
        signal.signal(signal.SIGHUP, before)


def unshares() -> bool:
    tool = shutil.which("unshare")
    return tool is not None and subprocess.run([tool, "--fork", "--pid", "true"], check=False).returncode == 0


@pytest.mark.skipif(not unshares(), reason="no PID namespace: needs unshare and root")
@pytest.mark.parametrize("second", [False, True])
def test_watch__as_the_first_process_of_a_container(second: bool) -> None:
    """Such a process has no default action for any signal: without a handler it is lost."""
    block = "with finishing() as stop:\n    stop.event.wait()\n    ask()\n    time.sleep(60)"
    code = f"""
import os, signal, sys, threading, time
from ptedge.signals import finishing, watch
assert os.getpid() == 1
ask = lambda: os.kill(1, signal.SIGTERM)
watch()
threading.Timer(0.2, ask).start()
{block if second else "time.sleep(60)"}
"""
    command = ["unshare", "--fork", "--pid", "--kill-child", sys.executable, "-c", code]
    assert subprocess.run(command, timeout=60, check=False).returncode == 143


def test_watch__on_another_thread_installs_nothing() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[Stop] = []

    def work() -> None:
        watch()
        with finishing() as stop:
            assert signal.getsignal(signal.SIGINT) is before
            seen.append(stop)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen[0].exit_status == 0


def in_child(then: Callable[[], int]) -> int:
    """What a forked process returns."""
    pid = os.fork()
    if pid == 0:
        os._exit(then())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def test_watch__what_reaches_a_forked_worker_is_not_counted() -> None:
    def signalled() -> int:
        os.kill(os.getpid(), signal.SIGINT)
        os.kill(os.getpid(), signal.SIGHUP)
        leave_to_parent(also_term=True)
        os.kill(os.getpid(), signal.SIGTERM)
        return 7

    watch()
    try:
        with finishing() as stop:
            assert in_child(signalled) == 7
            assert in_child(lambda: os.kill(os.getpid(), signal.SIGTERM) or 7) == -signal.SIGTERM
            assert not stop.event.wait(0.5)
    finally:
        unwatch()


def test_watch__nor_when_the_worker_has_handlers_of_its_own() -> None:
    code = """
import os, signal, time
from ptedge.signals import watch
watch()
pid = os.fork()
if pid == 0:
    signal.signal(signal.SIGINT, lambda *_: None)
    for _ in range(2):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
    os._exit(0)
os.waitpid(pid, 0)
time.sleep(2.5)  # the time that the main thread would have to end by itself, and more
print("alive")
"""
    assert talk(code) == (0, "alive\n")


def test_entry__signals_come_before_anything_else_is_loaded() -> None:
    code = """
import sys
import ptedge.__main__
print(sorted({"click", "numpy", "dataclasses", "socket", "pathlib"} & set(sys.modules)))
"""
    words = [sys.executable, "-S", "-c", f"import sys; sys.path[:] = {sys.path!r}{code}"]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    assert done.stdout == "[]\n", done.stderr

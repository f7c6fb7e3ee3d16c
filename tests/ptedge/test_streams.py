from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SPEAK = """
import logging, sys, threading, warnings
import click
from ptedge.cli import COMMANDS, cli, main
@click.command()
def speak():
    for i in range(100):
        click.echo("x" * 1000, err=True)
    print("print", file=sys.stderr, flush=True)
    print("reentrant", file=sys.stderr)
    thread = threading.Thread(target=lambda: click.echo("thread", err=True))
    thread.start()
    thread.join()
    logging.warning("logging")
    warnings.warn("warning")
    rich()
    click.echo("the report")
def rich():
    try:
        from rich.console import Console
        from rich.progress import Progress
    except ModuleNotFoundError:  # as on a device
        return
    with Progress(console=Console(stderr=True, force_terminal=True)) as bar:
        bar.update(bar.add_task("steps", total=2), advance=1)
    Console(stderr=True).print("rich")
COMMANDS["speak"] = ("", "")
type(cli).get_command = lambda self, ctx, name: speak
sys.argv = ["ptedge", "speak"]
main()
"""
FULL = Path("/dev/full")


def speak(how: str = "", **streams: int) -> subprocess.CompletedProcess[str]:
    """Run a command that says a lot, with its descriptors as a shell sets them."""
    words = ["bash", "-c", f'exec "$@" {how}', "bash", sys.executable, "-c", SPEAK]
    given = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    return subprocess.run(words, text=True, check=False, timeout=120, **given)  # type: ignore[call-overload,no-any-return]


needs_bash = pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")


@needs_bash
def test_stderr__whole() -> None:
    done = speak()
    assert (done.returncode, done.stdout) == (0, "the report\n")
    words = ["print", "thread", "logging", "warning"]
    words += ["steps", "rich"] if importlib.util.find_spec("rich") is not None else []
    assert [word for word in words if word not in done.stderr] == []


@needs_bash
def test_stderr__a_reader_that_has_gone_away_ends_nothing() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = speak(stderr=writing)
    finally:
        os.close(writing)
    assert (done.returncode, done.stdout) == (0, "the report\n")


@needs_bash
def test_stderr__a_reader_that_has_stopped_reading_ends_nothing() -> None:
    reading, writing = os.pipe()  # 64 KiB, and more is said
    try:
        done = speak(stderr=writing)
    finally:
        os.close(writing)
        os.close(reading)
    assert (done.returncode, done.stdout) == (0, "the report\n")


@needs_bash
def test_stderr__a_terminal_that_is_gone_ends_nothing() -> None:
    ours, theirs = os.openpty()
    os.close(ours)  # writing gives EIO from now on
    try:
        done = speak(stderr=theirs)
    finally:
        os.close(theirs)
    assert (done.returncode, done.stdout) == (0, "the report\n")


@needs_bash
@pytest.mark.parametrize("how", ["2>&-", "2>&- <&-", "2>/dev/full"])
def test_stderr__closed_or_on_a_full_disk_ends_nothing(how: str) -> None:
    if "full" in how and not FULL.exists():
        pytest.skip("no /dev/full")
    done = speak(how)
    assert (done.returncode, done.stdout, done.stderr) == (0, "the report\n", "")


@needs_bash
def test_stdout__closed_is_a_wish_for_no_report() -> None:
    done = speak(">&-")
    assert done.returncode == 0 and "thread" in done.stderr and "Traceback" not in done.stderr


@needs_bash
@pytest.mark.skipif(not FULL.exists(), reason="no /dev/full")
def test_stdout__full_disk_is_one_sentence() -> None:
    done = speak(">/dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith("ptedge: cannot write to stdout: the disk is full")
    assert "Traceback" not in done.stderr


@needs_bash
def test_stdout__a_reader_that_has_seen_enough_gets_no_traceback() -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = speak(stdout=writing)
    finally:
        os.close(writing)
    assert done.returncode == 1 and "Traceback" not in done.stderr and "Exception" not in done.stderr


@needs_bash
@pytest.mark.parametrize("how", ["<&- >&- 2>&-", "2>&-"])
def test_guard__no_file_gets_the_number_of_a_closed_stream(how: str, tmp_path: Path) -> None:
    code = f"""
from ptedge.streams import guard
guard()
with open({str(tmp_path / "numbers")!r}, "w") as file:
    file.write(str(file.fileno() > 2))
"""
    subprocess.run(["bash", "-c", f'exec "$@" {how}', "bash", sys.executable, "-c", code], check=True, timeout=60)
    assert (tmp_path / "numbers").read_text() == "True"


def test_guard__streams_that_somebody_replaced_stay(capsys: pytest.CaptureFixture[str]) -> None:
    from ptedge.streams import guard

    before = sys.stdout, sys.stderr
    guard()
    assert (sys.stdout, sys.stderr) == before

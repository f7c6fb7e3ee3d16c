"""Folders that commands write: one writer, and no two runs' results mixed."""

from __future__ import annotations

import errno
import fcntl
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ptedge.errors import OutputError
from ptedge.folders import (
    LOCK_NAME,
    hold_folder,
    is_at,
    keep_copy,
    refuse_strangers,
    set_aside,
    set_file_aside,
    take_folder,
)

HOLD = """
import os, sys, time
from pathlib import Path
from typing import Any
from ptedge.folders import hold_folder
with hold_folder(Path(sys.argv[1]), "ptedge train"):
    if sys.argv[2:] == ["fork"] and os.fork() == 0:
        os.write(1, b"%d\\n" % os.getpid())
        time.sleep(60)
        os._exit(0)
    os.write(1, b"held\\n")
    time.sleep(60)
"""


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


def holder(folder: Path, *words: str) -> subprocess.Popen[str]:
    return subprocess.Popen([sys.executable, "-c", HOLD, str(folder), *words], stdout=subprocess.PIPE, text=True)


def test_hold_folder__another_process_is_named_and_its_kill_lets_go(tmp_path: Path) -> None:
    with holder(tmp_path / "run") as process:
        assert process.stdout is not None and process.stdout.readline() == "held\n"
        words = rf"run is in use by ptedge train \(process {process.pid} on .+\)\. Wait for it, stop it"
        with pytest.raises(OutputError, match=words), hold_folder(tmp_path / "run", "ptedge train"):
            pass
        process.kill()
    assert names(tmp_path / "run") == [LOCK_NAME]  # left by the killed process, in nobody's way
    with hold_folder(tmp_path / "run", "ptedge train") as descriptor:
        assert descriptor is not None
    assert names(tmp_path / "run") == []


def test_hold_folder__a_forked_worker_does_not_outlive_the_hold(tmp_path: Path) -> None:
    with holder(tmp_path, "fork") as process:
        assert process.stdout is not None
        said = {process.stdout.readline().strip(), process.stdout.readline().strip()}
        worker = int((said - {"held"}).pop())
        process.kill()
        process.wait()
        os.kill(worker, 0)  # it lives
        with hold_folder(tmp_path, "ptedge train"):
            pass
        os.kill(worker, signal.SIGKILL)


def test_hold_folder__within_one_process_too(tmp_path: Path) -> None:
    with hold_folder(tmp_path, "one"), pytest.raises(OutputError, match="in use by one"), hold_folder(tmp_path, "two"):
        pass
    with hold_folder(tmp_path, "three"):
        pass


def test_hold_folder__file_system_without_locks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", refuse)
    said: list[str] = []
    with hold_folder(tmp_path, "one", tell=said.append) as descriptor:
        assert descriptor is None and names(tmp_path) == []
    assert said == [
        f"cannot lock {tmp_path} (No locks available): see to it that no other command writes there meanwhile"
    ]


def test_hold_folder__the_lock_was_removed_between_opening_and_locking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    original, calls = fcntl.flock, []

    def flock(descriptor: int, how: int) -> None:
        if not calls:  # the holder before leaves just now
            (tmp_path / LOCK_NAME).unlink()
        calls.append(how)
        original(descriptor, how)

    monkeypatch.setattr(fcntl, "flock", flock)
    with hold_folder(tmp_path, "one") as descriptor:
        assert descriptor is not None and is_at(tmp_path / LOCK_NAME, descriptor) and len(calls) == 2


def test_hold_folder__inherited_lock_stays_a_file(tmp_path: Path) -> None:
    with hold_folder(tmp_path, "study", inherited=True):
        pass
    assert names(tmp_path) == [LOCK_NAME]


def test_hold_folder__no_link_is_followed(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / LOCK_NAME).symlink_to(tmp_path / "mine")
    with pytest.raises(OutputError, match="cannot write"), hold_folder(tmp_path / "out", "one"):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_take_folder__the_first_free_number(tmp_path: Path) -> None:
    base = tmp_path / "runs" / "detect"
    for wanted in ("detect", "detect-2", "detect-3"):
        with take_folder(None, base, "ptedge run") as folder:
            assert folder == base.with_name(wanted)
            (folder / "x").touch()
    with take_folder(None, base, "one") as one, take_folder(None, base, "two") as two:  # at the same time
        assert (one.name, two.name) == ("detect-4", "detect-5")
    assert names(tmp_path / "runs") == ["detect", "detect-2", "detect-3"]  # what stayed empty is gone


def test_take_folder__named(tmp_path: Path) -> None:
    with take_folder(tmp_path / "mine", tmp_path / "runs", "one") as folder:
        assert folder == tmp_path / "mine" and names(folder) == [LOCK_NAME]
    assert names(tmp_path) == ["mine"]


def test_take_folder__place_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    with pytest.raises(OutputError, match="cannot write"), take_folder(None, tmp_path / "runs" / "detect", "one"):
        pass


def test_set_aside__moves_what_is_named_and_nothing_else(tmp_path: Path) -> None:
    for i in (1, 2):
        (tmp_path / "images").mkdir()
        (tmp_path / "images" / "a.jpg").write_text(f"picture {i}")
        (tmp_path / "lines").write_text(f"lines {i}")
        (tmp_path / "run.json").write_text("{}")
        (tmp_path / "notes.txt").write_text("of the user")
        assert set_aside(tmp_path, ["images", "lines", "absent"], "run.json") == tmp_path / f"earlier-{i}"
        assert names(tmp_path / f"earlier-{i}") == ["images", "lines", "run.json"]
        assert (tmp_path / f"earlier-{i}" / "images" / "a.jpg").read_text() == f"picture {i}"
    assert names(tmp_path) == ["earlier-1", "earlier-2", "notes.txt"]


def test_set_aside__killed_in_between_goes_on_at_the_next_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    original, count = os.rename, [0]

    def rename(source: Path, target: Path) -> None:
        count[0] += 1
        if count[0] == 2:
            raise KeyboardInterrupt
        original(source, target)

    for name in ("a", "b", "run.json"):
        (tmp_path / name).write_text(name)
    with monkeypatch.context() as patch:
        patch.setattr(os, "rename", rename)
        with pytest.raises(KeyboardInterrupt):
            set_aside(tmp_path, ["a", "b"], "run.json")
    assert (tmp_path / "run.json").exists()  # says still what belongs together
    assert set_aside(tmp_path, ["a", "b"], "run.json") == tmp_path / "earlier-1"
    assert names(tmp_path) == ["earlier-1"] and names(tmp_path / "earlier-1") == ["a", "b", "run.json"]


def test_set_aside__a_run_that_wrote_nothing_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "images").mkdir()
    for name in ("lines", "run.json"):
        (tmp_path / name).touch()
    (tmp_path / "run.json").write_text("{}")
    assert set_aside(tmp_path, ["images", "lines"], "run.json") is None
    assert names(tmp_path) == []


def test_set_file_aside__each_keeps_its_content(tmp_path: Path) -> None:
    path = tmp_path / "train.json"
    assert set_file_aside(path) is None
    for i in (1, 2):
        path.write_text(str(i))
        assert set_file_aside(path) == tmp_path / f"train.json.earlier-{i}"
    assert [(tmp_path / f"train.json.earlier-{i}").read_text() for i in (1, 2)] == ["1", "2"]


@pytest.mark.parametrize("links", [True, False])
def test_keep_copy__the_file_is_never_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, links: bool) -> None:
    def refuse(*_: Any) -> None:
        raise OSError(95, "Operation not supported")

    if not links:
        monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "model.pt"
    for i in (1, 2):
        path.write_text(str(i))
        assert keep_copy(path) == tmp_path / f"model.pt.earlier-{i}"
        assert path.read_text() == str(i)
        path.unlink()  # as a file that takes its name does
    assert [(tmp_path / f"model.pt.earlier-{i}").read_text() for i in (1, 2)] == ["1", "2"]


def test_refuse_strangers__also_a_link_that_leads_nowhere(tmp_path: Path) -> None:
    refuse_strangers(tmp_path, ["a", "b"])
    (tmp_path / "b").symlink_to(tmp_path / "nowhere")
    with pytest.raises(OutputError, match=r"/b is there already, and nothing in .* says which run it is of"):
        refuse_strangers(tmp_path, ["a", "b"])

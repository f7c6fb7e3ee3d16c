"""The history: what entries come to, and two who write at the same time."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ptedge.errors import ArtifactError, OutputError
from ptedge.runtime.deployment.check import GateCheck
from ptedge.runtime.deployment.history import Entry, State, append, key_of, read_history, state_of
from ptedge.stores.folder import FolderStore
from ptedge.stores.store import Content


def entries(*steps: tuple[str, str, str]) -> list[Entry]:
    """Of (action, version, before)."""
    return [Entry(i, action, version, before, why=f"w{i}") for i, (action, version, before) in enumerate(steps, 1)]


def test_state_of__promotions_and_rollbacks() -> None:
    state = state_of(
        entries(("promote", "a", ""), ("promote", "b", "a"), ("promote", "c", "b"), ("rollback", "b", "c"))
    )
    assert (state.version, state.earlier, state.number) == ("b", "a", 4)
    assert state.withdrawn == {"c": "w4"}


def test_state_of__a_second_rollback_goes_further_back_and_not_forth() -> None:
    steps = [("promote", "a", ""), ("promote", "b", "a"), ("promote", "c", "b"), ("rollback", "b", "c")]
    state = state_of(entries(*steps, ("rollback", "a", "b")))
    assert state.running == ("a",)
    assert state.earlier is None
    assert set(state.withdrawn) == {"b", "c"}


def test_state_of__rollback_to_a_version_that_was_withdrawn() -> None:
    steps = [("promote", "a", ""), ("promote", "b", "a"), ("rollback", "a", "b"), ("promote", "c", "a")]
    state = state_of(entries(*steps, ("rollback", "b", "c")))
    assert state.running == ("a", "b")


def test_state_of__promoted_again_is_not_withdrawn_and_is_on_probation_again() -> None:
    steps = [("promote", "a", ""), ("promote", "b", "a"), ("keep", "b", "b"), ("rollback", "a", "b")]
    assert state_of(entries(*steps)).kept == {"b"}
    state = state_of(entries(*steps, ("promote", "b", "a")))
    assert state.withdrawn == {}
    assert state.kept == frozenset()
    assert state.running == ("a", "b")


def test_append__writes_and_reads_all_fields(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    check = GateCheck("speed", False, "slow", accepted=True, figures={"ratio": 1.5})

    def make(state: State) -> Entry:
        return Entry(state.number + 1, "promote", "a", files={"model.onnx": "0" * 64}, checks=(check,), why="so")

    entry, state = append(store, make)
    assert state.version == "a"
    assert read_history(store) == [entry]


def test_append__the_second_of_two_looks_again(tmp_path: Path) -> None:
    store = FolderStore(tmp_path)
    seen = []

    def make(state: State) -> Entry:
        seen.append(state.number)
        if len(seen) == 1:  # another is faster
            append(store, lambda state: Entry(state.number + 1, "promote", "other"))
        return Entry(state.number + 1, "promote", "mine", state.version or "")

    entry, _ = append(store, make)
    assert seen == [0, 1]
    assert (entry.number, entry.before) == (2, "other")


def test_append__a_store_that_replaces_tells_by_its_content(tmp_path: Path) -> None:
    class Replacing(FolderStore):
        raced = False

        def put(self, key: str, content: Content) -> bool:
            super().put(key, content)
            if not self.raced:
                self.raced = True
                self.delete(key)
                assert isinstance(content, bytes)
                super().put(key, content.replace(b"mine", b"other"))
            return True

    store = Replacing(tmp_path)
    append(store, lambda state: Entry(state.number + 1, "promote", "mine"))
    assert [entry.version for entry in read_history(store)] == ["other", "mine"]


def test_append__gives_up_where_every_number_is_taken(tmp_path: Path) -> None:
    class Full(FolderStore):
        def put(self, key: str, content: Content) -> bool:
            return False

    with pytest.raises(OutputError, match="Try again later"):
        append(Full(tmp_path), lambda state: Entry(state.number + 1, "promote", "a"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "is no entry"),
        ("[]", "no table"),
        ('{"schema": 99}', "has schema 99"),
        ('{"schema": 1, "number": 1, "action": "fly", "version": "a"}', "must be one of promote"),
        ('{"schema": 1, "number": 1}', "missing action, version"),
    ],
)
def test_read_history__a_damaged_entry_is_named(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / key_of(1)
    path.parent.mkdir()
    path.write_text(text)
    with pytest.raises(ArtifactError, match=words) as error:
        read_history(FolderStore(tmp_path))
    assert "history/00000001.json" in str(error.value)


def test_read_history__a_missing_entry_is_named(tmp_path: Path) -> None:
    for number in (1, 3):
        path = tmp_path / key_of(number)
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"schema": 1, "number": number, "action": "promote", "version": "a"}))
    with pytest.raises(ArtifactError, match=r"no history/00000002\.json"):
        read_history(FolderStore(tmp_path))

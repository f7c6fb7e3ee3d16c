"""No file of data ends in a traceback: thousands of broken files, each read or refused in a sentence."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from mutated_data import READERS, mutations

from ptedge.data import Dataset, open_dataset
from ptedge.data.report import find_problems, statistics
from ptedge.errors import PtedgeError

TRIED = 1100
_IN_MEMORY = Path("/dev/shm")


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory where there is such a place: writing thousands of files to a disk takes a minute."""
    if not os.access(_IN_MEMORY, os.W_OK):
        yield tmp_path
        return
    with tempfile.TemporaryDirectory(dir=_IN_MEMORY) as name:
        yield Path(name)


@pytest.mark.parametrize("reader", READERS)
def test_readers__read_what_is_valid(folder: Path, reader: str) -> None:
    valid = READERS[reader]()
    valid.write(folder)
    data = open_dataset(folder / valid.opened)
    assert data.num_boxes >= 1 and not data.dropped and not data.passed_over and not find_problems(data)


@pytest.mark.parametrize("reader", READERS)
def test_readers__no_mutation_ends_in_a_traceback(folder: Path, reader: str) -> None:
    valid = READERS[reader]()
    valid.write(folder)
    before, read = valid.mutated[0], 0
    for i, (name, content) in enumerate(mutations(valid, TRIED)):
        if name != before:
            (folder / before).write_bytes(valid.files[before])
        before = name
        (folder / name).write_bytes(content)
        try:
            data = open_dataset(folder / valid.opened)
        except PtedgeError as error:
            assert 0 < len(str(error)) < 12_000, f"mutation {i} of {name}: a sentence of {len(str(error))} characters"
            continue
        except Exception as error:
            raise AssertionError(f"mutation {i} of {name}: {content[:300]!r}") from error
        read += 1
        check_sound(data)
        if not i % 10:
            find_problems(data)
            json.dumps(statistics(data), ensure_ascii=False).encode()
    assert read > TRIED / 20, "mutations that are all refused at once try nothing further in"


def check_sound(data: Dataset) -> None:
    """What every data set promises, whatever its files said."""
    for sample in data.samples:
        boxes = sample.boxes
        assert np.isfinite(boxes).all() and (boxes[:, 2:] > boxes[:, :2]).all() and (boxes >= 0).all()
        assert sample.width >= 0 and sample.height >= 0
        if sample.width:
            assert (boxes[:, 2] <= sample.width).all() and (boxes[:, 3] <= sample.height).all()
        assert ((sample.labels >= 0) | sample.ignore).all() and (sample.labels < len(data.class_names)).all()
    assert all(isinstance(name, str) and name for name in data.class_names)

from __future__ import annotations

import sys

import pytest
from places import ROOT

from ptedge.errors import MissingExtraError
from ptedge.extras import EXTRAS, named_extras

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_named_extras__absent_package_is_one_sentence() -> None:
    with (
        pytest.raises(
            MissingExtraError, match=r'^torch is not installed. Install it with: pip install "ptedge\[train\]"$'
        ),
        named_extras(),
    ):
        raise ModuleNotFoundError("No module named 'torch.nn'", name="torch.nn")


def test_named_extras__another_module_is_a_bug() -> None:
    with pytest.raises(ModuleNotFoundError, match="nonsense"), named_extras():
        raise ModuleNotFoundError("No module named 'nonsense'", name="nonsense")


def test_extras__exist() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    assert set(EXTRAS.values()) <= set(project["optional-dependencies"])

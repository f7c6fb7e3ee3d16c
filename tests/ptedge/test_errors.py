from __future__ import annotations

import sys

import pytest
from places import ROOT

from ptedge import errors
from ptedge.errors import (
    EXTRAS,
    ClassMismatchError,
    InputError,
    MissingExtraError,
    PtedgeError,
    missing_extra,
    named_extras,
)

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib


def test_tree__every_error_is_a_ptedge_error_and_drawn_in_the_docstring() -> None:
    found = [v for v in vars(errors).values() if isinstance(v, type) and issubclass(v, PtedgeError)]
    assert len(found) >= 9
    for error in found:
        assert error.__name__ in (errors.__doc__ or ""), error.__name__


def test_class_mismatch_error__names_both_sides_and_advice() -> None:
    error = ClassMismatchError("the model", ["car"], "val.json", ["car", "bus"], "Give --class-map.")
    assert isinstance(error, InputError)
    assert str(error) == (
        "the model has classes ['car'], but val.json has ['car', 'bus'] "
        "(every name counts, their order does not). Give --class-map."
    )


def test_missing_extra__names_the_command_to_type() -> None:
    error = missing_extra("torch", "train")
    assert isinstance(error, MissingExtraError)
    assert str(error) == 'torch is not installed. Install it with: pip install "ptedge[train]"'


def test_ptedge_error__is_no_value_error() -> None:
    # a bug (ValueError) must not be mistaken for the user's mistake
    with pytest.raises(PtedgeError):
        raise InputError("x")
    assert not issubclass(PtedgeError, ValueError)


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

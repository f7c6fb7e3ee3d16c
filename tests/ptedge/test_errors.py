from __future__ import annotations

import pytest

from ptedge import errors
from ptedge.errors import ClassMismatchError, InputError, MissingExtraError, PtedgeError, missing_extra


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

"""Single values: what fits, and what does not."""

from __future__ import annotations

import pytest

from ptedge.data.parsing.values import (
    entry_id,
    flag,
    is_number_text,
    name_text,
    number,
    number_box,
    outline_box,
    pixels,
    shown,
)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((3, 3.0), (0.5, 0.5), ("7", 7.0), (" 1e2 ", 100.0), ("-.5", -0.5), (1e6, 1e6), (-1e6, -1e6)),
        *((float("nan"), None), (float("inf"), None), ("nan", None), ("inf", None), ("1e999", None), (1000001, None)),
        *((True, None), (None, None), ("", None), ("1_0", None), ("0x1", None), ("1,5", None), ("\u0661", None)),
        *(([1], None), ({}, None), (10**400, None), ("9" * 70, None)),
    ],
)
def test_number__finite_and_in_the_usual_notation(value: object, expected: float | None) -> None:
    assert number(value) == expected


def test_number_box__four_numbers() -> None:
    assert number_box([1, "2", 3.5, 4]) == (1, 2, 3.5, 4)
    for value in ([1, 2, 3], [1, 2, 3, None], [1, 2, 3, float("nan")], "1234", None, {"a": 1}, [1, 2, 3, True]):
        assert number_box(value) is None


def test_outline_box__spans_the_vertices() -> None:
    assert outline_box([[5, 6], [9, 3], (2, 8, "L")]) == (2, 3, 9, 8)
    for value in ([], None, [[1]], [1, 2], [["a", 1]], "ab", [[1, float("inf")]]):
        assert outline_box(value) is None


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((None, False), (0, False), ("0", False), ([0], False), (False, False), ("", False), ("Unspecified", False)),
        *((1, True), ("1", True), ([1], True), (True, True), ("TRUE", True), (" yes ", True), (1.0, True)),
        *((2, None), ("2", None), ([0, 1], None), ({}, None), ("maybe", None), (0.5, None), (float("nan"), None)),
    ],
)
def test_flag__every_way_to_say_yes_or_no(value: object, expected: bool | None) -> None:
    assert flag(value) is expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, 0),
        ("", 0),
        (0, 0),
        (640, 640),
        ("480", 480),
        (480.0, 480),
        (-1, None),
        (0.5, None),
        ("a", None),
        ([], None),
    ],
)
def test_pixels__whole_and_not_negative(value: object, expected: int | None) -> None:
    assert pixels(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        *((7, 7), ("7", 7), (" 7 ", 7), (7.0, 7), (-1, -1), ("0", 0), ("car", "car"), ("007", "007"), ("7.0", "7.0")),
        *((None, None), ([1], None), ({}, None), (True, None), (7.5, None), ("", None), (float("inf"), None)),
    ],
)
def test_entry_id__one_form_for_numbers_and_their_text(value: object, expected: int | str | None) -> None:
    assert entry_id(value) == expected and type(entry_id(value)) is type(expected)


def test_name_text__text_that_can_be_printed() -> None:
    assert (name_text(" car "), name_text(3), name_text("車")) == ("car", "3", "車")
    assert name_text("a\ud800") == "a?"
    for value in (None, "", "  ", True, 1.5, ["car"], {}):
        assert name_text(value) is None


def test_is_number_text__and_what_broken_programs_write() -> None:
    assert all(map(is_number_text, ("1", "-0.5", "1e-3", ".5", "nan", "-inf", "Infinity")))
    assert not any(map(is_number_text, ("", "a", "1,5", "0x1", "1_0", "1.#IND", "-")))


def test_shown__short_and_printable() -> None:
    assert shown("x" * 500) == "'" + "x" * 80 + "'"
    assert shown("\ud800") == r"'\ud800'"
    nested: list[object] = []
    for _ in range(100_000):
        nested = [nested]
    assert shown(nested) == "a list, nested deep"
    while nested:  # taken apart level by level
        nested = nested.pop()  # type: ignore[assignment]

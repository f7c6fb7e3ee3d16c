from __future__ import annotations

import pytest

from ptedge.text import printable


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Straße, 車\n\tend", "Straße, 車\n\tend"),
        ("\x1b[2Jgone", r"\x1b[2Jgone"),
        ("a\rb\x07", r"a\rb\x07"),
        ("\u202egnp.exe", r"\u202egnp.exe"),
        ("\ud800", r"\ud800"),
        ("\x9b31m", r"\x9b31m"),
    ],
)
def test_printable__spells_out_what_moves_or_breaks(text: str, expected: str) -> None:
    assert printable(text) == expected
    printable(text).encode("utf-8")

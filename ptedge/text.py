"""Text from files, made safe to print."""

from __future__ import annotations

import re

# controls of the terminal (all but line feed and tab), marks that turn the direction of writing, halves of pairs
_UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def printable(text: str) -> str:
    """A text in which nothing moves the cursor, turns the writing or cannot be encoded: such characters are spelt out.

    Args:
        text: with names from files that anyone may have written.
    """
    return _UNPRINTABLE.sub(lambda found: found[0].encode("unicode_escape").decode(), text)

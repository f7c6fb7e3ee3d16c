"""Silence on request: what a command tells on stderr while it works is left out."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator


@contextlib.contextmanager
def quiet(silent: bool = True) -> Iterator[None]:
    """A block in which nothing is told on stderr, for the whole process; errors are raised as ever.

    Args:
        silent: otherwise nothing changes.
    """
    if not silent:
        yield
        return
    with open(os.devnull, "w", encoding="utf-8") as nowhere, contextlib.redirect_stderr(nowhere):
        yield

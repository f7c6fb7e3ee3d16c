"""Pretend that other packages are installed than really are."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from importlib import metadata
from typing import Any

import pytest

Installed = Callable[[dict[str, str]], None]


def pretend_installed(monkeypatch: pytest.MonkeyPatch, versions: dict[str, str]) -> None:
    """Exactly these distributions are installed, and all of them can be imported."""

    def version(name: str) -> str:
        if name not in versions:
            raise metadata.PackageNotFoundError(name)
        return versions[name]

    monkeypatch.setattr("ptedge.machine.packages.metadata.version", version)
    monkeypatch.setattr("ptedge.machine.tensorrt_install.try_import", lambda module: "")


def forbid_import(monkeypatch: pytest.MonkeyPatch, name: str, message: str) -> None:
    """Importing a module fails with a message."""
    real = builtins.__import__

    def guarded(wanted: str, *arguments: Any, **keywords: Any) -> Any:
        if wanted == name:
            raise ImportError(message, name=name)
        return real(wanted, *arguments, **keywords)

    monkeypatch.setattr(builtins, "__import__", guarded)

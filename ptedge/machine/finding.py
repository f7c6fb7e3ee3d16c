"""What ``ptedge doctor`` found out about one thing, and the command that installs or repairs it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Finding:
    """One thing looked at.

    Attributes:
        kind: what it is, one word for programs: ``gpu``, ``driver``, ``opencv``, ``onnxruntime``, ``tensorrt``...
        name: the same for people.
        status: ``ok``, ``missing`` (an option that is not installed), ``problem`` (ptedge cannot do what it should
            here) or ``info``.
        detail: what was found.
        fix: command that installs or repairs it; empty where there is nothing to do.
    """

    kind: str
    name: str
    status: str
    detail: str
    fix: str = ""

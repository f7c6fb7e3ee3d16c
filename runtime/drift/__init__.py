"""Drift of a run and of a field folder: against the place that the model was made for, or the beginning of the run."""

from __future__ import annotations

__all__ = ["baseline", "collected", "watch"]

"""Frames on their way: from a field folder into a store, and from a store into a field folder.

The commands come in by ``push`` and ``pull``.
"""

__all__ = ["pull", "push"]

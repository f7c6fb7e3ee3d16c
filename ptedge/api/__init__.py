"""The Python API: models that are called with images, streams of frames, and what they find.

``ptedge`` itself shows these names (``ptedge.load``, ``ptedge.stream``, ``ptedge.evaluate``); docs/python.md tells how
they are used. ``train``, ``adapt`` and ``export`` stand with their parts.
"""

__all__ = ["evaluate", "model", "results", "stream"]

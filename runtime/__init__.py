"""Frames in, detections with sigma out, without torch: pipeline, statistics, field folder.

The command line loads ``cli``; the packages within share counters, inputs and the field folder.
"""

__all__ = ["cli", "field", "stats"]

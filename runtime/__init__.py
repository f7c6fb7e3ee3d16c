"""Frames in, detections with sigma out, without torch: options, pipeline, counters, field folder.

The command line loads ``cli`` and ``field_cli``; the packages within share options, counters, masks and field folders.
"""

__all__ = ["cli", "click_options", "counters", "field", "field_cli", "masks", "options", "push_address", "slot"]

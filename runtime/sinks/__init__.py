"""Where detections go: files, video, network, field folder.

A run opens them by name through ``choose`` and speaks to all in one form; the rest are its kinds.
"""

__all__ = ["choose", "collect", "files", "lines", "push"]

"""Unlabelled frames from files, videos and cameras: found, opened, decoded, numbered, and read anew after faults.

Others open a source, or an index for training, by ``source`` and read single images by ``images``; addresses and
states are told by the rest.
"""

__all__ = ["address", "files", "images", "login", "source", "status"]

"""The report of a run: one HTML page that needs nothing from elsewhere.

The command line loads ``cli``; nothing here is read by training.
"""

__all__ = ["cli"]

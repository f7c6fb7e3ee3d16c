"""Which frames a field folder gets, and which it gives up: strategies, quotas, room on the disk.

A strategy is a function (or an object that is called) from a frame and its neighbours to a number, each in a file of
its own; ``choose`` holds them against the frames so far.
"""

__all__ = ["choose", "ledger", "policy", "prune", "reading", "small", "space", "summary", "window"]

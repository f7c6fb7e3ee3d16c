"""A deployment: a place with versions of a bundle, the gate before them, and the record of what ran when.

The command line loads ``cli``; ``ptedge run`` opens a deployment by ``place`` and follows it by ``follow``.
"""

__all__ = ["cli", "follow", "place"]

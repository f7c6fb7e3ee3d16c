"""A deployment: a place with versions of a bundle, the gate before them, and the record of what ran when.

The command line loads ``cli``; ``ptedge run`` follows a deployment by ``place``.
"""

__all__ = ["cli"]

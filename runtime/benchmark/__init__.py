"""How fast bundles run on this machine, and whether two measurements differ.

The command line loads ``cli``; the gate of a deployment measures by ``measure`` and compares by ``stats``.
"""

__all__ = ["cli", "measure", "stats"]

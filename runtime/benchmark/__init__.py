"""How fast bundles run on this machine, and whether two measurements differ.

The command line loads ``cli``; nothing else imports from here.
"""

__all__ = ["cli"]

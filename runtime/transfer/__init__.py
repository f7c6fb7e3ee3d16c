"""What travels: frames from a field folder into a store and from a store into a field folder, and bundles.

The command line comes in by ``push``, ``pull`` and ``bundle_cli``.
"""

__all__ = ["bundle_cli", "pull", "push"]

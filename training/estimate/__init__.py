"""What a model is worth where nobody labelled: corrupted source images teach how label-free signs go with errors.

``finish`` and ``place`` are the last steps of training and adaptation, the command line loads ``cli``; no weight
depends on it.
"""

__all__ = ["cli", "finish", "place"]

"""Commands that belong to no part: eval, data, inspect, doctor.

The command line loads them by name; others ask only what a file says of itself (``describe_...``), and the Python API
shares ``evaluation``.
"""

__all__ = ["data", "describe_bundle", "describe_checkpoint", "doctor", "eval", "evaluation", "inspect"]

"""Commands that belong to no part: eval, data, inspect, doctor.

The command line loads them by name; nothing else imports them.
"""

__all__ = ["data", "doctor", "eval", "inspect"]

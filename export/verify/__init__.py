"""Whether a bundle answers as its checkpoint does, on every backend that is here.

The command calls ``verify`` and tells its ``report``; ``scenes`` compares boxes and sigma, ``labelled`` scores on data.
"""

__all__ = ["backends", "check", "report", "verify"]

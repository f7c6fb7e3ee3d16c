"""Whether a bundle answers as its checkpoint does, on every backend that is here.

The command calls ``verify``; the choice of int8 layers measures with the same means.
"""

__all__ = ["by_layer", "verify"]

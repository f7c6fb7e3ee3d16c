"""Whether a bundle answers as its checkpoint does, on every backend that is here.

The command calls ``verify`` and tells its ``report``; ``scenes`` compares boxes and sigma, ``labelled`` scores on data.
``reference`` is the checkpoint in torch, ``near_ties`` its doubts; all else runs on a device, without torch.
"""

__all__ = ["backends", "check", "report", "verify"]

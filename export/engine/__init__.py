"""TensorRT engines from a bundle, built in a process of their own.

The command calls ``build`` with ``options``; verification runs the same ``process`` for engines of its own.
"""

__all__ = ["build", "options", "process"]

"""TensorRT engines from a bundle, built in a process of their own.

The command calls ``build``; verification knows the worker's words.
"""

__all__ = ["build", "worker"]

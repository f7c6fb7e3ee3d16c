"""The live page of a run and its numbers for Prometheus.

A run starts ``serve`` and feeds ``view``; ``status`` is what the page tells.
"""

__all__ = ["serve", "status", "view"]

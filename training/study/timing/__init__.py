"""What the detectors of a study cost on this machine: graphs exported and timed in turn, tabled and drawn."""

__all__ = ["plot", "run", "table"]

"""How good detections are, given labels: average precision, and whether sigma is true.

Others take the metrics from their modules, or both at once, over a data set, from ``evaluation``.
"""

__all__ = ["average_precision", "evaluation", "sigma_quality"]

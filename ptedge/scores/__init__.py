"""How good detections are, given labels: average precision, whether sigma is true, and where the sides are off.

Others take the metrics from their modules, or both at once, over a data set, from ``evaluation``.
"""

__all__ = ["average_precision", "convention", "evaluation", "sides", "sigma_quality"]

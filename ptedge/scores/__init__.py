"""How good detections are, given labels: average precision, whether sigma is true, and where the sides are off.

Others take the metrics from their modules, or both at once, over a data set, from ``evaluation``; ``calibrate``
corrects sides by a few labels, ``label_free_fit`` says what can be said without, ``paired`` whether two models differ,
and ``jitter`` what a video adds, after ``tracking``.
"""

__all__ = [
    "average_precision",
    "calibrate",
    "convention",
    "evaluation",
    "jitter",
    "label_free",
    "label_free_fit",
    "paired",
    "sides",
    "sigma_quality",
    "tracking",
]

"""The equations of Probabilistic Teacher (docs/method.md) and the losses made of them.

``equations`` are pure functions; a step puts together ``source``, ``target`` and ``align`` from outputs, labels and
``pseudo`` boxes. ``merge`` joins boxes of another detector to the teacher's before they become pseudo boxes;
``distill`` is what a wide ROI head teaches a light one.
"""

__all__ = ["align", "assign", "distill", "equations", "merge", "offset", "pairs", "pseudo", "source", "target"]

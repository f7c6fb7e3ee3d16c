"""The detector in two stages: what lies between the graphs of a model that was cut in two, in NumPy.

``settings`` is what the manifest records for it, ``select`` makes proposals of the first stage's answers and detections
of the second's, ``geometry`` holds the box maths of both. All of it follows the one graph number by number; torch is
not needed.
"""

__all__ = ["select", "settings"]

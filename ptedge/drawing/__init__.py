"""Pictures of detections: boxes with bands of sigma, their lettering, and a legend.

Others draw by ``draw``, on a frame that ``scale`` made fit; ``legend`` and ``lettering`` are for those who put further
things on a picture.
"""

__all__ = ["draw", "legend", "lettering", "scale"]

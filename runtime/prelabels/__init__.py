"""A field folder as pre-labelled data of annotation tools: COCO, YOLO, CVAT, Label Studio, FiftyOne.

``choose`` writes any of them; each format has a module of its own.
"""

__all__ = ["choose"]

"""The Probabilistic Faster R-CNN in torch, from backbone to detections (docs/method.md, section 1).

Others build it by ``model`` and read its settings, without torch, in ``config``; losses and graphs use its parts and
box maths.
"""

__all__ = ["backbone", "cluster", "config", "gaussian", "model", "roi_heads", "rpn"]

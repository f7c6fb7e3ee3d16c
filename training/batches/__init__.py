"""What a step sees: images and frames, letterboxed, in weak and strong views, drawn by seed and place.

``batch`` says what a step is given. Training takes batches from ``steps`` made by ``views``; monitors make theirs the
same way, and ``loader`` prepares them in processes. ``few`` is about labelled frames of the target,
``foreign`` about boxes of another detector.
"""

__all__ = ["augment", "batch", "few", "foreign", "loader", "steps", "views"]

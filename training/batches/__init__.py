"""What a step sees: images and frames, letterboxed, in weak and strong views, drawn by seed and place.

``steps`` gives the endless sequence, ``loader`` prepares it in worker processes.
"""

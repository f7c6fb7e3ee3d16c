"""Runtime parts: frames in, detections with sigma out. Runs without torch."""

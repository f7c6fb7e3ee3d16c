"""Where detections go: files, video, network, field folder.

``choose`` opens them by name.
"""

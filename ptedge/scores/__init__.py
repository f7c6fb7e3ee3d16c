"""How good detections are, given labels: average precision, and whether sigma is true.

``evaluation`` runs a model over a data set and gives both.
"""

"""The Probabilistic Faster R-CNN (torch)."""

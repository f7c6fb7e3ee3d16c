"""Files that ptedge writes and reads again: checkpoint, bundle, engine, and what they record of their origin.

Each module opens, checks and writes one kind; only ``checkpoint`` needs torch.
"""

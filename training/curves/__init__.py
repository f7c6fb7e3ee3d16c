"""What a run did, for people: series from metrics.jsonl, TensorBoard events, plots.

Nothing here is read by training.
"""

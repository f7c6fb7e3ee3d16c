"""What a run did, for people: series from metrics.jsonl, TensorBoard events, plots.

A run writes events and plots when it ends, a study draws with the same pens; nothing here is read by training.
"""

__all__ = ["cli", "drawing", "events", "plots", "quality", "read", "terms"]

"""The equations of Probabilistic Teacher and the losses made of them.

``equations`` are pure functions; ``source``, ``target`` and ``align`` put them together for a batch.
"""

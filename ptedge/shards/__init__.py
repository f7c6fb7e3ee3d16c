"""Frames in a store: shards as WebDataset reads them, an index of each, and single frames out of them.

Others make a shard by ``tar``, learn by ``index`` what a store holds, and read frames by ``reading``.
"""

__all__ = ["index", "reading", "tar"]

"""Readers of labelled data: one module a format, all giving the same lazy :class:`~ptedge.data.dataset.Dataset`."""

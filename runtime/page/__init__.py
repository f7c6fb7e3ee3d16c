"""The live page of a run and its numbers for Prometheus.

``serve`` is what a run starts.
"""

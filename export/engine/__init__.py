"""TensorRT engines from a bundle, built in a process of their own.

``build`` is what ``ptedge build`` calls.
"""

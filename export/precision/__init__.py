"""The float32 graph in float16 or with int8 layers, and which layers those may be.

The export command calls ``convert``; engines and the contract of a graph read its types, layers and int8 weights.
"""

__all__ = ["convert", "graph_types", "int8_weights", "layers"]

"""From a checkpoint to what runs on the device: graph, precision, engine, proof. Needs the ``export`` extra.

The command line loads ``cli``; the packages within share the graph and made images.
"""

__all__ = ["cli", "graph", "made_images", "to_onnx"]

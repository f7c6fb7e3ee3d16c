"""From a checkpoint to what runs on the device: graph, precision, engine, proof. Needs the ``export`` extra.

The command line loads ``cli``; the packages within share the graph in torch and in ONNX, and network inputs.
"""

__all__ = ["check_graph", "cli", "graph", "network_inputs", "onnx_graph", "onnx_run", "to_onnx"]

"""From a checkpoint to what runs on the device: graph, precision, engine, proof.

Writing a graph needs the ``export`` extra; building an engine and verifying a bundle do without, on a device. The
command line loads ``cli``; the packages within share the graph in torch and in ONNX, and network inputs.
"""

__all__ = ["check_graph", "cli", "graph", "network_inputs", "onnx_graph", "onnx_run", "to_onnx"]

"""Export parts: static ONNX graph, bundle, verification. Needs the `export` extra."""

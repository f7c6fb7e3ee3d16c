"""Files that ptedge writes and reads again: checkpoint, bundle, engine, and what they record of their origin.

Others open and write each kind through its module; only ``checkpoint`` needs torch.
"""

__all__ = [
    "adaptation",
    "bundle",
    "bundle_reference",
    "calibrated_bundle",
    "checkpoint",
    "conversion",
    "engine_file",
    "estimate",
    "graph_sides",
    "lineage",
    "manifest",
    "onnx_metadata",
    "signature",
    "torch_pickle",
    "torch_zip",
    "trust",
]

"""ptedge: keep an object detector good where it is deployed.

This is the core, which every part may use: boxes, detections, the letterbox, settings, errors and files, with packages
for the detector, data, frames, artifacts, backends, scores, the machine and commands. ``__all__`` names the modules
for others, here as in each package.
"""

__version__ = "0.1.0"
__all__ = [
    "__version__",
    "boxes",
    "calibration",
    "config",
    "detections",
    "draw",
    "errors",
    "figures",
    "files",
    "folders",
    "graph_contract",
    "legend",
    "lettering",
    "preprocess",
    "signals",
    "text",
]

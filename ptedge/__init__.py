"""ptedge: keep an object detector good where it is deployed.

From Python (docs/python.md): ``load`` a model and call it with images, ``stream`` a video or a camera through it, and
``train``, ``adapt``, ``evaluate`` and ``export`` as the commands of these names do. They are loaded when they are asked
for, so that ``import ptedge`` takes no time and needs neither torch nor OpenCV.

This package is also the core, which every part may use: boxes, detections, the letterbox, settings, errors and files,
with packages for the detector, data, frames, artifacts, backends, scores, the machine, commands and the Python API.
``__all__`` names the modules for others, here as in each package.
"""

import importlib
from typing import Any

__version__ = "0.1.0"

# name -> module:attribute, as the command line names its commands. Types for checkers stand in __init__.pyi
API = {
    "Detection": "ptedge.api.results:Detection",
    "Evaluation": "ptedge.api.evaluate:Evaluation",
    "ImageDetections": "ptedge.api.results:ImageDetections",
    "Model": "ptedge.api.model:Model",
    "PtedgeError": "ptedge.errors:PtedgeError",
    "adapt": "ptedge.training.api:adapt",
    "evaluate": "ptedge.api.evaluate:evaluate",
    "export": "ptedge.export:",  # the part of this name, which can be called
    "load": "ptedge.api.model:load",
    "stream": "ptedge.api.stream:stream",
    "train": "ptedge.training.api:train",
}


def __getattr__(name: str) -> Any:
    if name not in API:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}", name=name, obj=__import__(__name__))
    place, _, attribute = API[name].partition(":")
    module = importlib.import_module(place)
    return getattr(module, attribute) if attribute else module


def __dir__() -> list[str]:
    return sorted({*globals(), *API})


__all__ = [
    "__version__",
    "boxes",
    "calibration",
    "config",
    "detections",
    "errors",
    "figures",
    "files",
    "folders",
    "graph_contract",
    "preprocess",
    "processes",
    "progress",
    "signals",
    "text",
    "verbosity",
]

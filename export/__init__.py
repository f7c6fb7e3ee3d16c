"""From a checkpoint to what runs on the device: graph, precision, engine, proof.

Writing a graph needs the ``export`` extra; building an engine and verifying a bundle do without, on a device. The
command line loads ``cli``, Python calls the package itself; the packages within share the graph in torch and in ONNX,
and network inputs.
"""

import sys
from types import ModuleType
from typing import Any

from .api import export

__all__ = ["check_graph", "cli", "graph", "network_inputs", "onnx_graph", "onnx_run", "stages", "to_onnx"]


class _ModuleThatIsCalled(ModuleType):
    """In Python, ``ptedge.export`` is this package and the function ``ptedge.export(...)`` at once."""

    __wrapped__ = staticmethod(export)  # for help() and inspect.signature

    def __call__(self, *values: Any, **options: Any) -> Any:
        return export(*values, **options)


sys.modules[__name__].__class__ = _ModuleThatIsCalled

# What ``import ptedge`` offers, for type checkers: __init__.py loads it when it is asked for.
from ptedge.api.evaluate import Evaluation as Evaluation
from ptedge.api.evaluate import evaluate as evaluate
from ptedge.api.model import Model as Model
from ptedge.api.model import load as load
from ptedge.api.results import Detection as Detection
from ptedge.api.results import ImageDetections as ImageDetections
from ptedge.api.stream import stream as stream
from ptedge.errors import PtedgeError as PtedgeError
from ptedge.export.api import export as export
from ptedge.training.api import adapt as adapt
from ptedge.training.api import train as train

__version__: str
API: dict[str, str]

"""What runs a model: ONNX Runtime, TensorRT or a checkpoint in torch, behind one form of asking.

Others open a runner of arrays by ``choose``, or what turns images into detections by the predictors; the rest is for
those who must know which backend it is.
"""

__all__ = [
    "bundle_predictor",
    "checkpoint_predictor",
    "choose",
    "cuda",
    "ort",
    "predictor",
    "promises",
    "providers",
    "runner",
    "trt",
    "uncalibrated",
]

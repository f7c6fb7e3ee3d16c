"""What runs a model: ONNX Runtime, TensorRT or a checkpoint in torch, behind one form of asking.

``choose`` opens a runner for arrays, ``predictor`` opens anything that turns images into detections.
"""

"""Weights that a backbone begins with: ImageNet's by torchvision or a package, or a file that the user has.

``imagenet`` loads them strictly; ``keras_vgg16`` reads one foreign format for it.
"""

__all__ = ["imagenet"]

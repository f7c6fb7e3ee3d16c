"""Whether a bundle answers as its checkpoint does, on every backend that is here.

``verify`` compares boxes and sigma, ``labelled`` compares scores on labelled data.
"""

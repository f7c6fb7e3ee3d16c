"""What this machine is: driver, GPUs, memory, packages; every question to it is asked here.

Nothing here loads a model or needs torch.
"""

"""Training parts: pretraining on source, mutual learning on target. Needs the `train` extra."""

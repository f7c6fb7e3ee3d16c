"""Tables of runs: baselines and variants over seeds, run, scored and compared.

The command line loads ``cli``, and curves draw what ``plot`` makes of a study; ``timing`` stands on the study's plan,
jobs and results; everything else serves the command.
"""

__all__ = ["cli", "cost", "jobs", "load", "plan", "plot", "process", "result", "score", "sections"]

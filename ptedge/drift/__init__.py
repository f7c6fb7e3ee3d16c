"""Whether frames look as those that a model was made for, without labels: measures of a frame, their distribution at
the place of training, and tests of a stream against it, live or of a folder.
"""

from __future__ import annotations

__all__ = ["compare", "measures", "monitor", "reference", "words"]

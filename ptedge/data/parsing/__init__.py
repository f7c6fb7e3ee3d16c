"""Files of any form as plain values: JSON, XML, TOML and YAML read with a sentence for each fault, and numbers checked.

Nothing here knows what a label is; the readers of the formats do.
"""

__all__ = ["documents", "values", "yaml_file"]

"""What a run is set to: presets by name, and the recipe that chooses what the user left open."""

__all__ = ["presets", "recipe"]

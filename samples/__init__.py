"""Generated street scenes, the demo, and one TOML for each command."""

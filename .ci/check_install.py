"""Run by the Python of a fresh environment that holds the wheel without extras: is all there, and does it load?

usage: check_install.py REPOSITORY
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path

PARTS = ("training", "export", "runtime", "samples")
WORKSHOP_ONLY = ("torch", "torchvision", "timm", "onnx", "rich", "tomli_w")
NEEDS_TORCH = ("ptedge.training.", "ptedge.detector.")  # packages
MODULES_WITH_TORCH = (
    *("ptedge.artifacts.checkpoint", "ptedge.backends.checkpoint_predictor"),
    *("ptedge.export.graph", "ptedge.export.graph_ops", "ptedge.export.to_onnx", "ptedge.export.to_bundle"),
    *("ptedge.export.verify.reference", "ptedge.export.verify.near_ties", "ptedge.samples.effects"),
)


def main() -> None:
    """Compare files on disk with files installed, then import every module a device may import."""
    root = Path(sys.argv[1]).resolve()
    present = [name for name in WORKSHOP_ONLY if importlib.util.find_spec(name)]
    if present:
        sys.exit(f"this environment must not have {', '.join(present)}")

    import ptedge

    installed = Path(ptedge.__file__).parent
    if root in installed.parents and "site-packages" not in str(installed):
        sys.exit(f"ptedge was imported from the repository ({installed}), not from the wheel")

    missing, modules = [], []
    for folder in ("ptedge", *PARTS):
        for path in sorted((root / folder).rglob("*")):
            if path.suffix not in (".py", ".pyi", ".toml", ".typed", ".json", ".pt"):
                continue
            inside = path.relative_to(root / "ptedge") if folder == "ptedge" else path.relative_to(root)
            if not (installed / inside).is_file():
                missing.append(str(path.relative_to(root)))
            if path.suffix == ".py" and path.name != "__main__.py":
                names = [part for part in inside.with_suffix("").parts if part != "__init__"]
                modules.append(".".join(["ptedge", *names]))
    if missing:
        sys.exit(f"not in the wheel: {', '.join(missing)}")

    free = [name for name in modules if name not in MODULES_WITH_TORCH]
    loaded = [name for name in free if not f"{name}.".startswith(NEEDS_TORCH) or name.endswith(".cli")]
    for name in loaded:
        importlib.import_module(name)
    print(f"wheel: {len(modules)} modules installed, {len(loaded)} load without torch")


if __name__ == "__main__":
    main()

"""The story of docs/loop.md: a stream turns from day to fog, and the site gets over it by itself.

Run: python tests/bench/loop_scenario.py [--day 30 --changed 60 --later 150 --val 40] [--steps 60]
     python tests/bench/loop_scenario.py --model runs/source/model.pt --data data/carla_to_road --steps 100
The second way is a real pair: its source's val images are the day, its target's frames the change. Exit status 1 when
anything is not as it should be.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

import ptedge.runtime.run  # noqa: F401  # before the tests' folder is searched: it has one of that name

sys.path.append(str(Path(__file__).resolve().parents[1]))

from loop_story import Plan, Story, made_streets, shared_out
from places import ROOT


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, help="to work in, new; else a temporary one")
    parser.add_argument("--model", type=Path, default=ROOT / "samples" / "demo_model" / "model.pt")
    parser.add_argument("--data", type=Path, help="a real pair: source/val.json, target/frames, target/val.json")
    for name, count in (("day", 30), ("changed", 60), ("later", 150), ("val", 40), ("steps", 60)):
        parser.add_argument(f"--{name}", type=int, default=count)
    parser.add_argument("--probation", type=float, default=1.0, help="seconds")
    parser.add_argument("--max-loss", type=float, default=0.05, help="of the gate")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        counts = (options.day, options.changed, options.later)
        if options.data is None:
            places = made_streets(folder / "data", *counts, options.val)
            config = ROOT / "samples" / "demo_source_free.toml"
        else:
            places = shared_out(folder / "data", options.data, *counts)
            config = ROOT / "samples" / "carla_to_road" / "source_free.toml"
        rest = {"sets": (f"optim.steps={options.steps}",), "probation": options.probation, "max_loss": options.max_loss}
        plan = Plan(options.model.resolve(), **places, config=config, **rest)
        story = Story(plan, folder)
        story.go()
    print("\n| | |\n|---|---|")
    print("\n".join(f"| {name} | {text} |" for name, text in story.told.items()))
    sys.exit(bool(story.troubles) or story.lost > 0)


if __name__ == "__main__":
    main()

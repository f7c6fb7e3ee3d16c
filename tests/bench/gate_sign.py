"""How the gate's sign without labels goes with AP50, over pairs of versions.

Run: python tests/bench/gate_sign.py PAIRS.json [--frames 64] [--max-loss 0.05]

PAIRS.json is a list of {"champion": MODEL, "challenger": MODEL, "frames": FOLDER, "gain": points of AP50}; a model is a
bundle or a checkpoint. Each pair is judged both ways, so that a gain is a loss the other way. Printed: each judgement,
the rank correlation of sign and gain, and how many gains of more than a point and losses of more than 3 and 10 pass.
"""

from __future__ import annotations

import argparse
import json
from functools import cache
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from ptedge.backends.predictor import open_predictor
from ptedge.frames.images import read_image
from ptedge.runtime.deployment.compare import Views, look_twice, paired_agreement
from ptedge.scores.paired import paired_mean


@cache
def looks(model: Path, folder: Path, count: int) -> tuple[Views, ...]:
    """What a model says of evenly spaced frames of a folder and of their mirror images."""
    files = sorted(folder.iterdir())
    predictor = open_predictor(model, threads=1)
    places = np.linspace(0, len(files) - 1, min(count, len(files))).astype(int)
    return tuple(look_twice(predictor, read_image(files[place])) for place in places)


def main() -> None:
    """Judge and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pairs", type=Path)
    parser.add_argument("--frames", type=int, default=64)
    parser.add_argument("--max-loss", type=float, default=0.05)
    options = parser.parse_args()
    gains, signs, passed = [], [], []
    for pair in json.loads(options.pairs.read_text("utf-8")):
        folder = Path(pair["frames"])
        models = [looks(Path(pair[who]), folder, options.frames) for who in ("champion", "challenger")]
        for gain, row in ((pair["gain"], models), (-pair["gain"], models[::-1])):
            found = paired_mean(*paired_agreement(*row).T)
            gains.append(gain)
            signs.append(found.value)
            passed.append(found.low >= -options.max_loss)
            print(f"{gain:+6.1f} {found.value:+.3f} {'passes' if passed[-1] else 'refused'}", flush=True)
    gain, through = np.array(gains), np.array(passed)
    print(f"rank correlation {spearmanr(gain, signs)[0]:.2f}")
    for text, rows in (("gain > 1", gain > 1), ("loss > 3", gain < -3), ("loss > 10", gain < -10)):
        print(f"{text}: {through[rows].sum()} of {rows.sum()} pass")


if __name__ == "__main__":
    main()

"""Time and memory of opening a large COCO file, against ``json.load``: ``python tests/bench/open_coco.py [--strict]``.

Makes a file of 120,000 images and 900,000 boxes, as large as COCO's own, in a temporary folder, with a file for each
image. Each way runs in processes of its own, in turn; the best of each counts. ``--polygons`` gives every box an
outline of 30 points, which makes the file as large as COCO's. ``--strict`` fails beyond 1.5 times the time or 1 GB.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
from pathlib import Path

IMAGES, BOXES, CLASSES = 120_000, 900_000, 80
MOST_TIMES, MOST_MB = 1.5, 1000
WAYS = {
    "json.load": "import json\ndef work():\n    with open(path) as file: return json.load(file)",
    "open_dataset": "from ptedge.data import open_dataset\ndef work(): return open_dataset(path)",
}
PROGRAM = """import sys, time, resource
path = sys.argv[1]
{way}
wall, cpu = time.perf_counter(), time.process_time()
kept = work()
wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
pages = int(open("/proc/self/statm").read().split()[1]) * resource.getpagesize()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(wall, cpu, pages / 1e6, peak / 1e6)"""


def make(folder: Path, polygons: bool) -> Path:
    """Write the file and its images, which are empty; their sizes stand in the file."""
    draw = random.Random(0)
    (folder / "images").mkdir()
    images, annotations = [], []
    for i in range(IMAGES):
        name = f"{i:012d}.jpg"
        (folder / "images" / name).touch()
        images.append({"license": 1, "file_name": name, "height": 480, "width": 640, "id": i})
    for i in range(BOXES):
        width, height = round(draw.uniform(2, 130), 2), round(draw.uniform(2, 78), 2)
        box = [round(draw.uniform(0, 500), 2), round(draw.uniform(0, 400), 2), width, height]
        outline = [round(draw.uniform(0, 400), 2) for _ in range(60)] if polygons else []
        entry = {"segmentation": [outline] if polygons else [], "area": round(width * height, 2), "iscrowd": 0}
        entry |= {"image_id": draw.randrange(IMAGES), "bbox": box, "category_id": draw.randrange(CLASSES) + 1, "id": i}
        annotations.append(entry)
    categories = [{"id": i + 1, "name": f"class {i + 1}"} for i in range(CLASSES)]
    path = folder / "instances.json"
    with open(path, "w") as file:
        json.dump({"images": images, "annotations": annotations, "categories": categories}, file)
    return path


def measure(way: str, path: Path) -> list[float]:
    """Seconds, those of the processor, MB held and peak MB of one process."""
    command = [sys.executable, "-c", PROGRAM.format(way=WAYS[way]), str(path)]
    return [float(part) for part in subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--strict", action="store_true")
    parser.add_argument("--polygons", action="store_true")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        # in a process of its own, which gives its memory back
        code = (
            f"import sys, pathlib; sys.path.append({str(Path(__file__).parent)!r}); import {Path(__file__).stem} as m"
        )
        code += f"; print(m.make(pathlib.Path(sys.argv[1]), {options.polygons}))"
        made = subprocess.run([sys.executable, "-c", code, folder], check=True, capture_output=True, text=True)
        path = Path(made.stdout.strip())
        print(f"{IMAGES} images, {BOXES} boxes, {path.stat().st_size / 1e6:.0f} MB")
        runs = [{way: measure(way, path) for way in WAYS} for _ in range(options.rounds)]
    best = {way: [min(run[way][i] for run in runs) for i in range(4)] for way in WAYS}
    for way, (wall, cpu, held, peak) in best.items():
        print(f"{way:14} {wall:6.2f} s {cpu:6.2f} s cpu {held:6.0f} MB held {peak:6.0f} MB peak")
    wall, cpu = (best["open_dataset"][i] / best["json.load"][i] for i in (0, 1))
    print(f"{wall:.2f} times the time, {cpu:.2f} times that of the processor")
    peak = best["open_dataset"][3]
    sys.exit(bool(options.strict and (cpu > MOST_TIMES or peak > MOST_MB)))


if __name__ == "__main__":
    main()

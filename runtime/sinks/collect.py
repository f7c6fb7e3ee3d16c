"""Choosing frames worth adapting to, and keeping them in a field folder.

A frame is kept because chance picked it (an unbiased share), or because the model is less sure of it than of most
frames so far, in a class (entropy) or in a box (sigma against size). Frames like one kept lately are passed over.
"""

from __future__ import annotations

import hashlib
import random
import shutil
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from ptedge.detections import Detections
from ptedge.errors import ClassMismatchError
from ptedge.files import shown_name
from ptedge.frames.address import mask_credentials

from ..field import FieldFolder, create_field
from ..options import Policy
from .files import Result, encode_jpeg

JPEG_QUALITY = 95  # these images are trained on
FREE_SPACE_FLOOR = 256 << 20  # bytes of the disk that collecting leaves alone
WARM_UP = 20  # frames seen before "less sure than most" means anything
RESERVOIR = 1000  # values the quantiles are taken from
RECENT = 500  # kept frames a new one is compared with
SAVE_EVERY = 20  # kept frames between two updates of field.json


class FieldSink:
    """Keeps chosen frames in a field folder; a sink of the runtime loop.

    Attributes:
        path: the field folder.
        kept: images kept by this run.
        counters: why frames were kept or passed over, over the folder's life.
    """

    def __init__(
        self, path: Path, policy: Policy, class_names: Sequence[str], model_hash: str, preprocessing: dict[str, Any]
    ) -> None:
        """Make or open the folder.

        Args:
            path: field folder, or a new one.
            policy: what to keep.
            class_names: names by label.
            model_hash: sha256 of the model that detects.
            preprocessing: how its input is made; stored with each frame.

        Raises:
            OutputError: not writable, or something else is there.
            ArtifactError: a broken field folder.
            ClassMismatchError: the folder was collected with other classes.
        """
        self.path = path
        self.kept = 0
        self._folder: FieldFolder = create_field(path, {"class_names": list(class_names)})
        if self._folder.class_names != tuple(class_names):
            raise ClassMismatchError(
                "the bundle",
                class_names,
                f"field folder {path}",
                self._folder.class_names,
                "Collect into a new folder",
            )
        self._policy = policy
        self._record = {"model": model_hash, "preprocessing": preprocessing}
        self._folder.about["policy"] = asdict(policy)
        self.counters: Counter[str] = Counter(self._folder.about.get("counters", {}))
        # the number of images is part of the seed, so that a second run does not repeat the first one's choices
        self._chooser = _Chooser(policy, len(class_names), random.Random(f"{policy.seed}/{self._folder.last_id}"))
        for record in self._folder.records():
            self._chooser.recent.append(int(record.get("dhash", "0"), 16))

    def write(self, result: Result) -> None:
        """Keep the frame or pass it over."""
        frame, found = result.frame, result.detections
        self.counters["seen"] += 1
        why, measures = self._chooser.reasons(found)
        if not why:
            return
        code = dhash(frame.image)
        refusal = self._full() or self._chooser.too_close(frame.source, frame.index, frame.time)
        if refusal is None and self._chooser.is_duplicate(code):
            refusal = "duplicate"
        jpeg = b""
        if refusal is None:
            try:
                jpeg = encode_jpeg(frame.image, JPEG_QUALITY)
            except (ValueError, cv2.error):
                refusal = "cannot be a JPEG"
        if refusal is not None:
            self.counters[refusal] += 1
            return
        self._add(result, jpeg, why, measures, code)
        self._chooser.keep(frame.source, frame.index, frame.time, code)
        self.kept += 1
        self.counters["kept"] += 1
        self.counters.update(why)
        if self.kept % SAVE_EVERY == 0:
            self._save()

    def close(self) -> None:
        """Write the counters."""
        self._save()

    def _add(self, result: Result, jpeg: bytes, why: list[str], measures: dict[str, float], code: int) -> None:
        """Write the image and its line."""
        frame, line = result.frame, result.line()
        number = self._folder.last_id + 1
        record = {
            "time": frame.time,
            "camera": shown_name(mask_credentials(frame.source)),
            "frame": frame.index,
            "original": result.file,
            "width": line["width"],
            "height": line["height"],
            **self._record,
            **result.model,  # another one may have taken its place
            "why": why,
            "informative": round(max(measures.values()), 5),
            **{name: round(value, 5) for name, value in measures.items()},
            "dhash": f"{code:016x}",
            "detections": line["detections"],
        }
        self._folder.add(f"{number:08d}_{hashlib.sha256(jpeg).hexdigest()[:12]}.jpg", jpeg, record)
        self._folder.last_id = number

    def _save(self) -> None:
        self._folder.about["counters"] = dict(self.counters)
        self._folder.save_about()

    def _full(self) -> str | None:
        if self._folder.images >= self._policy.max_images or self._folder.size >= self._policy.max_bytes:
            return "quota reached"
        if shutil.disk_usage(self.path).free < FREE_SPACE_FLOOR:
            return "disk nearly full"
        return None


@dataclass
class _Chooser:
    """The decisions, apart from files."""

    policy: Policy
    num_classes: int
    chance: random.Random
    recent: deque[int] = field(default_factory=lambda: deque(maxlen=RECENT))
    seen: int = 0
    last: dict[str, tuple[int, float | None]] = field(default_factory=dict)  # index and time, by source
    values: dict[str, list[float]] = field(default_factory=lambda: {"entropy": [], "looseness": []})

    def reasons(self, found: Detections) -> tuple[list[str], dict[str, float]]:
        """Why a frame is of interest (nothing when it is not), and the measures behind."""
        measures = {"entropy": entropy_of(found, self.num_classes), "looseness": looseness_of(found)}
        why = ["random"] if self.chance.random() < self.policy.random_share else []
        for name, reason in (("entropy", "uncertain class"), ("looseness", "uncertain box")):
            before = self.values[name]
            if self.seen >= WARM_UP and measures[name] > float(np.quantile(before, self.policy.uncertain_quantile)):
                why.append(reason)
        self._remember(measures)
        return why, measures

    def too_close(self, source: str, index: int, time: float | None) -> str | None:
        """Refusal of a frame that comes too soon after the last one kept of its source."""
        last_index, last_time = self.last.get(source, (None, None))
        if last_index is not None and 0 <= index - last_index < self.policy.min_frames:
            return "too soon"
        if time is not None and last_time is not None and 0 <= time - last_time < self.policy.min_seconds:
            return "too soon"
        return None

    def is_duplicate(self, code: int) -> bool:
        """Whether a frame looks like one kept lately."""
        return any((code ^ other).bit_count() <= self.policy.duplicate_bits for other in self.recent)

    def keep(self, source: str, index: int, time: float | None, code: int) -> None:
        """Remember a kept frame."""
        self.last[source] = index, time
        self.recent.append(code)

    def _remember(self, measures: dict[str, float]) -> None:
        # reservoir sampling: an even sample of all frames so far in constant memory
        place = self.seen if self.seen < RESERVOIR else self.chance.randrange(self.seen + 1)
        for name, value in measures.items():
            if self.seen < RESERVOIR:
                self.values[name].append(value)
            elif place < RESERVOIR:
                self.values[name][place] = value
        self.seen += 1


def entropy_of(found: Detections, num_classes: int) -> float:
    """Highest class entropy in a frame against the most possible, log(K + 1); 0 to 1, 0 without detections."""
    return float(found.entropy.max() / np.log(num_classes + 1)) if len(found) else 0.0


def looseness_of(found: Detections) -> float:
    """Highest ratio of mean sigma to box size (root of the area) in a frame; 0 without detections."""
    if not len(found):
        return 0.0
    size = found.boxes[:, 2:] - found.boxes[:, :2]
    return float((found.sigma.mean(axis=1) / np.sqrt(np.maximum(size[:, 0] * size[:, 1], 1.0))).max())


def dhash(image: NDArray[np.uint8]) -> int:
    """Difference hash: 64 bits that say where a small grey copy gets brighter to the right; alike for alike images.

    Args:
        image: [H, W, 3] uint8 RGB.
    """
    small = cv2.cvtColor(cv2.resize(image, (9, 8), interpolation=cv2.INTER_AREA), cv2.COLOR_RGB2GRAY)
    bits = (small[:, 1:] > small[:, :-1]).ravel()  # [64]
    return int.from_bytes(np.packbits(bits).tobytes(), "big")

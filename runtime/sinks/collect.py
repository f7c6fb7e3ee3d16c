"""The field folder as a sink: frames that strategies pick are kept, within quotas; the least informative make way.

What is decided lies in :mod:`ptedge.runtime.collection`; here are the files and the counters.
"""

from __future__ import annotations

import hashlib
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import cv2

from ptedge.detections import Detections
from ptedge.errors import ClassMismatchError
from ptedge.files import shown_name
from ptedge.frames.address import mask_credentials

from ..collection.choose import Choice, Chooser
from ..collection.ledger import NEIGHBOUR, Entry, Ledger, entries_of, protected_images
from ..collection.policy import Policy
from ..collection.reading import removing
from ..collection.small import dhash_of_small
from ..collection.space import Space
from ..collection.window import Look, Window, Windows
from ..field import IMAGES_NAME, FieldFolder, create_field
from .files import Result, encode_jpeg

JPEG_QUALITY = 95  # these images are trained on
SAVE_EVERY = 20  # kept frames between two updates of field.json


class FieldSink:
    """Keeps chosen frames in a field folder; a sink of the runtime loop.

    A frame is judged when the next one of its source is there, so up to three a source are held.

    Attributes:
        path: the field folder.
        kept: frames kept by this run, their neighbours not counted.
        counters: what became of frames, over the folder's life.
        strategies: of each strategy, the frames that it ``picked``, that were ``kept`` for it, and ``evicted`` again.
    """

    def __init__(
        self,
        path: Path,
        policy: Policy,
        class_names: Sequence[str],
        model_hash: str,
        preprocessing: dict[str, Any],
        tell: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Make or open the folder.

        Args:
            path: field folder, or a new one.
            policy: what to keep.
            class_names: names by label.
            model_hash: sha256 of the model that detects.
            preprocessing: how its input is made; stored with each frame.
            tell: gets sentences for the user.

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
        about = self._folder.about
        about["policy"] = asdict(policy)
        self.counters: Counter[str] = Counter(about.get("counters", {}))
        self.strategies = {name: Counter(counts) for name, counts in about.get("strategies", {}).items()}
        # the number of images is part of the seed, so that a second run does not repeat the first one's choices
        chance = random.Random(f"{policy.seed}/{self._folder.last_id}")
        self._chooser = Chooser(policy, len(class_names), chance)
        self._ledger = Ledger(entries_of(self._remembered()), policy.shares.by_name)
        self._windows = Windows(policy.threshold, len(class_names))
        self._space = Space(path, self._folder.images, self._folder.size, policy.quota, tell)

    def write(self, result: Result) -> None:
        """Take a frame in, and judge the one before it."""
        self.counters["seen"] += 1
        candidates = self._visible(result)
        look = Look(result, candidates, candidates.select(candidates.scores >= self._policy.threshold))
        for window in self._windows.add(look):
            self._judge(window)

    def close(self) -> None:
        """Judge the last frames and write the counters."""
        for window in self._windows.rest():
            self._judge(window)
        self._save()

    @property
    def images(self) -> int:
        """Images in the folder now."""
        return self._folder.images

    @property
    def size(self) -> int:
        """Of those images, in bytes."""
        return self._folder.size

    def _visible(self, result: Result) -> Detections:
        """Candidates that the picture still shows: what is under a mask can teach nobody."""
        candidates = result.all_candidates
        return candidates if result.hidden is None else candidates.select(~result.hidden.covers(candidates.boxes))

    def _remembered(self) -> Iterator[dict[str, Any]]:
        """The lines that are there, one at a time: many with all their detections would fill a small machine."""
        for record in self._folder.records():
            self._chooser.remember(int(record.get("dhash", "0"), 16))
            yield record

    def _judge(self, window: Window) -> None:
        """Keep a frame or pass it over."""
        choice = self._chooser.choose(window)
        if not choice.why:
            return
        for name in choice.why:
            self._count(name, "picked")
        refusal = self._chooser.refusal(window) or self._keep(window, choice)
        if refusal is not None:
            self.counters[refusal] += 1
            return
        self._chooser.keep(window.now)
        self.kept += 1
        self.counters["kept"] += 1
        self.counters.update(choice.why)
        for name in choice.why:
            self._count(name, "kept")
        if self.kept % SAVE_EVERY == 0:
            self._save()

    def _keep(self, window: Window, choice: Choice) -> str | None:
        """Write a frame, with its neighbours where triples are asked for; or the reason why not."""
        places = [(0, window.now)]
        if self._policy.triples:
            around = ((-1, window.before), (0, window.now), (1, window.after))
            places = [(place, look) for place, look in around if look is not None]
        try:
            jpegs = [encode_jpeg(look.result.frame.image, JPEG_QUALITY) for _, look in places]
        except (ValueError, cv2.error):
            return "cannot be a JPEG"
        now = time.time()
        entry = Entry(bytes=sum(map(len, jpegs)), owner=choice.why[0], informative=choice.informative, stamp=now)
        digests = [hashlib.sha256(jpeg).hexdigest()[:12] for jpeg in jpegs]
        names = [f"{self._folder.last_id + 1 + i:08d}_{digest}.jpg" for i, digest in enumerate(digests)]
        entry.files = [f"{IMAGES_NAME}/{name}" for name in names]
        refusal = self._make_room(entry, now)
        if refusal is not None:
            return refusal
        rows = []
        triple = digests[[place for place, _ in places].index(0)] if self._policy.triples else None
        for name, jpeg, (place, look) in zip(names, jpegs, places, strict=True):
            rows.append((name, jpeg, self._line(look, choice, place, triple, now)))
        self._folder.add_all(rows)
        self._folder.last_id += len(rows)
        self._ledger.entries.append(entry)
        for place, look in places:
            look.written = True
            if look.result.hidden is not None:
                self.counters["masked"] += 1
            if place:
                self.counters["neighbours"] += 1
                self._chooser.remember(dhash_of_small(look.small))
        return None

    def _make_room(self, new: Entry, now: float) -> str | None:
        """Remove what a new entry displaces; or the reason why it stays out."""
        if self._space.lacks(new.bytes):
            return "disk nearly full"
        protected = protected_images(self.path)
        gone = self._ledger.make_room(self._space.quota, now, new, protected)
        if gone is None:
            return "quota reached"
        if gone:
            with removing(self.path) as free:
                if not free:
                    return "folder being read"
                self._folder.remove({file for entry in gone for file in entry.files})
            self._ledger.remove(gone)
            for entry in gone:
                self.counters["evicted"] += len(entry.files)
                self._count(entry.owner, "evicted")
        return None

    def _line(self, look: Look, choice: Choice, place: int, triple: str | None, now: float) -> dict[str, Any]:
        """What ``frames.jsonl`` says of an image."""
        result = look.result
        frame, detections, under = result.frame, result.detections, 0
        if result.hidden is not None:
            covered = result.hidden.covers(detections.boxes)
            detections, under = detections.select(~covered), int(covered.sum())
        measures: Mapping[str, float] = {} if place else choice.measures
        return {
            "time": frame.time,
            "camera": shown_name(mask_credentials(frame.source)),
            "frame": frame.index,
            "original": result.file,
            "width": frame.image.shape[1],
            "height": frame.image.shape[0],
            "collected": datetime.fromtimestamp(now, timezone.utc).isoformat(timespec="seconds"),
            **self._record,
            **result.model,  # another one may have taken its place
            "why": [NEIGHBOUR] if place else list(choice.why),
            "informative": round(choice.informative, 5),
            **({"triple": triple, "place": place} if triple is not None else {}),
            "measures": {name: round(value, 5) for name, value in measures.items()},
            "dhash": f"{dhash_of_small(look.small):016x}",
            **({"under_masks": under} if result.hidden is not None else {}),
            "detections": detections.to_json(result.class_names),
        }

    def _count(self, strategy: str, what: str) -> None:
        self.strategies.setdefault(strategy, Counter())[what] += 1

    def _save(self) -> None:
        self._folder.about["counters"] = dict(self.counters)
        self._folder.about["strategies"] = {name: dict(counts) for name, counts in self.strategies.items()}
        self._folder.save_about()

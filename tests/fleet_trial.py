"""Many devices at once, without models: they push frames, follow a canary or another channel, and go back.

Field folders, push, index, looks, probation, promotion and rollback are the product's. Made up are the frames (bytes of
chance), the model's answers, and faults: a share of all requests of a device fails before or after it was carried out.
"""

from __future__ import annotations

import heapq
import itertools
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import pytest
from faulty_store import FaultyStore, frames_in, troubles
from made_deployments import numbered_bundle, promoted
from made_field import digests, fill
from pipeline_fakes import ONE, FakePredictor

from ptedge.artifacts.bundle import open_bundle
from ptedge.detections import Detections
from ptedge.errors import InputError, StoreError
from ptedge.runtime.deployment.change import rollback
from ptedge.runtime.deployment.channels import pass_on, tried
from ptedge.runtime.deployment.follow import Follower
from ptedge.runtime.deployment.place import Deployment, open_deployment
from ptedge.runtime.transfer.push import push
from ptedge.shards.index import INDEX, indexed_shards
from ptedge.stores import s3
from ptedge.stores.copied import CopiedStore
from ptedge.stores.opening import open_store
from ptedge.stores.store import Store

CHANNELS = {"canary": 100, "first": 10, "rest": 1}  # one of so many devices is in it, or in one before it
BLIND = 9  # number of the bundle that finds nothing
THREADS, CLIENTS = 16, 16
FRAME = 20_000  # bytes
GROUPS = 60  # compared in a probation
LONGEST = 900.0  # seconds that all devices get to follow


@dataclass
class Phase:
    """What a part of the trial came to.

    Attributes:
        name: of it.
        devices: that took part.
        seconds: it took.
        requests: by operation of S3.
        sent: bytes of bodies.
        received: bytes of objects.
        failed: requests that were made to fail, and calls for which these were too many at once.
    """

    name: str
    devices: int
    seconds: float = 0.0
    requests: Counter[str] = field(default_factory=Counter)
    sent: int = 0
    received: int = 0
    failed: int = 0

    def row(self) -> str:
        """A line of the table, by device."""
        each = [f"{self.requests[verb] / self.devices:.1f}" for verb in VERBS]
        sizes = [f"{number / self.devices / 1000:.1f}" for number in (self.sent, self.received)]
        return " | ".join(
            [f"| {self.name}", str(self.devices), *each, *sizes, f"{self.seconds:.0f}", f"{self.failed} |"]
        )


VERBS = ("PutObject", "GetObject", "HeadObject", "ListObjectsV2")
HEAD = "| | devices | put | get | head | list | kB sent | kB received | seconds | failed |\n" + "|---" * 10 + "|"


class Meter:
    """Counts what clients of buckets send and receive."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.phase = Phase("", 1)

    def watch(self, client: Any) -> Any:
        """A client, from now on counted."""
        client.meta.events.register("before-send.s3", self._sending)
        client.meta.events.register("after-call.s3.GetObject", self._received)
        return client

    def fault(self) -> None:
        """Note a request that was made to fail."""
        with self._lock:
            self.phase.failed += 1

    def _sending(self, request: Any, event_name: str, **_: object) -> None:
        with self._lock:
            self.phase.requests[event_name.rpartition(".")[2]] += 1
            self.phase.sent += int(request.headers.get("Content-Length", 0))

    def _received(self, parsed: Any, **_: object) -> None:
        with self._lock:
            self.phase.received += int(parsed.get("ContentLength", 0))


class Faults(FaultyStore):
    """A share of the requests fails, before or after it was carried out."""

    def __init__(self, store: Store, share: float, seed: str, meter: Meter) -> None:
        super().__init__(store)
        self._share, self._rng, self._meter = share, random.Random(seed), meter

    def _fails(self) -> bool:
        with self._lock:
            failed = self._rng.random() < self._share
            self.after = self._rng.random() < 0.5
        if failed:
            self._meter.fault()
        return failed


class Model(FakePredictor):
    """A bundle by its number; one that is blind finds nothing."""

    input_size = (8, 8)

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.number = round(100 * open_bundle(path).manifest.score_threshold)

    def detect(self, image: object) -> Detections:
        return Detections.empty() if self.number == BLIND else ONE

    def close(self) -> None:
        pass


class Device:
    """One of them: a field folder, a copy of its channel, and what it ran."""

    def __init__(self, fleet: Fleet, number: int) -> None:
        self.name = f"device-{number:04d}"
        self.channel = next(name for name, share in CHANNELS.items() if number < -(-fleet.count // share))
        self.folder, self._fleet = fleet.folder / self.name, fleet
        self.site = fleet.address(f"sites/{self.name}")
        self.ran: list[int] = []
        self._follower: Follower | None = None

    @property
    def follower(self) -> Follower:
        assert self._follower is not None
        return self._follower

    @cached_property
    def store(self) -> Store:
        """Of its frames, with faults."""
        return Faults(open_store(self.site), self._fleet.faults, f"{self.name} pushes", self._fleet.meter)

    def begin(self) -> None:
        """Start the run, as often as it takes."""
        deployment = open_deployment(self._fleet.address(self.channel), self.folder / "copy")
        assert isinstance(deployment.store, CopiedStore)
        deployment.store.far = Faults(deployment.store.far, self._fleet.faults, self.name, self._fleet.meter)

        def make() -> None:
            self._follower = Follower(deployment, Model, lambda text: None, 0.001, self._fleet.poll)  # type: ignore[arg-type]

        _until_done(make)
        self._note()

    def look(self) -> None:
        """A look, and some frames."""
        self.follower.looks.once()
        self._note()
        trial = self.follower.slot.trial
        if trial is not None:
            answers = [[model.predictor.detect(None)] for model in (trial.challenger, trial.champion)]  # type: ignore[attr-defined, arg-type]
            for _ in range(GROUPS):
                if not trial.failed:  # type: ignore[attr-defined]
                    trial.compare(answers[0], 0.01, answers[1], 0.01)  # type: ignore[attr-defined]
            self._note()

    def push(self) -> None:
        """Push, as often as it takes."""
        _until_done(lambda: push(self.folder / "field", self.store, self.site))

    def _note(self) -> None:
        number = self.follower.slot.predictor.number  # type: ignore[attr-defined]
        if not self.ran or self.ran[-1] != number:
            self.ran.append(number)


class Fleet:
    """The devices, their channels, and what is measured.

    Args:
        count: of devices.
        folder: empty.
        address: of a place in the bucket, from its name.
        poll: seconds between two looks.
        faults: share of the requests that fail.
    """

    def __init__(
        self, count: int, folder: Path, address: Callable[[str], str], poll: float, faults: float = 0.0
    ) -> None:
        self.count, self.folder, self.address, self.poll, self.faults = count, folder, address, poll, faults
        self.meter = Meter()
        self.phases: list[Phase] = []
        self.troubles: list[str] = []
        self.devices = [Device(self, number) for number in range(count)]
        self.bundles = {n: numbered_bundle(folder / f"bundle{n}", n, score_threshold=n / 100) for n in (1, 2, BLIND)}

    @contextmanager
    def phase(self, name: str, devices: int | None = None) -> Iterator[Phase]:
        """Measure a part."""
        made = Phase(name, devices or self.count)
        self.meter.phase = made
        self.phases.append(made)
        begin = time.monotonic()
        yield made
        made.seconds = time.monotonic() - begin
        self.meter.phase = Phase("between", 1)

    def all(self, do: Callable[[Device], object], devices: Sequence[Device] | None = None) -> None:
        """Each device does something, many at once."""
        with ThreadPoolExecutor(THREADS) as pool:
            for _ in pool.map(do, self.devices if devices is None else devices):
                pass

    def of(self, *channels: str) -> list[Device]:
        """The devices of some channels."""
        return [device for device in self.devices if device.channel in channels]

    def follow(self, number: int, devices: Sequence[Device]) -> None:
        """Devices look, each in its own time, until all run a version."""
        lock, end = threading.Lock(), time.monotonic() + LONGEST
        begun = time.monotonic()
        order = itertools.count()
        due = [(begun + random.uniform(0, self.poll), next(order), device) for device in devices]
        heapq.heapify(due)

        def work() -> None:
            while time.monotonic() < end:
                with lock:
                    if not due:
                        return
                    at, _, device = heapq.heappop(due)
                time.sleep(max(0.0, at - time.monotonic()))
                device.look()
                if device.ran[-1] != number:
                    with lock:
                        heapq.heappush(due, (time.monotonic() + device.follower.looks.pause(), next(order), device))

        workers = [threading.Thread(target=work) for _ in range(THREADS)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        late = [device.name for device in devices if device.ran[-1] != number]
        self.check(not late, f"{len(late)} devices do not run {number}: {late[:3]}")

    def check(self, good: bool, text: str) -> None:
        """Note what is not as it should be."""
        if not good:
            self.troubles.append(f"{self.phases[-1].name}: {text}")


def fleet_trial(fleet: Fleet, frames: int) -> None:
    """Everything once; what was measured and what was wrong stands in the fleet afterwards.

    Args:
        fleet: new.
        frames: that each device has at first.
    """
    for channel in CHANNELS:
        promoted(fleet.bundles[1], fleet.address(channel))
    with fleet.phase("first start"):
        fleet.all(lambda device: device.begin())
    _pushes(fleet, frames)
    with fleet.phase("a look, nothing new"):
        fleet.all(lambda device: device.look())
    canary, others = fleet.of("canary"), fleet.of("first", "rest")
    with fleet.phase("a bad version at the canary", len(canary)):
        promoted(fleet.bundles[BLIND], fleet.address("canary"))
        _settle(fleet, canary, lambda: Deployment(fleet.address("canary")).state().version == _names(fleet)[1])
    _refused(fleet)
    fleet.check(all(BLIND in device.ran for device in canary[:1]), "no canary has tried the bad version")
    with fleet.phase("a good version at the canary", len(canary)):
        promoted(fleet.bundles[2], fleet.address("canary"))
        _refused(fleet)
        _settle(fleet, canary, lambda: not Deployment(fleet.address("canary")).state().unproven)
        fleet.follow(2, canary)
    for channel in ("first", "rest"):
        devices = fleet.of(channel)
        with fleet.phase(f"passed on to `{channel}`", len(devices)):
            pass_on(tried(open_deployment(fleet.address("canary"))), fleet.address(channel))
            fleet.follow(2, devices)
    with fleet.phase("rolled back everywhere"):
        for channel in CHANNELS:
            rollback(Deployment(fleet.address(channel)), why="trial")
        fleet.follow(1, fleet.devices)
    fleet.check(all(BLIND not in device.ran for device in others), "the bad version ran outside the canary")
    bad = _names(fleet)[BLIND]
    spread = [device.name for device in others if (device.folder / "copy" / "versions" / bad).exists()]
    fleet.check(not spread, f"the bad version reached {spread[:3]}")
    fleet.check(all(device.ran == [1, 2, 1] for device in others), "a device outside the canary ran something else")


def _pushes(fleet: Fleet, frames: int) -> None:
    for name, new in (("push", frames), ("push, nothing new", 0), (f"push, {frames} more frames", frames)):
        for device in fleet.devices:
            fill(device.folder / "field", new, FRAME)
        with fleet.phase(name.replace("push", f"push, {frames} frames", 1) if name == "push" else name):
            fleet.all(lambda device: device.push())
    sites = [open_store(device.site) for device in fleet.devices]
    with fleet.phase("all indexes read"):
        counts = [0] * len(sites)

        def read(place: int) -> None:
            counts[place] = sum(len(shard.entries) for shard in indexed_shards(sites[place]))

        with ThreadPoolExecutor(THREADS) as pool:
            list(pool.map(read, range(len(sites))))
    fleet.check(sum(counts) == 2 * frames * fleet.count, f"{sum(counts)} frames are indexed")
    sizes = [item.size for site in sites[:20] for item in site.list(INDEX)]
    fleet.phases[-1].name += f" ({sum(sizes) / (2 * frames * len(sites[:20])):.0f} bytes a frame)"
    with fleet.phase("all shards read, to check"):
        fleet.all(lambda device: _check_site(fleet, device))


def _check_site(fleet: Fleet, device: Device) -> None:
    store = open_store(device.site)
    for text in troubles(store):
        fleet.check(False, f"{device.name}: {text}")
    fleet.check(frames_in(store) == digests(device.folder / "field"), f"{device.name}: other frames than it has")


def _settle(fleet: Fleet, devices: Sequence[Device], done: Callable[[], bool]) -> None:
    """Devices look until something is recorded."""
    for _ in range(200):
        fleet.all(lambda device: device.look(), devices)
        if done():
            return
        time.sleep(0.01)
    fleet.check(False, "the canary recorded nothing")


def _refused(fleet: Fleet) -> None:
    """What the canary has not kept is not passed on."""
    state = Deployment(fleet.address("canary")).state()
    if state.unproven:
        with pytest.raises(InputError, match="is on probation"):
            tried(open_deployment(fleet.address("canary")))
    else:
        fleet.check(state.version == _names(fleet)[1], "the canary runs something that it did not try")


def _names(fleet: Fleet) -> dict[int, str]:
    """Number of a bundle -> its name as a version."""
    from ptedge.runtime.transfer.bundles import named_files

    return {number: named_files(path, None)[0] for number, path in fleet.bundles.items()}


def _until_done(do: Callable[[], object]) -> None:
    """As a service that is started again."""
    for _ in range(200):
        try:
            do()
            return
        except StoreError:
            continue
    raise AssertionError("200 tries were not enough")


@contextmanager
def shared_clients(meter: Meter) -> Iterator[None]:
    """Devices of this process share a few clients, each counted: thousands would measure the client's own start."""
    made: list[Any] = []
    make, turns, lock = s3._client, itertools.count(), threading.Lock()

    def client(where: Any) -> Any:
        with lock:
            if len(made) < CLIENTS:
                made.append(meter.watch(make(where)))
                return made[-1]
            return made[next(turns) % CLIENTS]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(s3, "_client", client)
        yield

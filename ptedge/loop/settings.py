"""SITE.toml: what a site is made of, and the rules by which its rounds go on or end."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ptedge.config import load_config, require
from ptedge.errors import ConfigError
from ptedge.stores.opening import is_address

# steps whose command may be another than this ptedge's own
COMMANDS = ("pull", "drift", "adapt", "estimate", "export", "verify", "promote", "history")


@dataclass(frozen=True)
class DecideRules:
    """When a round adapts: with ``min_frames`` new ones, as soon as one of the other rules speaks for it.

    Attributes:
        min_frames: new frames without which no round adapts.
        enough_frames: so many new frames are a reason by themselves; 0: never.
        drift: drift in the newest ``min_frames`` frames that chance picked is a reason.
        max_days: days since the last adaptation that are a reason; 0: never.
        min_hours: hours after an adaptation in which no other one begins.
    """

    min_frames: int = 200
    enough_frames: int = 2000
    drift: bool = True
    max_days: float = 30.0
    min_hours: float = 0.0

    def __post_init__(self) -> None:
        require("decide.min_frames", self.min_frames, 1)
        for name in ("enough_frames", "max_days", "min_hours"):
            require(f"decide.{name}", getattr(self, name), 0)


@dataclass(frozen=True)
class AdaptStep:
    """How ``ptedge adapt`` is called.

    Attributes:
        config: TOML with its settings; empty for none.
        set: single settings, as ``--set`` takes them.
        source: labelled DATA of the source; empty adapts source-free.
        options: more words for the command.
    """

    config: str = ""
    set: tuple[str, ...] = ()
    source: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class WatchRules:
    """What the adaptation must not have done.

    Attributes:
        max_trips: times that a guard sent it back, at most.
        max_estimate_loss: how far the label-free AP50 may fall on the same frames, in standard errors.
    """

    max_trips: int = 5
    max_estimate_loss: float = 2.0

    def __post_init__(self) -> None:
        require("watch.max_trips", self.max_trips, 0)
        require("watch.max_estimate_loss", self.max_estimate_loss, 0)


@dataclass(frozen=True)
class ExportStep:
    """How ``ptedge export`` is called.

    Attributes:
        size: network input, height x width; empty for that of the version that runs.
        precision: ``fp32``, ``fp16`` or ``int8``; empty for that of the version that runs.
        options: more words for the command, ``["--sign", "KEY"]``.
    """

    size: str = ""
    precision: str = ""
    options: tuple[str, ...] = ()


@dataclass(frozen=True)
class VerifyStep:
    """How ``ptedge verify`` is called.

    Attributes:
        limit: frames at most.
        options: more words for the command.
    """

    limit: int = 16
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require("verify.limit", self.limit, 1)


@dataclass(frozen=True)
class GateStep:
    """The gate before the canary: how ``ptedge promote`` is called, with the frames of the round.

    Attributes:
        seconds: of measuring the speed of both versions; 0 for none, as this machine need not be the device.
        labels: labelled DATA of the place; empty for none.
        options: more words for the command.
    """

    seconds: float = 0.0
    labels: str = ""
    options: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        require("gate.seconds", self.seconds, 0)


@dataclass(frozen=True)
class Deploy:
    """Where versions go.

    Attributes:
        canary: deployment that gets a version first, through the gate; the only one where ``all`` is empty.
        all: deployments that get what the canary has proven. What the first of them runs is the present model.
        options: more words for ``ptedge promote --from``.
    """

    canary: str
    all: tuple[str, ...] = ()
    options: tuple[str, ...] = ()

    @property
    def reference(self) -> str:
        """The deployment whose version is the present model."""
        return self.all[0] if self.all else self.canary


@dataclass(frozen=True)
class SoakRules:
    """When a version that the canary runs goes everywhere.

    Attributes:
        hours: since it was promoted there, at least.
        kept: only after a run of the canary has kept it at the end of its probation.
        frames: that it must have answered on probation.
        max_days: after so many days without that the round ends; 0: never.
    """

    hours: float = 24.0
    kept: bool = True
    frames: int = 0
    max_days: float = 14.0

    def __post_init__(self) -> None:
        for name in ("hours", "frames", "max_days"):
            require(f"soak.{name}", getattr(self, name), 0)


@dataclass(frozen=True)
class Notify:
    """Who is told what happens.

    Attributes:
        command: program and arguments that get each event as JSON on stdin; none tells nobody.
        timeout: seconds that it may take.
    """

    command: tuple[str, ...] = ()
    timeout: float = 30.0

    def __post_init__(self) -> None:
        require("notify.timeout", self.timeout, 0, 3600, open_low=True)


@dataclass(frozen=True)
class Registry:
    """MLflow's model registry, for those who have one.

    Attributes:
        model: registered model that gets a version a round; empty for none.
        alias: that moves to it.
        uri: of the registry; empty for MLflow's own choice (``MLFLOW_TRACKING_URI``).
    """

    model: str = ""
    alias: str = "champion"
    uri: str = ""


@dataclass(frozen=True)
class Site:
    """A site. Paths are seen from the folder of SITE.toml, in which all commands run.

    Attributes:
        checkpoint: the first model; later ones are those of the rounds.
        frames: stores and field folders that new frames come from.
        deploy: where versions go.
        folder: for rounds and checkpoints; empty for the name of SITE.toml without ``.toml``.
        keep_rounds: rounds whose images, resume state and bundles stay; records stay for ever.
        decide: when a round adapts.
        adapt: how.
        watch: what it must not have done.
        export: as what it goes to devices.
        verify: of the bundle.
        gate: before the canary.
        soak: before all others.
        notify: who is told.
        mlflow: where it is registered.
        commands: program and arguments that stand for ``ptedge`` in a step, by its name: a launcher, a container.
    """

    checkpoint: str
    frames: tuple[str, ...]
    deploy: Deploy
    folder: str = ""
    keep_rounds: int = 3
    decide: DecideRules = field(default_factory=DecideRules)
    adapt: AdaptStep = field(default_factory=AdaptStep)
    watch: WatchRules = field(default_factory=WatchRules)
    export: ExportStep = field(default_factory=ExportStep)
    verify: VerifyStep = field(default_factory=VerifyStep)
    gate: GateStep = field(default_factory=GateStep)
    soak: SoakRules = field(default_factory=SoakRules)
    notify: Notify = field(default_factory=Notify)
    mlflow: Registry = field(default_factory=Registry)
    commands: dict[str, tuple[str, ...]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require("keep_rounds", self.keep_rounds, 1)
        if not self.frames:
            raise ValueError("frames is empty; it must name a store or a field folder")
        for step, words in self.commands.items():
            if step not in COMMANDS or not words:
                raise ValueError(f"commands.{step} must be a command for one of {', '.join(COMMANDS)}")


@dataclass(frozen=True)
class Place:
    """A site and where it lies.

    Attributes:
        file: SITE.toml.
        site: what it says.
    """

    file: Path
    site: Site

    @property
    def home(self) -> Path:
        """The folder of SITE.toml."""
        return self.file.resolve().parent

    @property
    def folder(self) -> Path:
        """The site's own folder."""
        return self.home / (self.site.folder or self.file.stem)

    def located(self, name: str) -> str:
        """A path as seen from anywhere; the address of a store as it is."""
        return name if is_address(name) else str(self.home / Path(name).expanduser())


def read_site(file: Path) -> Place:
    """Read SITE.toml.

    Raises:
        ConfigError: unreadable, an unknown key, a wrong type or a value out of range; or its folder would be itself.
    """
    place = Place(file, load_config(Site, file))
    if place.folder == place.file.resolve():
        raise ConfigError(f"{file} has no .toml at its end, so its folder would have its name. Set folder in it")
    return place

"""Whether the engines of a bundle run on this machine, told without loading TensorRT; and what to do if not."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ptedge.artifacts.bundle import open_bundle
from ptedge.artifacts.engine_file import PRODUCTS, RTX, EngineRecord, Platform, build_command, engine_problems
from ptedge.machine.driver import Driver, ask_driver
from ptedge.machine.finding import Finding
from ptedge.machine.packages import rtx_version, tensorrt_version


@dataclass(frozen=True)
class EngineHost:
    """What this machine offers to engines.

    Attributes:
        platform: what an engine built here would be bound to; ``None`` where none can run.
        lack: why none can run, in words; empty when one can.
    """

    platform: Platform | None
    lack: str = ""


def engine_host(driver: Driver | None = None, backend: str = "tensorrt") -> EngineHost:
    """Ask this machine what it offers to engines.

    Args:
        driver: what the CUDA driver says, where it was asked already; its first GPU counts.
        backend: ``tensorrt`` or ``tensorrt-rtx``.
    """
    driver = ask_driver() if driver is None else driver
    version = rtx_version() if backend == RTX else tensorrt_version()
    if not driver.gpus:
        return EngineHost(None, "no GPU answers")
    if version is None:
        return EngineHost(None, f"{PRODUCTS[backend]} is not installed")
    cuda = f"{driver.cuda[0]}.{driver.cuda[1]}" if driver.cuda else ""
    return EngineHost(Platform(version, cuda, driver.gpus[0].name, driver.gpus[0].compute_capability))


def check_engines(bundle: Path, driver: Driver) -> list[Finding]:
    """Whether the engines of a bundle fit this machine.

    Args:
        bundle: folder.
        driver: its first GPU is what they must fit.

    Raises:
        ArtifactError: the bundle is broken.
    """
    opened, host = open_bundle(bundle), engine_host(driver)
    records, folder = opened.manifest.engines, opened.model_path.parent
    hosts = {kind: engine_host(driver, kind) for kind in PRODUCTS}
    if not records:
        build = build_command(folder)
        useful = host.platform is not None
        detail = "the bundle holds none"
        return [Finding("engine", "engines", "missing" if useful else "info", detail, build if useful else "")]
    if all(hosts[record.backend].platform is None for record in records):
        made = "; ".join(f"{r.file} is for {PRODUCTS[r.backend]} {r.tensorrt} on {r.gpu}" for r in records)
        detail = f"{hosts[records[0].backend].lack}: {made}. Run with --backend cpu, or repair the lines above"
        return [Finding("engine", "engines", "problem", detail)]
    found = []
    for record in records:
        here = hosts[record.backend].platform
        problems = [hosts[record.backend].lack]
        if here is not None:
            problems = engine_problems(folder, record, here, opened.model_hash)
        build = build_command(folder, record.backend)
        detail = f"{record.file}: {', '.join(problems) or 'fits this machine'}"
        found.append(Finding("engine", "engine", "problem" if problems else "ok", detail, build if problems else ""))
    return found


def describe_fit(
    folder: Path, record: EngineRecord, model_hash: str, host: EngineHost, digest: str | None = None
) -> str:
    """Whether an engine runs on this machine, in words, with what to do if not.

    Args:
        folder: of the bundle.
        record: of the engine.
        model_hash: of the bundle's ONNX file.
        host: this machine.
        digest: sha256 of the engine file, where it is known already.
    """
    problems = []
    if digest is not None and digest != record.sha256:
        problems.append("the file is not the one that was built (another sha256)")
    if host.platform is not None:
        problems += engine_problems(folder, record, host.platform, model_hash)
    else:
        if not (folder / record.file).is_file():
            problems.append("the file is missing")
        if record.onnx_sha256 != model_hash:
            problems.append("it was built from another model.onnx")
        product = PRODUCTS[record.backend]
        lack = f"{host.lack} here (it is for {product} {record.tensorrt} on {record.gpu}); see ptedge doctor"
        problems.append(lack)
    if not problems:
        return "runs on this machine"
    build = build_command(folder, record.backend)
    return f"does not run here: {', '.join(problems)}. Build one for this machine: {build}"


def describe_engines(folder: Path, records: tuple[EngineRecord, ...], model_hash: str) -> dict[str, str]:
    """One line for each engine of a bundle, in the manifest or only in the folder.

    Args:
        folder: of the bundle.
        records: from its manifest.
        model_hash: of its ONNX file.

    Returns:
        File name -> whether it runs here, and what to do if not.
    """
    hosts = {kind: engine_host(backend=kind) for kind in {record.backend for record in records}}
    known = {record.file: describe_fit(folder, record, model_hash, hosts[record.backend]) for record in records}
    for file in sorted(folder.glob("*.engine")):
        known.setdefault(file.name, f"not in the manifest. Build one: ptedge build {folder}")
    return known

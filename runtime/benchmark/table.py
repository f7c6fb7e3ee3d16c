"""A benchmark's report and a comparison of two, for a terminal: plain text, nothing to install."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

COLUMNS = ("min", "mean", "median", "p90", "p95", "p99", "max")


def report_text(report: Mapping[str, Any]) -> str:
    """Every run's stages, then all runs side by side, the machine, and what to be careful about.

    Args:
        report: of :func:`ptedge.runtime.benchmark.report.benchmark_report`.
    """
    blocks = [_run_text(run) for run in report["runs"]]
    if len(report["runs"]) > 1:
        blocks.append(_side_by_side(report))
    lines = _machine_lines(report)
    lines.append(f"included    end_to_end: {report['included']['end_to_end']}")
    lines += [f"without     {entry['backend']}: {entry['why']}" for entry in report["skipped"]]
    lines += [f"warning     {warning}" for warning in report["warnings"]]
    for run in report["runs"]:
        prefix = f"{run['name']}: " if len(report["runs"]) > 1 else ""
        lines += [f"warning     {prefix}{warning}" for warning in run["warnings"]]
    return "\n\n".join([*blocks, "\n".join(lines)])


def comparison_text(comparison: Mapping[str, Any]) -> str:
    """What changed between two reports.

    Args:
        comparison: of :func:`ptedge.runtime.benchmark.compare.compare`.
    """
    blocks = []
    for pair in comparison["pairs"]:
        title = pair["old"] if pair["old"] == pair["new"] else f"{pair['old']} -> {pair['new']}"
        rows = [[title, "old", "new", "new / old", "95 % interval", "verdict"]]
        for name, values in pair["values"].items():
            low, high = values["low"], values["high"]
            interval = "too few rounds" if low is None else f"{low:.3f} to {high:.3f}"
            middle = [f"{values[which]:.4g}" for which in ("old", "new")]
            rows.append([name, *middle, f"{values['ratio']:.3f}", interval, values["verdict"]])
        blocks.append(_aligned(rows))
    lines = [f"differs     {d['what']}: {_short(d['old'])} -> {_short(d['new'])}" for d in comparison["differs"]]
    lines += [f"only in old {name}" for name in comparison["only_old"]]
    lines += [f"only in new {name}" for name in comparison["only_new"]]
    lines += [f"warning     {warning}" for warning in comparison["warnings"]]
    return "\n\n".join(blocks + (["\n".join(lines)] if lines else []))


def _run_text(run: Mapping[str, Any]) -> str:
    rows = [["ms a call", *COLUMNS, "cv"]]
    for stage, values in run["latency_ms"].items():
        if values is not None:
            rows.append([stage, *(f"{values[name]:.2f}" for name in COLUMNS), f"{values['cv']:.0%}"])
    height, width = run["input_size"]
    rate = run["throughput"]
    lines = [
        run["name"],
        _aligned(rows),
        f"throughput  {rate['images_per_second']:.2f} images/s: {run['calls']} calls of {run['batch']} in "
        f"{run['seconds']:.1f} s, {run['slots']} at once, after {run['warm_up_calls']} warm-up calls; "
        f"{run['cpu_cores']:.2f} CPU cores busy",
    ]
    if rate["engine_images_per_second"] is not None:
        lines.append(f"engine      {rate['engine_images_per_second']:.2f} images/s alone, with nothing copied")
    about = [f"{run['launch']}" if run["launch"] else "", f"{run['memory']} memory" if run["memory"] else ""]
    about += [f"loaded in {run['load_seconds']:.1f} s"]
    lines.append(
        f"model       {width}x{height} {run['precision']} on {run['backend']} ({run['reason']}); "
        + ", ".join(part for part in about if part)
    )
    if run["absent"]:
        lines.append(f"not known   {', '.join(run['absent'])}: {next(iter(run['absent'].values()))}")
    return "\n".join(lines)


def _side_by_side(report: Mapping[str, Any]) -> str:
    first = report["runs"][0]["name"]
    rows = [
        [
            "",
            "size",
            "batch",
            "images/s",
            "ms a call",
            "p99",
            "ms an image",
            "detections",
            "rate by first",
            "95 % interval",
        ]
    ]
    for run in report["runs"]:
        whole, against = run["latency_ms"]["end_to_end"], run["against_first"]
        height, width = run["input_size"]
        numbers = (run["throughput"]["images_per_second"], whole["median"], whole["p99"], run["ms_per_image"])
        cells = [f"{number:.2f}" for number in (*numbers, run["detections_per_image"])]
        rows.append([run["name"], f"{width}x{height}", f"{run['batch']}", *cells, *_ratio_text(against)])
    return f"side by side, {report['rounds']} rounds in turns; first is {first}\n{_aligned(rows)}"


def _ratio_text(against: Mapping[str, Any] | None) -> tuple[str, str]:
    if against is None:
        return "1", ""
    ratio = against["images_per_second"]
    if ratio["low"] is None:
        return f"{ratio['ratio']:.3f}", "(too few rounds for an interval)"
    verdict = "" if ratio["differs"] else ", no difference beyond noise"
    return f"{ratio['ratio']:.3f}", f"({ratio['low']:.3f} to {ratio['high']:.3f}{verdict})"


def _machine_lines(report: Mapping[str, Any]) -> list[str]:
    env = report["environment"]
    gpu, versions = env["gpu"] or {}, env["versions"]
    parts = [env["machine"], env["cpu"], f"{env['cores_usable']} of {env['cores']} cores"]
    parts += [f"quota {env['cpu_quota']} cores" if env["cpu_quota"] else None, f"load {env['load']}"]
    parts += [f"threads {'default' if env['threads'] is None else env['threads']}"]
    parts += [f"governor {env['cpu_governor']}" if env["cpu_governor"] else None]
    lines = [f"machine     {', '.join(part for part in parts if part)}"]
    gpu_parts = [gpu.get("name"), f"driver {gpu['driver']}" if gpu.get("driver") else None]
    gpu_parts += [f"CUDA {env['cuda']}" if env["cuda"] else None, env["jetson_release"]]
    gpu_parts += [f"power mode {env['power_mode']}" if env["power_mode"] is not None else None]
    if any(gpu_parts):
        lines.append(f"GPU         {', '.join(part for part in gpu_parts if part)}")
    lines.append(f"versions    {', '.join(f'{name} {v}' for name, v in versions.items() if v)}")
    meanwhile = _meanwhile(report["readings"])
    if meanwhile:
        lines.append(f"meanwhile   {meanwhile}")
    frames = report["frames"]
    lines.append(f"frames      {frames['source']}: {frames['count']} of {frames['size'][1]}x{frames['size'][0]}")
    return lines


def _meanwhile(readings: Sequence[Mapping[str, Any]]) -> str:
    """Range of each reading over the benchmark: 'gpu_c 41 to 57, GPU temperature ...'."""
    series: dict[str, list[float]] = {}
    for reading in readings:
        for name, value in reading.items():
            nested = value if isinstance(value, Mapping) else {"": value}
            for part, number in nested.items():
                if isinstance(number, (int, float)) and name not in ("at", "over_current_events"):
                    series.setdefault(f"{name} {part}".strip(), []).append(number)
    return ", ".join(f"{name} {min(v):g} to {max(v):g}" for name, v in series.items())


def _aligned(rows: Sequence[Sequence[str]]) -> str:
    """Columns of equal width: the first to the left, the last, which is words, as it is."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    lines = []
    for row in rows:
        cells = [cell.rjust(width) for cell, width in zip(row[1:-1], widths[1:-1], strict=True)]
        lines.append("  ".join([row[0].ljust(widths[0]), *cells, row[-1]]).rstrip())
    return "\n".join(lines)


def _short(value: Any) -> str:
    """A value as text; of a hash the beginning."""
    text = str(value)
    return f"{text[:12]}..." if len(text) == 64 and set(text) <= set("0123456789abcdef") else text

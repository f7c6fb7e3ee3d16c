"""The ``ptedge`` command: names, and where each command lives; its module is imported only when it is asked for."""

from __future__ import annotations

import importlib
import sys
from typing import Any

import click

from ptedge import __version__
from ptedge.errors import PtedgeError, absent_extra
from ptedge.hints import helped
from ptedge.signals import EndedError, watch
from ptedge.streams import guard
from ptedge.text import printable
from ptedge.verbosity import options, with_common_options

# name -> (module:function, one line for the list of commands); the lines stand here so that --help loads nothing
COMMANDS = {
    "train": ("ptedge.training.cli:train", "Pretrain a detector on labelled source images."),
    "adapt": ("ptedge.training.cli:adapt", "Adapt a detector to unlabelled target frames."),
    "study": ("ptedge.training.study.cli:study", "Run a table of variants over seeds, and compare."),
    "plot": ("ptedge.training.curves.cli:plot", "Draw the curves of one run, or of several together."),
    "report": ("ptedge.training.report.cli:report", "Write one HTML page about a run: before and after."),
    "eval": ("ptedge.commands.eval:evaluate", "Score a model on labelled data: AP and quality of sigma."),
    "calibrate": ("ptedge.commands.calibrate:calibrate", "Correct a model's boxes and sigma by a few labels."),
    "estimate": ("ptedge.training.estimate.cli:estimate", "Estimate AP and the scale of sigma without labels."),
    "jitter": ("ptedge.commands.jitter:jitter", "Bound sigma from below by how boxes tremble in a video."),
    "drift": ("ptedge.commands.drift:drift", "Tell whether frames look as those a model was made for."),
    "export": ("ptedge.export.cli:export", "Write a checkpoint as an ONNX bundle for the device."),
    "build": ("ptedge.export.cli:build", "Build a TensorRT engine of a bundle on this device."),
    "verify": ("ptedge.export.cli:verify", "Check that a bundle answers as its checkpoint does."),
    "sign": ("ptedge.export.cli:sign", "Sign a bundle and its engines."),
    "run": ("ptedge.runtime.cli:run", "Detect on images or video; write results, collect frames."),
    "promote": ("ptedge.runtime.deployment.cli:promote", "Have a deployment run a bundle, if it passes the gate."),
    "rollback": ("ptedge.runtime.deployment.cli:rollback", "Have a deployment run the version before again."),
    "history": ("ptedge.runtime.deployment.cli:history", "Tell what ran on a deployment when, and why."),
    "loop": ("ptedge.loop.cli:loop", "One round for a site: fetch, adapt, gate, canary, everywhere."),
    "benchmark": ("ptedge.runtime.benchmark.cli:benchmark", "Measure how fast a bundle runs on this machine."),
    "bundle": ("ptedge.runtime.transfer.bundle_cli:bundle", "Send a bundle to a store, or fetch one from there."),
    "field": ("ptedge.runtime.field_cli:field", "Look into, export or prune a field folder."),
    "data": ("ptedge.commands.data:data", "Check, count or convert a labelled data set."),
    "shift": ("ptedge.samples.shift:shift", "Write labelled images under fog, night, rain and blur."),
    "inspect": ("ptedge.commands.inspect:inspect", "Tell what a file or folder is and where it came from."),
    "doctor": ("ptedge.commands.doctor:doctor", "Tell what this machine can do and what to install."),
    "demo": ("ptedge.samples.demo:demo", "The whole loop on generated scenes, in one command."),
}


class _LazyGroup(click.Group):
    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name][0].partition(":")
        return with_common_options(getattr(importlib.import_module(module), function))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if args and args[0] not in COMMANDS and not args[0].startswith("-"):
            raise click.UsageError(f"No such command {args[0]!r}.", ctx)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise helped(error) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in COMMANDS.items()])


@click.group(cls=_LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="ptedge")
def cli() -> None:
    """Keep an object detector good where it is deployed.

    Train on labelled images, adapt to unlabelled footage (Probabilistic Teacher), export to the device, run with a
    standard deviation for every box side, collect, adapt again. Start with: ptedge demo
    """


cli.params += options()


def main() -> None:
    """Entry point: a PtedgeError becomes one sentence on stderr and exit status 1, a signal 128 and its number."""
    watch()
    guard()
    try:
        cli()
    except EndedError as ended:
        click.echo(f"ptedge: ended by {ended.name}", err=True)
        raise
    except PtedgeError as error:
        _fail(str(error))
    except ModuleNotFoundError as error:
        if (named := absent_extra(error)) is None:
            raise
        _fail(str(named))


def _fail(message: str) -> None:
    click.echo(f"ptedge: {printable(message)}", err=True)
    sys.exit(1)


__all__ = ["COMMANDS", "cli", "main"]

from __future__ import annotations

import re

import click
import pytest
from click.testing import CliRunner

from ptedge.cli import COMMANDS, cli
from ptedge.hints import COMMAND_WORDS, ELSE, OPTION_WORDS, VALUE_WORDS, meant

CONF = "--min-score of ptedge run; nowhere else are detections left out by their score"
EPOCHS = "--set optim.steps=600; steps of optim.batch images each"


def refused(*words: str) -> str:
    """What a wrong command line is answered with: its last sentence."""
    result = CliRunner().invoke(cli, list(words))
    assert result.exit_code == 2, result.output
    return result.stderr.strip().splitlines()[-1]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("trian", "No such command 'trian'. Did you mean 'train'?"),
        ("predict b f", "No such command 'predict'. Did you mean 'run'?"),
        ("xyzzy", "No such command 'xyzzy'."),
        ("data chek d", "No such command 'chek'. Did you mean 'check'?"),
        ("run b f --conf 0.3", "No such option '--conf'. Here it is --min-score (in pictures: --draw-score)"),
        ("eval m d --CONF_thres=1", "No such option '--CONF_thres'. Here it is " + CONF),
        ("run b f --device 0", "No such option '--device'. Here it is --backend (cuda, tensorrt or cpu)"),
        ("export m --imgsz 640", "No such option '--imgsz'. Here it is --size 384x640, height x width"),
        ("train d --epochs 3", "No such option '--epochs'. Here it is " + EPOCHS),
    ],
)
def test_helped__names_what_was_meant(words: str, said: str) -> None:
    assert refused(*words.split()) == f"Error: {said}"


def test_helped__mistyped_options() -> None:
    assert "--min-score" in refused("run", "b", "f", "--min-scor", "1")
    assert "--split" in refused("data", "stats", "d", "--splti", "x")


def test_helped__an_argument_is_shown_in_its_place() -> None:
    assert refused("run", "b", "--weights", "x").endswith(
        "an argument, without an option's name: ptedge run [OPTIONS] BUNDLE FRAMES..."
    )


@pytest.mark.parametrize(("typed", "ours"), [("gpu", "cuda"), ("trt", "tensorrt"), ("cudda", "cuda")])
def test_helped__values(typed: str, ours: str) -> None:
    said = refused("run", "b", "f", "--backend", typed)
    assert said.startswith("Error: Invalid value for '--backend'") and said.endswith(f"Did you mean {ours!r}?")


def test_helped__frames_of_adapt_are_its_target() -> None:
    assert "--target is the frames to adapt to" in refused("adapt", "m", "--source", "frames", "--out", "o")


def test_meant__only_what_is_near_or_known() -> None:
    assert meant("tarin", ["train", "run"]) == " Did you mean 'train'?"
    assert meant("gpu", ["cuda", "cpu"], VALUE_WORDS) == " Did you mean 'cuda'?"
    assert meant("half", ["cuda", "cpu"], VALUE_WORDS) == ""


def test_words__lead_to_commands_and_options_that_there_are() -> None:
    assert set(COMMAND_WORDS.values()) <= set(COMMANDS)
    assert not set(COMMAND_WORDS) & set(COMMANDS)
    assert {name for by_command in OPTION_WORDS.values() for name in by_command} - {ELSE} <= set(COMMANDS)
    wrong = []
    for words, by_command in OPTION_WORDS.items():
        for name, text in by_command.items():
            for option in re.findall(r"--[a-z-]+", text):
                named = re.findall(r"ptedge (\w+)(?: (\w+))?", text) or [(name, "")]
                places = [pair for pair in named if pair[0] in COMMANDS] or [(command, "") for command in COMMANDS]
                if not any(option in options_of(*place) for place in places):
                    wrong.append(f"{words[0]} in {name or 'others'}: {option}")
    assert wrong == []


def options_of(name: str, inner: str) -> set[str]:
    ctx = click.Context(cli)
    command = cli.get_command(ctx, name)
    assert command is not None
    if isinstance(command, click.Group) and inner in command.commands:
        command = command.commands[inner]
    return {option for param in command.params for option in param.opts}

"""What people type who know other tools, or mistype: a sentence that names our command, option or value.

Nothing is taken for what it may mean: a command that was misunderstood costs more than a second try.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

import click

# command of another tool -> ours
COMMAND_WORDS = {
    **dict.fromkeys(("predict", "detect", "infer", "inference", "track", "stream", "serve"), "run"),
    **dict.fromkeys(("val", "validate", "evaluate", "test", "score"), "eval"),
    **dict.fromkeys(("finetune", "fine-tune", "tune", "da", "self-train"), "adapt"),
    **dict.fromkeys(("pretrain", "fit"), "train"),
    **dict.fromkeys(("convert", "quantize", "deploy", "onnx"), "export"),
    **dict.fromkeys(("compile", "engine", "trtexec"), "build"),
    **dict.fromkeys(("bench", "profile", "speed"), "benchmark"),
    **dict.fromkeys(("checks", "check", "info", "settings", "env"), "doctor"),
    **dict.fromkeys(("show", "describe"), "inspect"),
    **dict.fromkeys(("sweep", "experiment", "ablate"), "study"),
}

ELSE = ""  # for all other commands
_ARGUMENT = "an argument, without an option's name"
_THE_GPU = "nothing to set: a GPU is taken when there is one, and CUDA_VISIBLE_DEVICES chooses which"
_STEPS = "--set optim.steps=600"

# options of other tools -> command of ours -> what it is there
OPTION_WORDS: dict[tuple[str, ...], dict[str, str]] = {
    ("--conf", "--conf-thres", "--conf-threshold", "--confidence", "--threshold", "--score-thr", "--score-threshold"): {
        "run": "--min-score (in pictures: --draw-score)",
        "field": "--min-score of ptedge field export",
        ELSE: "--min-score of ptedge run; nowhere else are detections left out by their score",
    },
    ("--iou", "--iou-thres", "--iou-threshold", "--nms"): {
        "train": "--set model.nms=0.5",
        ELSE: "part of the model: suppression is inside the graph, set by ptedge train --set model.nms=0.5",
    },
    ("--device", "--gpu", "--gpus", "--cuda", "--cpu", "--accelerator"): {
        **dict.fromkeys(("run", "eval", "benchmark", "verify"), "--backend (cuda, tensorrt or cpu)"),
        **dict.fromkeys(("train", "adapt", "study"), _THE_GPU),
        ELSE: "nothing to set in this command",
    },
    ("--imgsz", "--img-size", "--img", "--image-size", "--input-size", "--resolution", "--shape"): {
        "export": "--size 384x640, height x width",
        "data": "--size of ptedge data stats",
        "train": "--set model.input_size=[384,640], height and width",
        "adapt": "the checkpoint's; ptedge train --set model.input_size=[384,640] sets it",
        ELSE: "the model's; ptedge export --size 384x640 sets it",
    },
    ("--weights", "--model", "--checkpoint", "--ckpt", "--model-path", "--bundle", "--engine"): {
        "train": "--set model.weights=imagenet",
        ELSE: _ARGUMENT,
    },
    ("--source", "--input", "--video", "--images", "--image", "--camera", "--rtsp", "--url", "--path"): {
        "run": _ARGUMENT,
        "adapt": "--target, for the frames to adapt to",
        "verify": "--frames",
        "benchmark": "--frames",
        ELSE: _ARGUMENT,
    },
    ("--data", "--dataset", "--annotations", "--labels", "--yaml"): {
        "adapt": "--source for the labelled data the checkpoint was trained on, --target for the frames to adapt to",
        ELSE: _ARGUMENT,
    },
    ("--epochs", "--epoch", "--iterations", "--iters", "--max-iter", "--max-iters", "--steps", "--max-steps"): {
        **dict.fromkeys(("train", "adapt", "study"), f"{_STEPS}; steps of optim.batch images each"),
        ELSE: f"{_STEPS} of ptedge train",
    },
    ("--batch-size", "--batch", "--bs", "--batchsize"): {
        **dict.fromkeys(("train", "adapt", "study"), "--set optim.batch=8"),
        ELSE: "the model's; ptedge export --batch 4 sets it",
    },
    ("--lr", "--lr0", "--learning-rate"): {ELSE: "--set optim.lr=0.0004 of ptedge train and adapt"},
    ("--optimizer",): {ELSE: "--set optim.optimizer=adamw of ptedge train and adapt"},
    ("--workers", "--num-workers"): {ELSE: "--set workers=4 of ptedge train and adapt"},
    ("--seed",): {ELSE: "--set seed=1 of ptedge train and adapt"},
    ("--ema", "--momentum-teacher"): {ELSE: "--set teacher.ema=0.999 of ptedge adapt"},
    ("--half", "--fp16", "--amp", "--mixed-precision", "--bf16"): {
        "export": "--precision fp16",
        **dict.fromkeys(("train", "adapt", "study"), "--set precision=bf16"),
        ELSE: "the model's; ptedge export --precision fp16 sets it",
    },
    ("--int8", "--quantize", "--quant"): {
        "export": "--precision int8 with --calibrate FRAMES",
        ELSE: "the model's; ptedge export --precision int8 sets it",
    },
    ("--format", "--opset", "--dynamic", "--simplify"): {
        "export": "nothing to set: the graph is ONNX of opset 17 with static shapes; ptedge build makes engines",
        ELSE: "nothing to set: formats are told by content",
    },
    (
        "--name",
        "--project",
        "--output",
        "--output-dir",
        "--out-dir",
        "--outdir",
        "--save-dir",
        "--work-dir",
        "--dest",
    ): {
        ELSE: "--out, where this command writes files",
    },
    ("--cfg", "--hyp", "--opts", "--opt", "--cfg-options"): {
        **dict.fromkeys(("train", "adapt"), "--config FILE.toml, and --set KEY=VALUE for one setting"),
        ELSE: "--config FILE.toml of ptedge train and adapt",
    },
    ("--show", "--view", "--view-img", "--display", "--visualize", "--stream"): {
        ELSE: "--serve 8080 of ptedge run, a live page, or --save images,video",
    },
    ("--save-txt", "--save-json", "--save-csv", "--save-conf", "--nosave", "--save-frames"): {
        ELSE: "--save jsonl,csv,coco,images,video, or --save none, of ptedge run",
    },
    ("--fps", "--vid-stride", "--max-frames"): {ELSE: "--rate, --stride and --limit of ptedge run"},
    ("--pretrained",): {ELSE: "--set model.weights=imagenet of ptedge train"},
}

# values of other tools -> ours, where a choice has them
VALUE_WORDS = {
    **dict.fromkeys(("gpu", "0", "cuda:0", "onnxruntime-gpu"), "cuda"),
    **dict.fromkeys(("trt", "engine"), "tensorrt"),
    **dict.fromkeys(("rtx", "trt-rtx", "tensorrt_rtx"), "tensorrt-rtx"),
    **dict.fromkeys(("half", "float16", "16"), "fp16"),
    **dict.fromkeys(("float32", "float", "full", "32"), "fp32"),
    **dict.fromkeys(("8", "quantized"), "int8"),
    **dict.fromkeys(("hflip", "h", "lr"), "horizontal"),
    **dict.fromkeys(("vflip", "v", "ud"), "vertical"),
}

_NO_COMMAND = re.compile(r"No such command '(.*)'")
_NO_CHOICE = re.compile(r"'(.*?)' is not one of")


def helped(error: click.UsageError) -> click.UsageError:
    """The same error with what was probably meant.

    Args:
        error: of click, about a command, an option or a value; others come back as they are.
    """
    ctx = error.ctx
    if ctx is None:
        return error
    if isinstance(error, click.NoSuchOption):
        said = option_hint(error.option_name, _words(ctx))
        if said == _ARGUMENT:
            usage = " ".join(["ptedge", *_words(ctx), *ctx.command.collect_usage_pieces(ctx)])
            said = f"Here it is {_ARGUMENT}: {usage}"
        if said:
            return _saying(error, f"No such option {error.option_name!r}. {said}")
    elif isinstance(error, click.MissingParameter):
        if ctx.info_name == "adapt" and error.param is not None and error.param.name == "target":
            said = "--target is the frames to adapt to, --source labelled data"
            return _saying(error, f"{error.format_message()} {said}")
    elif isinstance(error, click.BadParameter) and error.param is not None:
        found, kind = _NO_CHOICE.search(error.message), error.param.type
        if found and isinstance(kind, click.Choice):
            return _saying(error, error.format_message() + meant(found[1], map(str, kind.choices), VALUE_WORDS))
    elif isinstance(ctx.command, click.Group) and (found := _NO_COMMAND.match(error.message)):
        words = COMMAND_WORDS if ctx.parent is None else {}
        return _saying(error, f"No such command {found[1]!r}." + meant(found[1], ctx.command.list_commands(ctx), words))
    return error


def option_hint(option: str, command: list[str]) -> str:
    """What an option of other tools is called here; empty for one that is not known.

    Args:
        option: as typed, with its dashes.
        command: words after ``ptedge``, groups first.
    """
    typed = option.lower().replace("_", "-")
    name = command[0] if command else ""
    for words, by_command in OPTION_WORDS.items():
        if typed in words:
            ours = by_command.get(name, by_command[ELSE])
            return ours if ours == _ARGUMENT else f"Here it is {ours}"
    return ""


def meant(word: str, known: Iterable[str], words: Mapping[str, str] | None = None) -> str:
    """`` Did you mean 'this'?``, or nothing.

    Args:
        word: as typed.
        known: that there are.
        words: of other tools, with ours.
    """
    names = list(known)
    ours = (words or {}).get(word.lower())
    near = [ours] if ours in names else difflib.get_close_matches(word.lower(), names, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def _words(ctx: click.Context) -> list[str]:
    """What was typed after ``ptedge`` to come to a command."""
    words: list[str] = []
    while ctx.parent is not None:
        words.insert(0, str(ctx.info_name))
        ctx = ctx.parent
    return words


def _saying(error: click.UsageError, message: str) -> click.UsageError:
    said = click.UsageError(message, error.ctx)
    return said.with_traceback(error.__traceback__)

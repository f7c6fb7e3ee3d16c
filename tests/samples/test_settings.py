"""Settings in samples/: shorter files mean what they meant, and the paper's are the paper's."""

from __future__ import annotations

from pathlib import Path

import pytest
from places import ROOT

pytest.importorskip("torch", reason="settings of training name torch's modules")

from ptedge.config import dotted_keys, from_dict, load_config, read_toml
from ptedge.training.config import AdaptConfig, TrainConfig
from ptedge.training.recipes.presets import PAPER, preset_values
from ptedge.training.recipes.recipe import Situation, settle

SAMPLES = ROOT / "samples"
# the files as docs/results.md was measured with them, when the paper's settings were the defaults
TRAIN = """
log_every = 20
checkpoint_every = 1000
view = "weak"
[model]
backbone = "efficientnet_lite0"
input_size = [240, 416]
anchor_sizes = [20, 45, 100]
[optim]
optimizer = "adamw"
steps = 400
batch = 4
lr = 0.0003
weight_decay = 0.01
warmup = 50
schedule = "cosine"
[sampling]
roi_count = 64
"""
ORACLE = TRAIN.replace("weak", "strong").replace("steps = 400", "steps = 250")
ADAPT = """
log_every = 10
checkpoint_every = 1000
[optim]
optimizer = "adamw"
steps = 100
batch = 4
lr = 0.0001
weight_decay = 0.01
warmup = 10
schedule = "cosine"
anchor_lr = 0.001
[teacher]
ema = 0.98
[sampling]
roi_count = 64
"""
SOURCE_FREE = """
log_every = 10
checkpoint_every = 1000
[optim]
optimizer = "adamw"
steps = 100
batch = 4
lr = 0.0001
weight_decay = 0.01
warmup = 10
schedule = "cosine"
anchor_lr = 0.001
[teacher]
ema = 0.98
adabn = false
[pseudo]
clamp_focal = false
"""
MEASURED = {
    "train": (TRAIN, "train", 580),
    "oracle": (ORACLE, "train", 275),
    "adapt": (ADAPT, "adapt", 275),
    "source_free": (SOURCE_FREE, "source_free", 275),
}
KINDS = {"train": "train", "oracle": "train", "adapt": "adapt", "source_free": "source_free"}


@pytest.mark.parametrize("name", MEASURED)
@pytest.mark.parametrize("sets", [(), ("optim.steps=1000",)])
def test_carla_to_road__resolves_to_what_was_measured(name: str, sets: tuple[str, ...], tmp_path: Path) -> None:
    text, kind, images = MEASURED[name]
    cls = TrainConfig if kind == "train" else AdaptConfig
    if kind == "train" and sets:
        pytest.skip("rows of the study lengthen adaptations alone")
    (tmp_path / "then.toml").write_text(text, "utf-8")
    then = load_config(cls, tmp_path / "then.toml", sets, preset_values(PAPER, kind))
    file = SAMPLES / "carla_to_road" / f"{name}.toml"
    now = load_config(cls, file, sets)
    given = dotted_keys(read_toml(file)) | {value.partition("=")[0] for value in sets}
    assert settle(now, given, Situation(kind, images, gpu=False)).config == then
    assert settle(now, given, Situation(kind, images, gpu=True)).config == then


@pytest.mark.parametrize("name", KINDS)
def test_protocols__are_the_papers_whatever_the_defaults(name: str) -> None:
    """Each key that differs between the paper's recipe and the defaults stands in the file."""
    kind = KINDS[name]
    cls = TrainConfig if kind == "train" else AdaptConfig
    values = read_toml(SAMPLES / "protocols" / f"{name}.toml")
    given = dotted_keys(values)
    assert dotted_keys(preset_values(PAPER, kind)) - {"optim.anchor_lr"} <= given  # train's is 0 in both
    config = from_dict(cls, values, name)
    assert settle(config, given, Situation(kind, 8925, gpu=True)).config == config
    assert (config.optim.optimizer, config.optim.schedule, config.optim.batch) == ("sgd", "constant", 16)
    assert config.optim.lr == (0.0016 if kind == "source_free" else 0.016)
    assert config.optim.steps == {"train": 4000, "oracle": 30000}.get(name, 26000)
    if isinstance(config, TrainConfig):
        assert (config.view, config.model.anchor_sizes, config.optim.anchor_lr) == ("strong", (128, 256, 512), 0)
    else:
        assert (config.teacher.ema, config.teacher.adabn) == (0.9996, False)
        assert config.pseudo.clamp_focal is (kind == "source_free")

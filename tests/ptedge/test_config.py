from __future__ import annotations

import math
from dataclasses import dataclass, field
from pathlib import Path

import pytest
import tomli_w
from hypothesis import given
from hypothesis import strategies as st

from ptedge.config import (
    dotted_keys,
    from_dict,
    load_config,
    read_toml,
    require,
    require_one_of,
    settings_given,
    to_dict,
)
from ptedge.errors import ConfigError


@dataclass(frozen=True)
class Optim:
    steps: int = 100
    rate: float = 0.1
    nesterov: bool = False

    def __post_init__(self) -> None:
        require("steps", self.steps, 1)
        require("rate", self.rate, 0, 10, open_low=True)


@dataclass(frozen=True)
class Config:
    name: str = "a"
    size: tuple[int, int] = (240, 416)
    anchors: tuple[tuple[float, float], ...] = ((1.0, 2.0),)
    limit: float | None = None
    optim: Optim = field(default_factory=Optim)


@dataclass(frozen=True)
class Needs:
    format: str
    images: str
    split: str = "train"


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "c.toml"
    path.write_text(text, "utf-8")
    return path


def test_load_config__without_a_file_gives_defaults() -> None:
    assert load_config(Config, None) == Config()


def test_load_config__tables_lists_and_optional_values(tmp_path: Path) -> None:
    path = write(
        tmp_path,
        'name = "ü"\nsize = [16, 32]\nanchors = [[1, 2], [3.5, 4]]\nlimit = 3\n[optim]\nsteps = 7\nnesterov = true\n',
    )
    got = load_config(Config, path)
    assert got == Config("ü", (16, 32), ((1.0, 2.0), (3.5, 4.0)), 3.0, Optim(7, 0.1, True))
    assert isinstance(got.limit, float)
    assert isinstance(got.anchors[0][0], float)


def test_load_config__overrides_win_over_the_file(tmp_path: Path) -> None:
    path = write(tmp_path, "[optim]\nsteps = 7\nrate = 0.5\n")
    got = load_config(Config, path, ["optim.steps=9", "name=car park", "size=[1, 2]", "optim.nesterov = true"])
    assert got == Config("car park", (1, 2), optim=Optim(9, 0.5, True))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("nam = 'b'", "c.toml: unknown key 'nam'; did you mean 'name'?"),
        ("steps = 1", "c.toml: unknown key 'steps'; did you mean 'optim.steps'?"),
        ("[optim]\nepochs = 1", "c.toml: optim: unknown key 'epochs'; did you mean 'steps'?"),
        ("epochs = 1", "c.toml: unknown key 'epochs'; did you mean 'optim.steps'?"),
        ("xyz = 1", "c.toml: unknown key 'xyz'; known keys: name, size, anchors, limit, optim"),
        ("[optim]\nstep = 1", "c.toml: optim: unknown key 'step'; did you mean 'steps'?"),
        ("zzzzzz = 1", "c.toml: unknown key 'zzzzzz'; known keys: name, size, anchors, limit, optim"),
        ("name = 3", "c.toml: name must be of type str, got 3"),
        ("[optim]\nsteps = 1.5", "c.toml: optim: steps must be of type int, got 1.5"),
        ("[optim]\nsteps = true", "c.toml: optim: steps must be of type int, got True"),
        ("[optim]\nnesterov = 1", "c.toml: optim: nesterov must be of type bool, got 1"),
        ("limit = true", "c.toml: limit must be of type float, got True"),
        ("optim = 3", "c.toml: optim is a table, got 3"),
        ("size = 3", "c.toml: size is a list, got 3"),
        ("size = [1, 2, 3]", "c.toml: size has 2 values, got [1, 2, 3]"),
        ("[optim]\nsteps = 0", "c.toml: optim: steps is 0; it must be at least 1"),
        ("[optim]\nrate = 0", "c.toml: optim: rate is 0.0; it must be above 0 and at most 10"),
        ("[optim]\nrate = nan", "c.toml: optim: rate is nan; it must be above 0 and at most 10"),
        ("name = ", "is not valid TOML"),
    ],
)
def test_load_config__says_what_is_wrong_and_where(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(Config, write(tmp_path, text))
    assert message in str(caught.value)


def test_load_config__missing_file_and_bytes_that_are_no_text(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read configuration .*none.toml: No such file"):
        load_config(Config, tmp_path / "none.toml")
    (tmp_path / "b.toml").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(ConfigError, match=r"b.toml is not valid TOML"):
        load_config(Config, tmp_path / "b.toml")


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("steps", "--set 'steps': write it as key=value"),
        ("=3", "--set '=3': write it as key=value"),
        ("name.x=3", "--set: name must be of type str"),
        ("optim.stepz=3", "--set: optim: unknown key 'stepz'; did you mean 'steps'?"),
    ],
)
def test_load_config__bad_override(override: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(Config, None, [override])
    assert message in str(caught.value)


def test_load_config__override_of_a_value_as_a_table(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="name is a value, not a table"):
        load_config(Config, write(tmp_path, "name = 'b'"), ["name.x=3"])


def test_load_config__with_file_and_override_names_both(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"c.toml and --set: optim: steps is -1"):
        load_config(Config, write(tmp_path, ""), ["optim.steps=-1"])


def test_from_dict__missing_key_is_named() -> None:
    with pytest.raises(ConfigError, match=r"^data.toml: missing images$"):
        from_dict(Needs, {"format": "voc"}, "data.toml")
    assert from_dict(Needs, {"format": "voc", "images": "x"}, "data.toml") == Needs("voc", "x")


configs = st.builds(
    Config,
    name=st.text(st.characters(codec="utf-8"), max_size=20),
    size=st.tuples(st.integers(1, 9999), st.integers(1, 9999)),
    anchors=st.lists(st.tuples(*[st.floats(1, 1e6, allow_subnormal=False)] * 2), max_size=4).map(tuple),
    limit=st.none() | st.floats(allow_nan=False),
    optim=st.builds(
        Optim, steps=st.integers(1, 10**9), rate=st.floats(0, 10, exclude_min=True), nesterov=st.booleans()
    ),
)


@given(configs)
def test_to_dict__round_trip_by_from_dict(config: Config) -> None:
    assert from_dict(Config, to_dict(config), "x") == config


@given(configs)
def test_to_dict__round_trip_by_toml_file(tmp_path_factory: pytest.TempPathFactory, config: Config) -> None:
    path = tmp_path_factory.mktemp("config") / "c.toml"
    path.write_bytes(tomli_w.dumps(to_dict(config)).encode())
    assert load_config(Config, path) == config


def test_to_dict__leaves_out_none() -> None:
    assert "limit" not in to_dict(Config())


def test_require__edges() -> None:
    require("x", 0, 0, 1)
    require("x", 1, 0, 1)
    with pytest.raises(ValueError, match="x is 2; it must be at least 0 and at most 1"):
        require("x", 2, 0, 1)
    with pytest.raises(ValueError, match="x is nan"):
        require("x", math.nan, 0)


def test_require_one_of__lists_what_is_allowed() -> None:
    require_one_of("policy", "a", ["a", "b"])
    with pytest.raises(ValueError, match="policy is 'c'; it must be one of a, b"):
        require_one_of("policy", "c", ["a", "b"])


def test_load_config__defaults_stand_below_file_and_overrides(tmp_path: Path) -> None:
    pytest.importorskip("torch", reason="settings of training name torch's modules")
    from ptedge.training.config import AdaptConfig

    below = {"optim": {"lr": 0.0004, "anchor_lr": 0.0001}, "teacher": {"adabn": True}}
    file = tmp_path / "adapt.toml"
    file.write_text("[optim]\nlr = 0.5\n")
    config = load_config(AdaptConfig, file, ["teacher.ema=0.9"], below)
    assert (config.optim.lr, config.optim.anchor_lr) == (0.5, 0.0001)  # file, then defaults
    assert (config.teacher.ema, config.teacher.adabn) == (0.9, True)
    assert config.optim.momentum == AdaptConfig().optim.momentum  # untouched keys keep the class's own
    assert load_config(AdaptConfig, None).teacher.adabn is False


def test_from_dict__a_table_is_completed_by_the_fields_own_default(tmp_path: Path) -> None:
    """Not by the defaults of the table's class, from which the field's may differ."""

    @dataclass(frozen=True)
    class Outer:
        optim: Optim = field(default_factory=lambda: Optim(steps=7, nesterov=True))

    assert load_config(Outer, None, ["optim.rate=0.5"]) == Outer(Optim(steps=7, nesterov=True, rate=0.5))
    assert load_config(Outer, None) == Outer()


def test_settings_given__keys_of_file_and_overrides(tmp_path: Path) -> None:
    path = write(tmp_path, "name = 'b'\n[optim]\nrate = 0.5\n")
    said = settings_given(path, ["optim.steps=3"], {"size": [1, 2]})
    assert said == {"name": "b", "optim": {"rate": 0.5, "steps": 3}, "size": [1, 2]}
    assert dotted_keys(said) == {"name", "optim.rate", "optim.steps", "size"}


@dataclass(frozen=True)
class Reading:
    number: int | float
    by_name: dict[str, float | None]
    parts: tuple[Optim, ...] = ()
    note: str | None = None


def test_from_dict__what_json_has_beyond_toml() -> None:
    got = from_dict(Reading, {"number": 3, "by_name": {"a": 1, "b": None}, "parts": [{"steps": 7}], "note": None}, "r")
    assert got == Reading(3, {"a": 1.0, "b": None}, (Optim(7),), None)
    assert type(got.number) is int and type(from_dict(Reading, {"number": 3.0, "by_name": {}}, "r").number) is float


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"number": "3", "by_name": {}}, "r: number must be of type int or float, got '3'"),
        ({"number": True, "by_name": {}}, "r: number must be of type int or float, got True"),
        ({"number": None, "by_name": {}}, "r: number must be of type int or float, got None"),
        ({"number": 3, "by_name": []}, "r: by_name is a table, got []"),
        ({"number": 3, "by_name": {"a": "x"}}, "r: by_name.a must be of type float, got 'x'"),
        ({"number": 3, "by_name": {}, "parts": [{}, {"steps": 0}]}, "r: parts[1]: steps is 0; it must be at least 1"),
    ],
)
def test_from_dict__wrong_values_of_json_are_named(values: dict[str, object], message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        from_dict(Reading, values, "r")
    assert str(caught.value) == message


def test_read_toml__line_ends_depth_size_and_kind(tmp_path: Path) -> None:
    path = tmp_path / "x.toml"
    path.write_bytes(b'a = 1\r\nb = "\xc3\xbc"\r\n')
    assert read_toml(path) == {"a": 1, "b": "ü"}
    path.write_bytes(b"a = " + b"[" * 5000 + b"]" * 5000)
    with pytest.raises(ConfigError, match="not valid TOML: nested too deep"):
        read_toml(path)
    path.write_bytes(b"#" * (5 << 20))
    with pytest.raises(ConfigError, match=r"cannot read study .*more than 4 MB"):
        read_toml(path, "study")
    path.unlink()
    path.symlink_to("/dev/zero")
    with pytest.raises(ConfigError, match="a device, not a file"):
        read_toml(path)

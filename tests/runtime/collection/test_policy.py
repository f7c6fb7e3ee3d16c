from __future__ import annotations

from pathlib import Path

import pytest
from places import ROOT

from ptedge.errors import ConfigError
from ptedge.runtime.collection.policy import Policy, Quota, Shares, Spacing, read_policy


@pytest.mark.parametrize(
    ("cls", "wrong"),
    [
        (Shares, {"random": 1.1}),
        (Shares, {"missed": -0.1}),
        (Spacing, {"frames": -1}),
        (Spacing, {"duplicate_bits": 65}),
        (Quota, {"images": 0}),
        (Quota, {"bytes_hour": 0}),
        (Quota, {"free_share": 2.0}),
        (Policy, {"threshold": 1.5}),
    ],
)
def test_policy__refuses(cls: type, wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(wrong))):
        cls(**wrong)


def test_read_policy__tables_and_defaults(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text("triples = true\n[shares]\nmissed = 0.1\n[quota]\nimages_hour = 60\nbytes = 500_000_000\n")
    found = read_policy(path)
    assert found.triples and found.spacing == Spacing()
    assert found.shares == Shares(missed=0.1) and found.quota == Quota(images_hour=60, bytes=500_000_000)
    assert read_policy(None) == Policy()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[shares]\nentropi = 0.1\n", r"unknown key 'entropi'; did you mean 'entropy'\?"),
        ("[quota]\nimages_hour = 0\n", "images_hour is 0; it must be at least 1"),
        ('[quota]\nbytes = "2GB"\n', "bytes"),
        ("[shares", "is not valid TOML"),
    ],
)
def test_read_policy__says_what_is_wrong_and_where(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(ConfigError, match=words) as caught:
        read_policy(path)
    assert str(path) in str(caught.value)


def test_read_policy__the_sample_names_every_strategy() -> None:
    path = ROOT / "samples" / "deploy" / "collect.toml"
    found = read_policy(path)
    assert found.triples and found.quota.images_hour == 120
    assert all(f"\n{name} = " in path.read_text() for name in Shares().by_name)

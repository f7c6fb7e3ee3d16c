from __future__ import annotations

from pathlib import Path

import pytest

from ptedge.errors import ConfigError
from ptedge.loop.settings import read_site

LEAST = 'checkpoint = "model.pt"\nframes = ["field"]\n[deploy]\ncanary = "s3://fleet/canary"\n'


def written(folder: Path, text: str, name: str = "gate.toml") -> Path:
    (folder / name).write_text(text)
    return folder / name


def test_read_site__paths_are_seen_from_its_folder(tmp_path: Path) -> None:
    place = read_site(written(tmp_path, LEAST))
    assert place.folder == tmp_path / "gate"
    assert place.located("field") == str(tmp_path / "field")
    assert place.located("/mnt/field") == "/mnt/field"
    assert place.located("s3://fleet/canary") == "s3://fleet/canary"
    assert place.site.deploy.reference == "s3://fleet/canary"
    named = read_site(written(tmp_path, f'folder = "sites/one"\n{LEAST}all = ["north"]\n'))
    assert named.folder == tmp_path / "sites" / "one" and named.site.deploy.reference == "north"


@pytest.mark.parametrize(
    ("text", "word"),
    [
        (LEAST + 'canray = "x"\n', "canary"),
        (LEAST + "[soak]\nhours = -1\n", "soak.hours"),
        (LEAST.replace('["field"]', "[]"), "frames is empty"),
        (LEAST.replace('["field"]', '"field"'), "frames is a list"),
        ('frames = ["field"]\n', "missing checkpoint, deploy"),
        (LEAST + "[decide]\nmin_frames = 0\n", "decide.min_frames"),
        (LEAST + '[commands]\ntrain = ["x"]\n', "commands.train"),
        (LEAST + "[commands]\nadapt = []\n", "commands.adapt"),
        (LEAST + "[notify]\ntimeout = 0\n", "notify.timeout"),
        ("keep_rounds = 0\n" + LEAST, "keep_rounds"),
    ],
)
def test_read_site__refuses_what_is_wrong(tmp_path: Path, text: str, word: str) -> None:
    with pytest.raises(ConfigError, match=word):
        read_site(written(tmp_path, text))


def test_read_site__a_file_without_suffix_needs_a_folder(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="Set folder"):
        read_site(written(tmp_path, LEAST, "gate"))
    assert read_site(written(tmp_path, 'folder = "site"\n' + LEAST, "gate")).folder == tmp_path / "site"

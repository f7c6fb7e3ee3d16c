from __future__ import annotations

from pathlib import Path

from ptedge.machine.kernel_files import first_line, most, number, whole_text


def test_first_line__without_what_the_kernel_ends_it_with(tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(b"NVIDIA Jetson\0")
    (tmp_path / "lines").write_text("# R36\nmore\n")
    assert (first_line(tmp_path / "model"), first_line(tmp_path / "lines")) == ("NVIDIA Jetson", "# R36")
    assert whole_text(tmp_path / "lines") == "# R36\nmore"
    assert first_line(tmp_path / "none") == whole_text(tmp_path / "none") == ""


def test_number__or_none(tmp_path: Path) -> None:
    for name, text in (("a", "12\n"), ("b", "-3.5"), ("c", "max 100")):
        (tmp_path / name).write_text(text)
    assert [number(tmp_path / name) for name in "abcd"] == [12, -3.5, None, None]
    assert most(tmp_path, "[abc]") == 12 and most(tmp_path, "x*") is None

"""Files that a stranger might hand to ``ptedge inspect``, each made for one kind of harm."""

from __future__ import annotations

import io
import json
import os
import pickle
import socket
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path

import torch
from made_artifacts import bundle_in, write_checkpoint

from ptedge.artifacts.protobuf import delimited


class Touch:
    """Unpickled, it makes a file."""

    def __init__(self, mark: Path) -> None:
        self.mark = mark

    def __reduce__(self) -> tuple[object, ...]:
        return Path.touch, (self.mark,)


def zip_of(path: Path, entries: dict[str, bytes], compression: int = zipfile.ZIP_STORED) -> None:
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def pickle_of(path: Path, code: bytes, **entries: bytes) -> None:
    zip_of(path, {"archive/data.pkl": code, "archive/version": b"3\n", **entries})


def entries_of(path: Path) -> dict[str, bytes]:
    """Of a whole file with one number."""
    torch.save({"w": torch.zeros(1)}, path)
    with zipfile.ZipFile(path) as archive:
        return {info.filename: archive.read(info) for info in archive.infolist()}


def compressed(path: Path) -> None:
    zip_of(path, {"archive/data.pkl": b"\x80\x02N." + bytes(600 << 20)}, zipfile.ZIP_DEFLATED)


def compressed_tensor(path: Path) -> None:
    entries = entries_of(path)
    zip_of(path, entries | {f"{path.stem}/data/0": bytes(100 << 20)}, zipfile.ZIP_DEFLATED)


def many_entries(path: Path) -> None:
    entry = struct.pack("<4s6H3L5H2L", b"PK\x01\x02", 20, 20, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0) + b"a"
    directory = entry * 1_000_000
    end = struct.pack("<4s4H2LH", b"PK\x05\x06", 0, 0, 0xFFFF, 0xFFFF, len(directory), 4, 0)
    path.write_bytes(b"PK\x03\x04" + directory + end)


def torchscript(path: Path) -> None:
    entries = ("data.pkl", "constants.pkl", "code/__torch__.py", "version")
    zip_of(path, {f"archive/{name}": b"\x80\x02N." for name in entries})


def runs_code(path: Path) -> None:
    torch.save({"state": Touch(path.with_name("touched"))}, path)


def laughs(path: Path) -> None:
    """Lists of the list before, ten times each."""
    code = b"\x80\x02]q\x00"
    for i in range(40):
        code += b"](" + b"h" + bytes([i]) + (b"h" + bytes([i])) * 9 + b"eq" + bytes([i + 1])
    pickle_of(path, code + b".")


def nested(path: Path) -> None:
    pickle_of(path, b"\x80\x02" + b")" + b"\x85" * 1_000_000 + b".")


def nested_key(path: Path) -> None:
    pickle_of(path, b"\x80\x02}" + b")" + b"\x85" * 1_000_000 + b"Ns.")


def far_memo(path: Path) -> None:
    pickle_of(path, b"\x80\x02Nr\xff\xff\xff\x7f.")


def long_pickle(path: Path) -> None:
    pickle_of(path, b"\x80\x02" + b"N0" * (20 << 20) + b"N.")


def huge_shape(path: Path) -> None:
    tensor = torch.zeros(1).expand(1 << 40, 2)
    torch.save({"format": "ptedge-checkpoint", "version": 1, "header": "{}", "state": {"anchors.log_wh": tensor}}, path)


def huge_storage(path: Path) -> None:
    entries = entries_of(path)
    name = f"{path.stem}/data.pkl"
    zip_of(path, entries | {name: entries[name].replace(b"K\x01", b"J\xff\xff\xff\x7f")})


def header_of(path: Path, header: str) -> None:
    torch.save({"format": "ptedge-checkpoint", "version": 1, "header": header, "state": {}}, path)


def onnx_of(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def sparse(path: Path, head: bytes, size: int) -> None:
    with open(path, "wb") as file:
        file.write(head)
        file.truncate(size)


def _varint(value: int) -> bytes:
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes(out) + bytes([value])


def huge_dims(path: Path) -> None:
    tensor = b"".join(b"\x08" + _varint(1 << 40) for _ in range(8)) + b"\x10\x01"
    path.write_bytes(b"\x08\x08" + delimited(7, delimited(5, tensor)))


def nested_graphs(path: Path) -> None:
    graph = b""
    for _ in range(400):
        graph = delimited(1, delimited(5, delimited(6, graph)))
    manifest = json.loads((bundle_in(path.with_name(path.name + ".b")) / "manifest.json").read_text())
    text = json.dumps({**manifest, "files": {}, "engines": []}).encode()
    path.write_bytes(delimited(7, graph) + delimited(14, delimited(1, b"ptedge") + delimited(2, text)))


def external_data(path: Path) -> None:
    entry = delimited(1, b"location") + delimited(2, b"/etc/passwd")
    graph = delimited(5, delimited(13, entry) + b"\x70\x01")
    manifest = json.loads((bundle_in(path.with_name(path.name + ".b")) / "manifest.json").read_text())
    text = json.dumps({**manifest, "files": {}, "engines": []}).encode()
    path.write_bytes(delimited(7, graph) + delimited(14, delimited(1, b"ptedge") + delimited(2, text)))


def manifest_of(path: Path, change: Callable[[str], str]) -> None:
    manifest = bundle_in(path) / "manifest.json"
    manifest.write_text(change(manifest.read_text()))


def million_classes(text: str) -> str:
    return json.dumps(json.loads(text) | {"class_names": [str(i) for i in range(1_000_000)]})


def with_link(path: Path, name: str, target: str) -> None:
    bundle_in(path)
    (path / name).unlink()
    (path / name).symlink_to(target)


def listening(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        here = os.open(path.parent, os.O_RDONLY)
        try:  # a socket's path may have 107 bytes
            made.bind(f"/proc/self/fd/{here}/{path.name}")
        finally:
            os.close(here)


def looped(path: Path) -> None:
    path.symlink_to(path.with_name(path.name + ".other"))
    path.with_name(path.name + ".other").symlink_to(path)


def engine_of(path: Path, content: bytes) -> None:
    bundle_in(path.parent / "around")
    path.symlink_to(path.parent / "around" / path.name)
    (path.parent / "around" / path.name).write_bytes(content)


def jsonl(path: Path, name: str, line: bytes, count: int) -> None:
    path.mkdir()
    (path / name).write_bytes(line * count)


def truncated(path: Path, share: float) -> None:
    whole = write_checkpoint(path).read_bytes()
    path.write_bytes(whole[: int(len(whole) * share)])


def protocol_4(path: Path) -> None:
    buffer = io.BytesIO()
    pickle.dump({"a": 1}, buffer, protocol=4)
    pickle_of(path, buffer.getvalue())


DEEP = "[" * 100_000 + "]" * 100_000
# name of the file -> what makes it
HOSTILE: dict[str, Callable[[Path], None]] = {
    "empty.pt": lambda path: path.touch(),
    "empty.onnx": lambda path: path.touch(),
    "empty.engine": lambda path: path.touch(),
    "cut1.pt": lambda path: truncated(path, 0.01),
    "cut50.pt": lambda path: truncated(path, 0.5),
    "cut99.pt": lambda path: truncated(path, 0.99),
    "folder.pt": lambda path: path.mkdir(),
    "folder.onnx": lambda path: path.mkdir(),
    "pipe.pt": os.mkfifo,
    "pipe.onnx": os.mkfifo,
    "pipe.engine": os.mkfifo,
    "socket.pt": listening,
    "zeros.pt": lambda path: path.symlink_to("/dev/zero"),
    "zeros.onnx": lambda path: path.symlink_to("/dev/zero"),
    "zeros.engine": lambda path: path.symlink_to("/dev/zero"),
    "loop.pt": looped,
    "compressed.pt": compressed,
    "compressed_tensor.pt": compressed_tensor,
    "many_entries.pt": many_entries,
    "torchscript.pt": torchscript,
    "runs_code.pt": runs_code,
    "protocol_4.pt": protocol_4,
    "laughs.pt": laughs,
    "nested.pt": nested,
    "nested_key.pt": nested_key,
    "far_memo.pt": far_memo,
    "long_pickle.pt": long_pickle,
    "huge_shape.pt": huge_shape,
    "huge_storage.pt": huge_storage,
    "deep_header.pt": lambda path: header_of(path, DEEP),
    "list_header.pt": lambda path: header_of(path, "[" + "[]," * 1_000_000 + "[]]"),
    "escapes.pt": lambda path: header_of(path, '{"class_names": ["\\u001b[2J", "\\ud800"]}'),
    "many_fields.onnx": lambda path: path.write_bytes(b"\x08\x00" * (10 << 20)),
    "long_number.onnx": lambda path: path.write_bytes(b"\xff" * 100),
    "huge_field.onnx": lambda path: path.write_bytes(b"\x3a" + _varint(1 << 62)),
    "sparse.onnx": lambda path: sparse(path, b"\x3a" + _varint((8 << 30) - 6), 8 << 30),
    "metadata.onnx": lambda path: path.write_bytes(delimited(14, delimited(2, b"a" * (100 << 20)))),
    "huge_dims.onnx": huge_dims,
    "nested_graphs.onnx": nested_graphs,
    "external_data.onnx": external_data,
    "sparse.engine": lambda path: sparse(path, b"ftrt", 8 << 30),
    "other_version.engine": lambda path: engine_of(path, b"ftrt" + bytes(20) + bytes([99, 255, 255, 255])),
    "million_classes": lambda path: manifest_of(path, million_classes),
    "deep_manifest": lambda path: manifest_of(path, lambda text: DEEP),
    "long_manifest": lambda path: manifest_of(path, lambda text: "[" + "[]," * (10 << 20) + "[]]"),
    "long_number": lambda path: manifest_of(path, lambda text: text.replace('"batch": 1', '"batch": ' + "9" * 100_000)),
    "infinite": lambda path: manifest_of(path, lambda text: text.replace('"batch": 1', '"batch": 1e999')),
    "half_character": lambda path: manifest_of(path, lambda text: text.replace('"car"', '"\\ud800"')),
    "zeros_manifest": lambda path: with_link(path, "manifest.json", "/dev/zero"),
    "zeros_model": lambda path: with_link(path, "model.onnx", "/dev/zero"),
    "many_steps": lambda path: jsonl(path, "metrics.jsonl", b"{}\n", 5_000_000),
    "long_step": lambda path: jsonl(path, "metrics.jsonl", b"[", 100 << 20),
    "many_frames": lambda path: jsonl(path, "frames.jsonl", b'{"time":1}\n', 3_000_000),
}


def make_all(folder: Path) -> dict[str, Path]:
    """Every one of them, each in a folder of its own: about 300 MB.

    Args:
        folder: empty.

    Returns:
        Path by name.
    """
    paths = {name: folder / name / name for name in HOSTILE}
    for name, path in paths.items():
        path.parent.mkdir()
        HOSTILE[name](path)
    return paths

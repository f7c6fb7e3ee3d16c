"""Writes tests/tensorrt_names.json: which TensorRT names exist in which version, read from the real Python bindings.

    pip download --no-deps --only-binary :all: --python-version 3.10 tensorrt-cu13-bindings==11.4.0.106   (and others)
    python3.10 .ci/tensorrt_names.py WHEEL_OR_LIBRARY...

The bindings are one shared library, ``tensorrt.so``, inside wheels ``tensorrt-cu12-bindings`` and
``tensorrt-cu13-bindings`` (10 and later) and ``tensorrt`` (8.5). They must be loaded to be read, and TensorRT's own
libraries are gigabytes. But the bindings take only some ten C functions from them, none of which is called by loading;
so empty libraries of the same names are compiled, and stand in. Needs gcc, binutils, and the Python of the wheels.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

TABLE = Path(__file__).resolve().parents[1] / "tests" / "tensorrt_names.json"
FROM_NVIDIA = re.compile(
    r"create\w+_INTERNAL|get\w*PluginRegistry|getNvOnnxParserVersion|initLibNvInferPlugins|_ZNK?\d+nv\w+"
)
# run in a process of its own: two versions of one library do not go together
READ = """
import importlib.machinery, importlib.util, json, sys
loader = importlib.machinery.ExtensionFileLoader("tensorrt", sys.argv[1])
module = importlib.util.module_from_spec(importlib.util.spec_from_loader("tensorrt", loader))
loader.exec_module(module)
names = []
for name in dir(module):
    if name.startswith("_"):
        continue
    names.append(name)
    value = getattr(module, name)
    if isinstance(value, type):
        names += [f"{name}.{member}" for member in dir(value) if not member.startswith("_")]
print(json.dumps(names))
"""


def read_bindings(path: Path) -> tuple[str, set[str]]:
    """The version of bindings, and their names: ``Builder``, ``Builder.build_serialized_network``, ...

    Args:
        path: wheel, or ``tensorrt.so`` of an unpacked one, with its ``__init__.py`` beside.
    """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        library = path
        if path.suffix == ".whl":
            with zipfile.ZipFile(path) as wheel:
                inside = next(entry for entry in wheel.namelist() if entry.endswith("/tensorrt.so"))
                library = Path(wheel.extract(inside, folder))
                wheel.extract(inside.replace("tensorrt.so", "__init__.py"), folder)
        package = library.with_name("__init__.py").read_text("utf-8")
        _stand_ins(library, folder)
        environment = {**os.environ, "LD_LIBRARY_PATH": str(folder)}
        command = [sys.executable, "-c", READ, str(library)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    version = re.search(r'^__version__ = "(.+)"', package, re.MULTILINE)
    if version is None:
        sys.exit(f"{path}: no __version__ in the package")
    written_in_python = re.findall(r"^def ([a-z]\w*)", package, re.MULTILINE)
    return version.group(1), {*json.loads(done.stdout), *written_in_python}


def _stand_ins(library: Path, folder: Path) -> None:
    needed = re.findall(r"NEEDED.*\[(.+?)\]", _output("readelf", "-d", str(library)))
    symbols = {line.split()[-1] for line in _output("nm", "-D", "--undefined-only", str(library)).splitlines()}
    functions = sorted(symbol for symbol in symbols if FROM_NVIDIA.fullmatch(symbol))
    source = folder / "empty.c"
    source.write_text("".join(f"void *{function}(void) {{ return 0; }}\n" for function in functions))
    for name in needed:
        if re.match(r"lib(nv|cu)", name):
            _output("gcc", "-shared", "-fPIC", f"-Wl,-soname,{name}", "-o", str(folder / name), str(source))


def _output(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def main() -> None:
    """Read every wheel and write the table."""
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    found = dict(read_bindings(Path(argument)) for argument in sys.argv[1:])
    versions = sorted(found, key=lambda version: [int(part) for part in re.findall(r"\d+", version)])
    names = sorted(set().union(*found.values()))
    has = {name: [version for version in versions if name in found[version]] for name in names}
    everywhere = [name for name in names if has[name] == versions]
    some = {name: has[name] for name in names if has[name] != versions}
    TABLE.write_text(json.dumps({"versions": versions, "everywhere": everywhere, "some": some}, indent=0) + "\n")
    print(f"{TABLE}: {', '.join(f'{version} {len(found[version])} names' for version in versions)}")


if __name__ == "__main__":
    main()

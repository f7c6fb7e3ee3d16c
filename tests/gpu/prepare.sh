#!/usr/bin/env bash
# Everything for tests/gpu/run.sh that needs no GPU, so that no minute of one is spent on it.
#
#   tests/gpu/prepare.sh OUT DATA CHECKPOINT
#
#   OUT         folder to write: bundles of three precisions, network inputs, ONNX Runtime's answers to them, the
#               checkpoint, and ptedge itself (site/), for Pythons that have only its dependencies
#   DATA        folder with target/val and target/frames (calibration of int8), as in samples/carla_to_road
#   CHECKPOINT  model.pt of a student
#   PYTHON      a Python with ptedge[export] and pip (default: python3)
#   CUBLAS=1    brings cuBLAS 11 along as well (OUT/cuda, 600 MB), which TensorRT 8.5 needs to build
#   PARTS=DIR   packs OUT into DIR/part.00, part.01, ... of 60 MB, for hosts that take small transfers only; there:
#               cat part.* | tar -xz -C OUT
set -euo pipefail
[ $# -eq 3 ] || { sed -n '2,15p' "$0"; exit 2; }
here="$(cd "$(dirname "$0")/../.." && pwd)"
PYTHON="${PYTHON:-python3}"
mkdir -p "$1"
out="$(cd "$1" && pwd)" data="$(cd "$2" && pwd)" checkpoint="$(readlink -f "$3")"

for precision in fp32 fp16 int8; do
  extra=()
  [ "$precision" = int8 ] && extra=(--calibrate "$data/target/frames")
  [ -e "$out/$precision/manifest.json" ] ||
    "$PYTHON" -m ptedge export "$checkpoint" --out "$out/$precision" --precision "$precision" "${extra[@]}"
done
cp "$checkpoint" "$out/model.pt"
"$PYTHON" "$here/tests/gpu/inputs.py" "$out" "$data/target/val"

rm -rf "$out/site"
"$PYTHON" -m pip install --quiet --disable-pip-version-check --no-deps --no-compile --target "$out/site" "$here"
if [ -n "${CUBLAS:-}" ] && [ ! -e "$out/cuda" ]; then
  work="$(mktemp -d)"
  trap 'rm -rf "$work"' EXIT
  "$PYTHON" -m pip download --quiet --disable-pip-version-check --no-deps --only-binary :all: \
    --platform manylinux1_x86_64 --platform manylinux2014_x86_64 --dest "$work" nvidia-cublas-cu11==11.11.3.6
  "$PYTHON" -m zipfile -e "$work"/nvidia_cublas_cu11-*.whl "$work/wheel"
  mv "$work/wheel/nvidia/cublas/lib" "$out/cuda"
fi
if [ -n "${PARTS:-}" ]; then
  mkdir -p "$PARTS"
  tar -C "$out" -cz . | split -b 60000000 -d - "$PARTS/part."
fi
du -sh "$out"

#!/usr/bin/env bash
# What needs a GPU, in ten minutes: torch's own speed, then one engine after the other: built, held against ONNX
# Runtime's answers, measured. After every step the results lie in RESULTS, whatever happens next.
#
#   tests/gpu/run.sh PREPARED RESULTS
#
#   PREPARED      folder of tests/gpu/prepare.sh
#   RESULTS       folder to write: report.json and tables.txt anew after every step, steps.tsv, a log of each step, and of
#                 each engine TensorRT's own verbose log (build-fp16.trt.log ...), a line at a time
#   PYTHON        a Python with torch, torchvision, numpy, OpenCV, ONNX Runtime (default: python3)
#   TRT_PYTHON    a Python with tensorrt, pycuda, numpy, OpenCV, ONNX Runtime; for fp16 and int8 on TensorRT 8 also onnx
#                 (default: PYTHON)
#   LIMIT         seconds in all (default 570); a step that would not fit is left out, and noted
#   BUILD_LIMIT   seconds for one engine (default 150); one that takes longer is built again in two stages
#   PRECISIONS    in this order (default: fp16 fp32 int8)
#   BUILD_OPTIONS for ptedge build, for example --tf32
#
# A step that fails is noted and the others go on; the exit status is 1 if any did. Nothing runs beside anything else.
set -uo pipefail
[ $# -eq 2 ] || { sed -n '2,20p' "$0"; exit 2; }
here="$(cd "$(dirname "$0")/../.." && pwd)"
mkdir -p "$2"
prepared="$(cd "$1" && pwd)" results="$(cd "$2" && pwd)"
PYTHON="${PYTHON:-python3}" TRT_PYTHON="${TRT_PYTHON:-${PYTHON:-python3}}"
LIMIT="${LIMIT:-570}" BUILD_LIMIT="${BUILD_LIMIT:-150}"
FEWEST=5 # seconds that are worth beginning a step with
export PYTHONPATH="$prepared/site${PYTHONPATH:+:$PYTHONPATH}"
[ ! -d "$prepared/cuda" ] || export LD_LIBRARY_PATH="$prepared/cuda${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
cd "$here/tests/gpu" || exit 1 # not where the sources of ptedge would be found before PREPARED/site
: > "$results/steps.tsv"

report() { "$PYTHON" report.py "$prepared" "$results" > "$results/tables.txt" 2> "$results/report.log"; }

step() { # step NAME SECONDS COMMAND...: run for so long at most, keep the output, note how it ended, report
  local name="$1" limit="$2" left=$((LIMIT - SECONDS)) began=$SECONDS status=0
  shift 2
  if [ "$left" -lt "$FEWEST" ]; then
    printf '%s\tno time\t0\n' "$name" >> "$results/steps.tsv"
    echo "$SECONDS s  left out, no time: $name"
    report
    return 1
  fi
  [ "$limit" -le "$left" ] || limit="$left"
  timeout --kill-after=5 "$limit" "$@" > "$results/$name.log" 2>&1 || status=$?
  printf '%s\t%s\t%s\n' "$name" "$status" "$((SECONDS - began))" >> "$results/steps.tsv"
  if [ "$status" -eq 0 ]; then
    echo "$SECONDS s  $name"
  else
    echo "$SECONDS s  FAILED ($status): $name"
    tail -n 5 "$results/$name.log"
  fi
  report
  return "$status"
}

build() { # build PRECISION: the one graph, which falls back by itself where it is refused; two stages after a time-out
  local bundle="$prepared/$1" cache="$results/timing-$1.cache"
  # shellcheck disable=SC2086  # options are words
  step "build-$1" "$BUILD_LIMIT" "$TRT_PYTHON" -m ptedge build "$bundle" ${BUILD_OPTIONS:-} \
    --timing-cache "$cache" --log "$results/build-$1.trt.log" --json && return 0
  # shellcheck disable=SC2086
  step "build-$1-split" "$BUILD_LIMIT" "$TRT_PYTHON" -m ptedge build "$bundle" --split ${BUILD_OPTIONS:-} \
    --timing-cache "$cache" --log "$results/build-$1-split.trt.log" --json
}

step machine 30 "$TRT_PYTHON" -m ptedge doctor --json
step bench-torch 90 "$PYTHON" torch_side.py "$prepared" "$results" eager
for precision in ${PRECISIONS:-fp16 fp32 int8}; do
  build "$precision" || continue
  step "answers-$precision" 60 "$TRT_PYTHON" engine_side.py answers "$prepared" "$results" "$precision"
  step "bench-$precision" 90 "$TRT_PYTHON" engine_side.py bench "$prepared" "$results" "$precision"
done
# what is good to know if there is time
step bench-onnxruntime 60 "$PYTHON" torch_side.py "$prepared" "$results" onnxruntime
step bench-compiled 120 "$PYTHON" torch_side.py "$prepared" "$results" compiled
step soak 90 "$TRT_PYTHON" engine_side.py soak "$prepared" "$results" fp16
cat "$results/tables.txt"
awk -F'\t' '$2 != "0" { bad = 1 } END { exit bad }' "$results/steps.tsv"

#!/usr/bin/env bash
# Everything that needs a GPU, in one go: exports the students in three precisions, builds their engines, compares their
# answers with torch, evaluates them, measures them against torch and ONNX Runtime, and writes OUT/report.json.
#
#   tests/gpu/run.sh OUT DATA CHECKPOINT [CHECKPOINT ...]
#
#   OUT         folder to write
#   DATA        folder with target/val.json and target/frames (calibration of int8), as in samples/carla_to_road
#   CHECKPOINT  model.pt of a student; its folder's name names it in the report
#   PYTHON      a Python with ptedge[train,export] (default: python3)
#   TRT_PYTHON  a Python with ptedge, tensorrt and pycuda; may be the same (default: PYTHON)
#   SKIP_BENCH=1 stops before the measurements; ONLY_BENCH=1 does nothing but them (for a machine that is busy at first)
#
#   BUILD_OPTIONS  for ptedge build, for example --tf32
#
# A step that fails is noted in the report and the others go on; the exit status is 1 if any did. It has not run to the
# end yet (docs/tensorrt.md); a step gets 400 s at most (STEP_LIMIT), and students are built beside each other.
set -uo pipefail
[ $# -ge 3 ] || { sed -n '2,18p' "$0"; exit 2; }
here="$(cd "$(dirname "$0")/../.." && pwd)"
out="$1" data="$2"; shift 2
PYTHON="${PYTHON:-python3}" TRT_PYTHON="${TRT_PYTHON:-$PYTHON}"
mkdir -p "$out/steps"
failed=0
started=$SECONDS

step() { # step NAME COMMAND...: run, keep the output, note a failure
  local name="$1"; shift
  local began=$SECONDS status=0
  (cd "$here" && timeout "${STEP_LIMIT:-400}" "$@") > "$out/steps/$name.log" 2>&1 || status=$?
  printf '%s\t%s\t%s\n' "$name" "$status" "$((SECONDS - began))" >> "$out/steps.tsv"
  if [ "$status" -ne 0 ]; then
    echo "FAILED ($status): $name"; tail -n 5 "$out/steps/$name.log"
    return 1
  fi
  echo "$((SECONDS - started)) s  $name"
}

student() { # export and build one student in three precisions, one after the other; students run beside each other
  local checkpoint="$1" name="$2" precision
  for precision in fp32 fp16 int8; do
    local bundle="$out/$name-$precision" extra=()
    [ "$precision" = int8 ] && extra=(--calibrate "$data/target/frames")
    [ -e "$bundle/manifest.json" ] ||
      step "export-$name-$precision" "$PYTHON" -m ptedge export "$checkpoint" --out "$bundle" --precision "$precision" "${extra[@]}" || continue
    step "build-$name-$precision" "$TRT_PYTHON" -m ptedge build "$bundle" ${BUILD_OPTIONS:-} --timing-cache "$out/timing-$name-$precision.cache" --json &
  done
  step "torch-$name" "$PYTHON" tests/gpu/torch_side.py answers "$checkpoint" "$data" "$out/$name"
  wait
  for precision in fp32 fp16 int8; do
    step "answers-$name-$precision" "$TRT_PYTHON" tests/gpu/engine_side.py answers "$out/$name-$precision" "$out/$name-inputs.npz" "$out/$name-$precision.npz"
    step "eval-$name-$precision" "$TRT_PYTHON" -m ptedge eval "$out/$name-$precision" "$data/target/val.json" --backend tensorrt --json
  done
}

names=()
for checkpoint in "$@"; do names+=("$(basename "$(dirname "$(readlink -f "$checkpoint")")")"); done
if [ -z "${ONLY_BENCH:-}" ]; then
  : > "$out/steps.tsv"
  i=0
  for checkpoint in "$@"; do
    student "$(readlink -f "$checkpoint")" "${names[$i]}" &
    i=$((i + 1))
  done
  wait
fi
if [ -z "${SKIP_BENCH:-}" ]; then # nothing runs beside these
  i=0
  for checkpoint in "$@"; do
    name="${names[$i]}"; i=$((i + 1))
    for precision in fp32 fp16 int8; do
      step "bench-$name-$precision" "$TRT_PYTHON" tests/gpu/engine_side.py bench "$out/$name-$precision" "$out/$name-inputs.npz" "$out/$name-$precision-bench.json"
    done
    step "bench-$name-torch" "$PYTHON" tests/gpu/torch_side.py bench "$(readlink -f "$checkpoint")" "$out/$name-inputs.npz" "$out/$name-fp32" "$out/$name-torch-bench.json"
  done
  step soak "$TRT_PYTHON" tests/gpu/engine_side.py soak "$out/${names[0]}-fp16" "$out/${names[0]}-inputs.npz" "$out/soak.json"
fi
(cd "$here" && "$PYTHON" tests/gpu/report.py "$out" "${names[@]}") || failed=1
awk -F'\t' '$2 != 0 { bad = 1 } END { exit bad }' "$out/steps.tsv" || failed=1
exit $failed

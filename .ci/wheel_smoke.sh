#!/usr/bin/env bash
# Builds the distribution, installs it in a new environment, and does the main job outside the repository.
#
#   .ci/wheel_smoke.sh FOLDER     FOLDER holds what it makes; `python -m build` must be installed
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
work="$(cd "$1" && pwd)"

# sdist first, then the wheel from it: a file that the sdist lacks is found here
python -m build --outdir "$work/dist" . >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    exit 1
}
ls -l "$work/dist"

"${PYTHON:-python3}" -m venv "$work/smoke"
"$work/smoke/bin/python" -m pip install --quiet "${TORCH:-torch==2.13.0}"
"$work/smoke/bin/python" -m pip install --quiet "$work"/dist/*.whl
PATH="$work/smoke/bin:$PATH"
mkdir "$work/elsewhere"
cd "$work/elsewhere"

python - <<'PY'
from importlib.metadata import files
from importlib.util import find_spec

import fedarena

assert "site-packages" in fedarena.__file__, fedarena.__file__
tops = {file.parts[0] for file in files("fedarena")} - {"..", "fedarena"}
assert all(top.endswith(".dist-info") for top in tops), f"installed at top level: {tops}"
assert all(find_spec(f"fedarena.{name}") for name in ("attacks", "defenses", "datasets"))
PY
bench --version
python -m fedarena list
bench run --defense dbcl --attack dlg --quiet | tee table.txt

python - <<'PY'
import json
from pathlib import Path

table = Path("table.txt").read_text()
for word in ("server", "client", "eavesdropper", "paper", "adaptive"):
    assert word in table, f"the table lacks '{word}'"
records = [json.loads(path.read_text()) for path in Path("runs").rglob("*.json")]
assert {record["defense"] for record in records} == {"fedavg", "dbcl"}
failed = [record["reason"] for record in records if record["status"] in ("failed", "diverged")]
assert not failed, failed
pictures = list(Path("runs").rglob("*.png"))
assert pictures and all(p.read_bytes().startswith(b"\x89PNG") for p in pictures), "no picture"
print(f"wheel: {len(records)} records, {len(pictures)} picture")
PY

#!/usr/bin/env bash
# Does the main job outside the repository with the distribution that .ci/wheel_install.sh has installed.
#
#   .ci/wheel_smoke.sh FOLDER     FOLDER/smoke is the environment, FOLDER/elsewhere what is made
set -euo pipefail
work="$(cd "$1" && pwd)"
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

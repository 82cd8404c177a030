#!/usr/bin/env bash
# Builds the distribution and installs it.
#
#   .ci/wheel_install.sh FOLDER     FOLDER/tree is what it is built from, FOLDER/smoke the environment
set -euo pipefail
work="$(cd "$1" && pwd)"

"${PYTHON:-python3}" -m venv "$work/build"
"$work/build/bin/python" -m pip install --quiet build
# sdist first, then the wheel from it: a file that the sdist lacks is found here
"$work/build/bin/python" -m build --outdir "$work/dist" "$work/tree" >"$work/build.log" 2>&1 || {
    cat "$work/build.log" >&2
    exit 1
}
ls -l "$work/dist"
"$work/smoke/bin/python" -m pip install --quiet "$work"/dist/*.whl

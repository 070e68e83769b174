#!/usr/bin/env bash
# Builds the module cuda_extension of a workspace: bash utils/compile.sh [--workspace DIR] [--json FILE] [--verbose] [--sim]
#
# This script only chooses the Python: KERNEL_WORKBENCH_PYTHON, the active virtual environment, python3 on
# PATH, the repository's .venv, python on PATH: the first with a CUDA build of torch. The build itself is utils/build.
set -u
here="$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)"

# No import: torch alone takes seconds. Nor of importlib.util and pathlib, which take longer than Python itself to start.
probe='import sys
spec = next((found for finder in sys.meta_path if (found := finder.find_spec("torch", None))), None)
text = open(spec.origin[: -len("__init__.py")] + "version.py").read() if spec and spec.origin else ""
sys.exit(sys.version_info < (3, 10) or not any(line.startswith("cuda") and "None" != line.split("=")[-1].strip() for line in text.splitlines()))'

fit() { command -v -- "$1" >/dev/null 2>&1 && "$1" -c "$probe" >/dev/null 2>&1; }

chosen="${KERNEL_WORKBENCH_PYTHON:-}"
if [ -n "$chosen" ] && ! fit "$chosen"; then
    echo "error: KERNEL_WORKBENCH_PYTHON=$chosen is no Python >= 3.10 with a CUDA build of PyTorch >= 2.9" >&2
    exit 2
fi
for candidate in "${VIRTUAL_ENV:+$VIRTUAL_ENV/bin/python}" python3 "$here/.venv/bin/python" python; do
    [ -n "$chosen" ] && break
    if [ -n "$candidate" ] && fit "$candidate"; then chosen="$candidate"; fi
done
if [ -z "$chosen" ]; then
    echo "error: no Python >= 3.10 with a CUDA build of PyTorch >= 2.9 was found (active environment, python3, python, $here/.venv); run \`python3 -m utils.setup\`, or set KERNEL_WORKBENCH_PYTHON" >&2
    exit 2
fi
# Not -m: the current folder may have a package called utils of its own.
exec "$chosen" -c 'import sys; sys.path[0] = sys.argv.pop(1); import utils.build.__main__' "$here" "$@"

#!/usr/bin/env bash
# The whole suite against other releases of everything that it uses, in an environment of its own under build/.
#   tools/test_releases.sh newest [PYTEST ARGUMENT...]   the newest that pip finds (PYTHON=python3.13 for another Python)
#   tools/test_releases.sh oldest [PYTEST ARGUMENT...]   the lower bounds of pyproject.toml (PYTHON=python3.11, the oldest allowed)
set -euo pipefail
cd "$(dirname "$0")/.."
which=${1:?newest or oldest}; shift
environment=build/releases-$which
[ -x "$environment/bin/python" ] || "${PYTHON:-python3}" -m venv "$environment"
case $which in
  newest) "$environment/bin/python" -m pip install --quiet --upgrade -e ".[test]" shapiq ;;
  oldest)
    "$environment/bin/python" tools/lower_bounds.py > "$environment/bounds.txt"
    "$environment/bin/python" -m pip install --quiet -e ".[test]" --constraint "$environment/bounds.txt" ;;
  *) echo "newest or oldest, not $which" >&2; exit 2 ;;
esac
"$environment/bin/python" tools/lower_bounds.py --installed
exec nice -n 5 "$environment/bin/python" -m pytest -q -n 2 --dist worksteal "$@"

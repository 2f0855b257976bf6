#!/usr/bin/env bash
# Memory safety: the tests and mutated model files with a native library under AddressSanitizer and UndefinedBehaviorSanitizer,
# where a finding ends the process. Needs g++ with both; works on a copy in build/sanitized and leaves the working tree alone.
#   tools/sanitize.sh                             the whole suite, then 100,000 mutated files (COUNT=20000 for fewer, SEED=1)
#   tools/sanitize.sh tests/test_native.py -k ... only these tests, and COUNT=0 for no files
# One level of instruction set, v2, unless LEVEL=v3 names another. PYTHON names an interpreter with the test dependencies.
set -euo pipefail
cd "$(dirname "$0")/.."
python=$(command -v "${PYTHON:-python}"); [ -z "${PYTHON:-}" ] && [ -x .venv/bin/python ] && python=$PWD/.venv/bin/python
git ls-files -z --cached --others --exclude-standard | xargs -0 -I{} sh -c '[ ! -e "$1" ] || printf "%s\0" "$1"' sh {} \
  | xargs -0 cp --parents --preserve=timestamps -t "$(mkdir -p build/sanitized && echo build/sanitized)"
cd build/sanitized
export EXACTSHAP_LEVELS=${LEVEL:-v2} EXACTSHAP_CPU=${LEVEL:-v2}
CXX=g++ "$python" src/native/build.py -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -g -O1
export PYTHONPATH=$PWD/src PYTHONMALLOC=malloc  # else small objects share blocks that AddressSanitizer cannot tell apart
export ASAN_OPTIONS=detect_leaks=0:abort_on_error=1:allocator_may_return_null=1 UBSAN_OPTIONS=print_stacktrace=1:abort_on_error=1
sanitized() { LD_PRELOAD="$(g++ -print-file-name=libasan.so) $(g++ -print-file-name=libubsan.so)" "$@"; }
sanitized "$python" -c "import exactshap._native as n; print('sanitized, level', n.level())"
sanitized "$python" -m pytest -q --deselect tests/test_native.py::test_all_levels_give_the_same_bits \
  --deselect tests/test_app.py::test_a_move_takes_less_than_a_tenth_of_a_second "$@"  # there is one level only, and nothing is quick
[ "${COUNT:-100000}" -eq 0 ] || sanitized "$python" tests/fuzz.py --format trees --count "${COUNT:-100000}" --seed "${SEED:-0}"

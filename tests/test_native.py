"""The compiled library: levels, the border of arrays, interruption, and what is said when it cannot work."""

import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import exactshap
from exactshap._native import Cancellation, Handle, kernel, level
from exactshap.errors import InputTypeError, ModelFormatError
from interruption import interrupted

PACKAGE = Path(exactshap.__file__).parent
LEVELS = {"v2": ["v2"], "v3": ["v2", "v3"], "v4": ["v2", "v3", "v4"], "base": ["base"]}[level()]
add_sums = kernel("common.add_sums(X, weights, first, out)")
follow = kernel("common.follow(chain, start)")
exhaust = kernel("common.exhaust(size)")


class Range(NamedTuple):
    values: np.ndarray
    scale: float


class Chain(NamedTuple):
    next: np.ndarray
    range: Range
    reversed: bool


def chain(next=(2, -1, 1), scale=2.0, reversed=False):
    return Chain(np.array(next, np.int32), Range(np.array([1.0, 10.0, 100.0]), scale), reversed)


def run(code, *arguments, **environment):
    command, environment = [sys.executable, "-c", code, *arguments], {**os.environ, **environment}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, done.stdout.strip(), done.stderr


# What reaches most of the kernels, through the doors that users take: add a call that reaches yours.
DIGEST = """
import hashlib, sys, warnings
sys.path.insert(0, sys.argv[1])
import numpy as np
import golden
from exactshap import Explainer, decompose_hsic, decompose_mmd, decompose_r2
from golden_models import Data, unfitted
warnings.simplefilter("ignore")
data, digest = Data(), hashlib.sha256()
X, y, many = data.X, data.y, np.repeat(data.X, 3, axis=0) + np.tile([[0.0], [0.1], [0.2]], (120, 1))
deep, boosted, shallow = (unfitted(name) for name in ("random forest", "gradient boosting", "histogram boosting"))
deep.set_params(max_depth=12).fit(X, y), boosted.set_params(max_depth=7).fit(X, y), shallow.fit(X, y)
parts = ("tree classifier", "polynomials", "GP classifier", "GP", "SVR", "LinearRegression", "EBM classifier", "RKHS weighting")
calls = [call for part in parts for *_, call in golden.cases_of(part)]
for model in (deep, boosted, shallow):
    for background in (None, X[:40]):
        for n, order in ((360, 1), (5, 1), (30, 2)):
            calls.append(lambda e=Explainer(model, background), n=n, order=order: e(many[:n], order=order))
    for game in ("residual", "ensemble"):
        calls.append(lambda model=model, game=game: decompose_r2(model, X, y, game=game))
calls += [
    lambda: decompose_mmd(X[:60], X[60:], n_permutations=19),
    lambda: decompose_mmd(X[:60], X[60:], kernel="laplacian", order=2),
    lambda: decompose_hsic(X, y, n_permutations=19, estimator="unbiased"),
    lambda: decompose_hsic(X[:, :3], X[:, 3:], joint=True),
    lambda: decompose_r2(deep, X, y, game="ensemble", per_row=True),
    lambda: Explainer(lambda rows: np.tanh(rows.sum(axis=1)), data.wide[:9], budget=200)(data.wide[20:22]),
]
for call in calls:
    for array in golden.outcome(call)[1].values():
        digest.update(array.tobytes())
print(len(calls), digest.hexdigest())
"""


def test_all_levels_give_the_same_bits():
    digests = {name: run(DIGEST, str(Path(__file__).parent), EXACTSHAP_CPU=name) for name in LEVELS}
    assert all(code == 0 for code, _, _ in digests.values()), digests
    assert len({out for _, out, _ in digests.values()}) == 1, digests


def test_no_fused_multiply_add():
    """An instruction that rounds once where others round twice gives other bits on other CPUs."""
    if shutil.which("objdump") is None or level() == "base":
        pytest.skip("needs objdump on x86-64")
    library = PACKAGE / "_native" / "exactshap.so"
    command = ["objdump", "-d", "--no-show-raw-insn", str(library)]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    fused = {line.split("\t")[-1].split()[0] for line in text.splitlines() if "\tvfm" in line or "\tvfnm" in line}
    assert not fused


def test_code_of_levels_stays_apart():
    """Between EXACTSHAP_BEGIN and EXACTSHAP_END, or the linker merges what is compiled three times."""
    sources = PACKAGE.parent / "native"
    if not sources.is_dir():
        pytest.skip("an installed package has no sources")
    definitions = re.compile(r"(inline|template|struct|static|EXACTSHAP_INLINE|class)")
    for path in {*sources.rglob("*.h"), *sources.rglob("*.cpp")} - {sources / "common" / "library.cpp"}:
        outside = re.sub(r"^EXACTSHAP_BEGIN$.*?^EXACTSHAP_END$", "", path.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
        assert not [line for line in outside.splitlines() if definitions.match(line)], path


def test_a_level_that_the_cpu_lacks_is_refused():
    code, _, error = run("from exactshap._native import level; level()", EXACTSHAP_CPU="v9")
    assert code == 1
    assert "`EXACTSHAP_CPU` names no level of this CPU. 'v9'. Unset it, or use one of `" in error


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_templates_by_dtype(dtype):
    X, weights, out = np.arange(12, dtype=dtype).reshape(3, 4), np.array([1.0, 2.0, 3.0, 4.0]), np.ones(3)
    add_sums(X, weights, 1, out)
    np.testing.assert_array_equal(out, 1.0 + X[:, 1:].astype(float) @ weights[1:])


def test_structures_and_returned_numbers():
    assert follow(chain(), 0) == (3, 222.0)
    assert follow(chain(reversed=True), 2) == (2, 2.0 * (1.0 + 10.0))
    prepared = Handle(chain())
    assert [follow(prepared, start) for start in (0, 1, -1)] == [(3, 222.0), (1, 20.0), (0, 0.0)]


def arguments_of_sums(position, bad):
    arguments = [np.zeros((3, 4)), np.zeros(4), 0, np.zeros(3)]
    arguments[position] = bad
    return arguments


def read_only(array):
    array.flags.writeable = False
    return array


DO_NOT_FIT = [
    (0, np.zeros((3, 4), np.int64), "`X` does not fit the compiled kernel `common.add_sums`. an array of i8 of shape (3, 4)"),
    (0, np.zeros((4, 3)).T, "an array of f8 of shape (3, 4), not C-contiguous"),
    (0, np.zeros((3, 8))[:, ::2], "not C-contiguous"),
    (0, np.zeros((3, 4, 1)), "of shape (3, 4, 1)"),
    (0, np.zeros((3, 4), ">f8"), "bytes in the other order"),
    (0, np.frombuffer(bytearray(97), np.uint8)[1:].view(float).reshape(3, 4), "not aligned"),
    (0, [[1.0] * 4] * 3, "`X` does not fit the compiled kernel `common.add_sums`. list"),
    (0, None, "NoneType"),
    (1, np.zeros(4, np.float32), "`weights` does not fit"),
    (2, 0.5, "`first` does not fit the compiled kernel `common.add_sums`. float. Pass a whole number"),
    (2, "0", "str"),
    (2, 5, "sizes of the arguments of `common.add_sums` do not belong together. X (3, 4), weights (4,), first 5, out (3,)"),
    (2, -1, "do not belong together"),
    (3, np.zeros(2), "do not belong together"),
    (3, np.zeros((3, 1)), "Pass a C-contiguous writable array of f8 with 1 dimension"),
    (
        3,
        read_only(np.zeros(3)),
        "`out` does not fit the compiled kernel `common.add_sums`. an array of f8 of shape (3,), read-only",
    ),
]
STRUCTURES = [
    (Range(np.zeros(3), 1.0), "fields values, scale"),
    (chain()._replace(range=Range(np.zeros(3, np.float32), 1.0)), "`chain.range.values` does not fit"),
    (chain()._replace(range=Range(np.zeros(2), 1.0)), "do not belong together"),
    (chain()._replace(next=[1]), "`chain.next` does not fit the compiled kernel `common.follow`. list"),
]


@pytest.mark.parametrize(
    ("kernel", "arguments", "words"),
    [
        *((add_sums, arguments_of_sums(position, bad), words) for position, bad, words in DO_NOT_FIT),
        *((follow, (structure, 0), words) for structure, words in STRUCTURES),
    ],
)
def test_what_does_not_fit_reaches_no_kernel(kernel, arguments, words):
    with pytest.raises(InputTypeError) as caught:
        kernel(*arguments)
    assert words in str(caught.value)


def test_what_is_only_read_need_not_be_writable_and_may_be_empty():
    add_sums(read_only(np.ones((3, 4))), np.ones(4), 0, np.zeros(3))
    for rows, terms in ((0, 4), (3, 0), (0, 0)):
        out = np.ones(rows)
        add_sums(np.zeros((rows, terms)), np.zeros(terms), 0, out)
        assert (out == 1.0).all()


def test_the_number_of_arguments():
    with pytest.raises(TypeError, match=r"`common.add_sums` takes 4 arguments, not 1"):
        add_sums(np.zeros((3, 4)))
    with pytest.raises(TypeError, match="declared with 1 arguments in Python and 4 in C"):
        kernel("common.add_sums(X)")(1)


def test_indices_that_lead_outside_are_a_fault():
    for wrong in ((2, -1, 7), (2, -1, 0)):
        with pytest.raises(ModelFormatError, match=r"common.follow"):
            follow(chain(wrong), 0)


@pytest.mark.parametrize("size", [1 << 20, 1 << 40, -1])  # of the second the product of the sizes overflows
def test_no_memory(size):
    with pytest.raises(MemoryError, match=r"`common.exhaust`"):
        exhaust(size)


def long_call():
    """Make a call of minutes."""
    from exactshap.solvers.product._quadrature import fill_singles

    a, b, c = np.ones((200, 30, 320)), np.ones((200, 30, 320)), np.ones((1, 320))
    fill_singles(a, b, c, np.ones(200), np.arange(200), np.ones(300), np.ones(300), np.zeros((200, 30, 1)))


@pytest.mark.skipif(sys.platform == "win32", reason="signals of another kind")
@pytest.mark.parametrize(
    "handler", [signal.default_int_handler, lambda number, frame: (_ for _ in ()).throw(LookupError("mine"))]
)
def test_signals_end_a_long_kernel(handler):
    with interrupted(0.3, handler, (KeyboardInterrupt, LookupError)):
        long_call()
    add_sums(np.ones((3, 4)), np.ones(4), 0, np.zeros(3))


def test_threads_of_a_pool_are_cancelled():
    cancellation, ended = Cancellation(), []

    def work():
        with cancellation.watched():
            try:
                long_call()
            except KeyboardInterrupt:
                ended.append(time.perf_counter())

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    time.sleep(0.3)
    start = time.perf_counter()
    cancellation.set()
    for thread in threads:
        thread.join()
    assert len(ended) == 2
    assert max(ended) - start < 3.0


def test_calls_that_begin_after_the_end_are_cancelled_at_once():
    """Else a thread that makes many short calls goes on until the last of them."""
    cancellation = Cancellation()
    with cancellation.watched():
        add_sums(np.ones((3, 4)), np.ones(4), 0, np.zeros(3))
        cancellation.set()
        with pytest.raises(KeyboardInterrupt):
            add_sums(np.ones((3, 4)), np.ones(4), 0, np.zeros(3))
    add_sums(np.ones((3, 4)), np.ones(4), 0, np.zeros(3))


def copy_of_package(folder):
    """Return a copy of the package without sources beside it, as a wheel installs it."""
    shutil.copytree(PACKAGE, folder / "exactshap", ignore=shutil.ignore_patterns("__pycache__"))
    return folder / "exactshap" / "_native"


CALL = "from exactshap._native import kernel; import numpy as np; out = np.zeros(1); " + (
    "kernel('common.add_sums(X, weights, first, out)')(np.ones((1, 2)), np.ones(2), 0, out); print(out[0])"
)


def test_a_missing_or_foreign_library_says_what_to_do(tmp_path):
    folder = copy_of_package(tmp_path)
    (library,) = folder.glob("exactshap.*")
    assert run(CALL, PYTHONPATH=str(tmp_path))[1] == "2.0"
    library.write_bytes(b"not a library")
    error = run(CALL, PYTHONPATH=str(tmp_path))[2]
    assert "MissingDependencyError: The compiled kernels cannot be loaded" in error
    assert "install from source with `pip install --no-binary exactshap exactshap`" in error
    library.unlink()
    assert "The compiled kernels are missing. no file" in run(CALL, PYTHONPATH=str(tmp_path))[2]


def test_a_stale_library_is_refused_beside_sources(tmp_path):
    copy_of_package(tmp_path)
    (tmp_path / "native").mkdir()
    (tmp_path / "native" / "new.cpp").write_text("// newer")
    tmp_path.rename(tmp_path.with_name("src"))
    error = run(CALL, PYTHONPATH=str(tmp_path.with_name("src")))[2]
    assert "The compiled kernels do not belong to the sources" in error
    assert "python src/native/build.py" in error


def test_nothing_is_written(tmp_path):
    """A read-only installation and an unwritable home: the installation holds the same files after a call."""
    folder = copy_of_package(tmp_path)
    before = sorted(folder.rglob("*"))
    assert run(CALL, PYTHONPATH=str(tmp_path), HOME="/nonexistent", PYTHONDONTWRITEBYTECODE="1")[1] == "2.0"
    assert sorted(folder.rglob("*")) == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_fork_after_use_and_two_processes_at_once():
    code = (
        CALL.replace("print(out[0])", "print(out[0], flush=True)")
        + "; import os; child = os.fork(); "
        + CALL.partition("; ")[2]
        + "; child and os.waitpid(child, 0)"
    )
    both = [subprocess.Popen([sys.executable, "-W", "ignore", "-c", code], stdout=subprocess.PIPE, text=True) for _ in range(2)]
    assert [process.communicate(timeout=120)[0].count("2.0") for process in both] == [3, 3]
    assert all(process.returncode == 0 for process in both)

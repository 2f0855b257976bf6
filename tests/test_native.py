"""The compiled library: levels, the border of arrays, interruption, and what is said when it cannot work."""

import os
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


def run(code, **environment):
    done = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True, timeout=120
    )
    return done.returncode, done.stdout.strip(), done.stderr


# Kernels on arbitrary numbers: add yours.
DIGEST = """
import hashlib, math
import numpy as np
from exactshap.solvers.product import _folding as folding, _quadrature as product
from exactshap.solvers.rkhs import _gp_factors as process
rng, digest = np.random.default_rng(0), hashlib.sha256()
for made in (lambda *s: rng.random(s), lambda *s: rng.random(s) + 1j * rng.normal(size=s)):
    for n, d, terms, m, outputs in ((3, 5, 40, 2, 2), (1, 1, 1, 1, 1), (2, 7, 130, 3, 1)):
        a, b, c = made(n, d, terms), made(m, d, terms), made(outputs, terms)
        w, nodes, node_weights = rng.random(m), rng.random(7), rng.random(7)
        out = [np.zeros((n, d, outputs)), np.zeros((n, outputs)), np.zeros((n, outputs)), np.zeros(n), np.zeros(n)]
        product.fill_singles(a, b, c, w, np.arange(len(a)), nodes, node_weights, out[0])
        product.fill_ends(a, b, c, w, *out[1:])
        for size in range(1, min(d, 3) + 1):
            out.append(np.zeros((n, math.comb(d, size), outputs)))
            product.fill_interactions(a, b, c, w, size, nodes, node_weights, out[-1])
        if made(1).dtype == float:
            out += [np.zeros((terms + 3 & ~3, 2 ** (d - d // 2), 2 ** (d // 2))), np.zeros((n, outputs, 2 ** (d - d // 2), 2 ** (d // 2)))]
            folding.fill_folded(np.ascontiguousarray(b.transpose(2, 0, 1)), w, d // 2, out[-2])
            folding.fill_coalitions(np.ascontiguousarray(a.transpose(0, 2, 1)), out[-2], c, out[-1])
            out += [np.zeros((n, outputs, d)), np.zeros((n, d, terms)), np.zeros((n, d * (d + 1) // 2)), np.zeros(n)]
            folding.fill_set_values(out[-5].reshape(n, outputs, -1), 1 << np.arange(d), rng.random(d + 1), out[-4])
            process.fill_functionals(a, b, w, nodes, node_weights, out[-3])
            own, rows, background = rng.random((n, d)), rng.random((n, d, m)), rng.random((m, d, m))
            process.fill_prior(own, rows, rows, background, w, nodes, node_weights, False, out[-2])
            process.fill_spread(own, rows, background, out[-1])
        for array in out:
            digest.update(array.tobytes())
from exactshap.solvers.product import ExponentialTerms, _functional
for d, terms, small in ((5, 19, 0.0), (1, 1, 0.1), (35, 8, 0.1)):
    rules = _functional.RuleArrays(np.array([0.4, np.inf]), np.array([0, 3, 10]), np.linspace(small, 0.9, 10), rng.random(10))
    kernels = ExponentialTerms(rng.normal(size=(d, terms)), rng.random(d), rng.random(d), rng.random((2, terms)))
    out = np.zeros((3, d, 2)), np.zeros((3, 2)), np.zeros(3, np.int64)
    _functional.fill_functional(rng.normal(size=(3, d)), kernels, rules, *out)
    for array in out:
        digest.update(array.tobytes())
from exactshap.solvers.product import _hinges as hinges
for d in (5, 17):
    out, steps = np.zeros((d, 2)), rng.normal(size=(3, d))
    tables = rng.random((d + 1, 64)), rng.random((d + 1, 64))
    hinges.fill_hinges(steps, np.array([0, 1, 2, 4]), rng.normal(size=4), rng.normal(size=(4, 2)), *tables, 1.0, out)
    digest.update(out.tobytes())
from exactshap.semivalues import find
from exactshap.solvers.product import solve_factors
for players, members in ((5, [(0, 1), (1, 2), (2, 3, 4), (4,)]), (3, [(0,)]), (4, [(0, 1, 2, 3)])):
    factors = [(one, rng.normal(size=(3, 2 ** len(one)))) for one in members]
    for order in (1, 2):
        part = solve_factors(players, factors, 1j * rng.random(5), rng.normal(size=5) + 0j, rng.random(3), find("k-sii"), order)
        digest.update(part.values.tobytes())
from exactshap.decompose.r2 import _games as r2, _layout
from exactshap.trees import RawTree, build
for depth in (3, 5):
    q = np.arange(2 ** (depth + 1) - 1)
    leaf = q >= 2**depth - 1
    heap = [np.where(leaf, -1, 2 * q + 1), np.where(leaf, -1, 2 * q + 2)]
    raw = [RawTree(np.where(leaf, -1, rng.integers(0, 6, len(q))), rng.normal(size=len(q)), *heap, rng.normal(size=len(q)),
                   cover=rng.random(len(q)) + 0.1) for _ in range(4)]
    trees = build(raw, n_features=6, constant=np.zeros(1), less_equal=True, single_precision=False)
    layout, y, w = _layout.lay_out(trees, rng.normal(size=(70, 6)), np.arange(6, dtype=np.int32), 6), rng.random(70), rng.random(70)
    out = [r2.ensemble_shares(layout, y, w, 1), r2.ensemble_rows(layout, y, w, 1)]
    for averaged in (False, True):
        out += [*r2.residual_shares(layout, y.copy(), w, averaged, 1), r2.residual_rows(layout, y, w, averaged, 1)]
    for array in out:
        digest.update(array.tobytes())
from exactshap.semivalues import Beta, Semivalue
from exactshap.solvers.trees import prepare_trees
X, shapley = rng.normal(size=(200, 6)), Semivalue("shapley", Beta(1, 1))
for background in (None, X[:40]):
    prepared = prepare_trees(trees, [[0], [1], [2, 3], [4], [5]], background)
    for engine in (prepared.deep, prepared.tables):
        for n, order in ((3, 1), (150, 1), (2, 1), (20, 2)):
            part = engine.solve(np.ascontiguousarray(X[:n].T), shapley, order)
            digest.update(np.ascontiguousarray(part.values).tobytes() + part.scale.tobytes() + part.full.tobytes())
from exactshap.decompose.pairwise import _kernels as pairs
from exactshap.solvers.core import RuleArrays
block, offset = pairs.PanelBlock(3, 90, 20, 160), rng.normal(size=(2, 160))
for starts in ([0, 1, 2, 3, 4, 5], [0, 3, 5]):
    kinds, scales = np.array([0, 1, 2, 3, 0]), rng.random(5) + 0.3
    factors = pairs.FactorArrays(np.round(rng.normal(size=(5, 160)), 1), kinds, scales, np.array(starts))
    rules = RuleArrays(np.array([0.5, np.inf]), np.array([0, 2, 6]), rng.random(6), rng.random(6))
    out = [np.zeros((len(starts), block.height, block.padded)) for _ in range(3)] + [np.zeros((len(starts), 300))]
    pairs.fill_contributions(factors, rules, block, out[0])
    pairs.fill_permuted_weights(factors, offset[0], rng.permuted(np.tile(np.arange(160, dtype=np.int32), (len(starts), 1)), axis=1), block, out[1])
    pairs.fill_node_products(factors, block, rng.random(len(starts)), out[2])
    pairs.add_sides(out[0], out[1][0], out[3], block.start, out[3], block.first)
    pairs.add_contributions(factors, rules, block, out[3], out[3])
    out += [np.zeros((block.height, block.padded)), np.zeros((len(starts) - 1, block.height, block.padded)), np.zeros(2 * len(starts) - 1)]
    pairs.fill_products(factors, offset[0], block, out[4])
    pairs.fill_gaps(factors, block, out[5])
    pairs.fill_joint_contributions(factors, offset, factors, offset, block, rng.random(2), rng.random(2), out[6])
    out += [np.zeros(out[3].shape), np.zeros(out[3].shape), np.zeros(160 * 159 // 2), np.zeros(160 * 159 // 2)]
    pairs.add_centred_contributions(factors, rules, factors, offset[0], block, *out[7:9])
    pairs.add_all_distances(factors.columns, scales, True, out[9])
    pairs.add_all_distances(factors.columns, scales, False, out[10])
    for array in out:
        digest.update(array.tobytes())
from exactshap.games import AdditiveGame
from exactshap.solvers import solve
from exactshap.solvers.additive import _stacks as terms
from exactshap.solvers.rkhs import _embedding as embeddings
from exactshap.solvers.sampled.process import _evidence as relevance
game = AdditiveGame(5, [(0, 1, 3), (2,), (1, 4)], [rng.normal(size=(3, 2**k, 2)) for k in (3, 1, 2)])
out = [solve(game, index="sii", order=2).values, np.zeros((9, 2)), np.zeros(3000), np.tril(rng.random((90, 90)) + 0.1), np.eye(90) + 0.1]
terms.fill_fold(rng.random((40, 2)), rng.integers(0, 20, 9), rng.integers(0, 20, 9), rng.random(9), out[1])
embeddings.fill_product(rng.random((3, 4000)), np.array([0, 2]), 77, out[2])
embeddings.mirror(out[3].T.copy())
out += [rng.random((90, 90)) + 0.1, np.zeros((90, 90)), np.ones((90, 90)), np.zeros((9, 4))]
relevance.fill_covariance(0.3, -0.2, 1.0, 0.1, out[5], out[6])
relevance.fill_sums(0.3, -0.2, 1.0, out[6][:7] + 1.0)
relevance.fill_weighted(out[5], rng.random((90, 3)), rng.random((90, 3)), out[7])
relevance.fill_singles(rng.choice([-1.0, 1.0], (9, 4)), rng.random(4) * 0.9, rng.random(3), rng.random(3), -1.0, out[8])
relevance.correct_curvature(out[4], rng.random((3, 90)), rng.random((3, 90)), 0.2)
sets = terms.Sets(np.array([[0], [1]]), np.ones(2, int), rng.random((2, 4)))
lookups = terms.Lookups(np.arange(2), np.full((2, 2), 3), np.tile(np.arange(3), (2, 4, 1)), rng.normal(size=(9, 1)))
out += [np.zeros((90, 3, 1)), np.zeros((90, 1)), np.zeros((90, 1)), np.zeros(90)]
terms.add_lookups(rng.integers(0, 9, (90, 2)), lookups, sets, np.array([[0, 1], [1, 2]]), *out[-4:])
cuts = [np.sort(rng.normal(size=n)) for n in (40, 9)]
bins = terms.Bins(np.concatenate(cuts), np.array([0, 40, 49]), np.arange(2), np.array([0, 1, 2, 4]), np.array([0, 1, 0, 1]), np.array([1, 1, 12, 1]))
out += [np.zeros((90, 3), np.int32)]
terms.fill_cells(rng.normal(size=(90, 2)), bins, out[-1])
from exactshap.solvers.additive._stacks import Linear, fill_linear
for n_outputs in (1, 3):
    out += [np.zeros((7, 21, n_outputs)), np.zeros((7, n_outputs)), np.zeros(7)]
    linear = Linear(*rng.normal(size=(2, 21, n_outputs)), rng.integers(0, 21, 21))
    fill_linear(rng.normal(size=(7, 21)), linear, 0.5, *out[-3:])
from exactshap.solvers.additive._stacks import Factors, add_monomials
for k, members in ((1, [[0]]), (2, [[0, -1], [1, -1], [0, 1]]), (3, [[0, -1], [1, -1], [2, -1], [0, 1], [0, 2], [1, 2]])):
    local = terms.Sets(np.array(members), np.array([1 if row[-1] < 0 or len(row) == 1 else 2 for row in members]), rng.random((len(members[0]) + 1, 2**k)))
    factors = Factors(rng.integers(0, 4, (5, k, 2)), rng.integers(0, 3, (5, k, 2)), rng.normal(size=(5, 2)), rng.normal(size=(5, 2**k)))
    out += [np.zeros((70, 7, 2)), np.zeros((70, 2)), np.zeros((70, 2)), np.zeros(70)]
    where = np.stack([rng.permutation(7)[: len(members)] for _ in range(5)])
    add_monomials(rng.normal(size=(70, 4)), factors, local, where, *out[-4:])
for array in out:
    digest.update(array.tobytes())
print(digest.hexdigest())
"""


def test_all_levels_give_the_same_bits():
    digests = {name: run(DIGEST, EXACTSHAP_CPU=name) for name in LEVELS}
    assert all(code == 0 for code, _, _ in digests.values()), digests
    assert len({out for _, out, _ in digests.values()}) == 1, digests


def test_no_fused_multiply_add():
    """An instruction that rounds once where others round twice gives other bits on other CPUs."""
    if shutil.which("objdump") is None or level() == "base":
        pytest.skip("needs objdump on x86-64")
    library = PACKAGE / "_native" / "exactshap.so"
    text = subprocess.run(
        ["objdump", "-d", "--no-show-raw-insn", str(library)], capture_output=True, text=True, check=True
    ).stdout
    fused = {line.split("\t")[-1].split()[0] for line in text.splitlines() if "\tvfm" in line or "\tvfnm" in line}
    assert not fused


def test_code_of_levels_stays_apart():
    """Between EXACTSHAP_BEGIN and EXACTSHAP_END, or the linker merges what is compiled three times."""
    sources = PACKAGE.parent / "native"
    if not sources.is_dir():
        pytest.skip("an installed package has no sources")
    for path in sorted(sources.rglob("*.h")) + sorted(sources.rglob("*.cpp")):
        if path.name == "library.cpp":
            continue
        inside, outside = False, []
        for line in path.read_text(encoding="utf-8").splitlines():
            if line in ("EXACTSHAP_BEGIN", "EXACTSHAP_END"):
                inside = line == "EXACTSHAP_BEGIN"
            elif not inside:
                outside.append(line)
        wrong = [
            line for line in outside if line.startswith(("inline", "template", "struct", "static", "EXACTSHAP_INLINE", "class"))
        ]
        assert not wrong, f"{path}: {wrong}"


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


@pytest.mark.parametrize(
    ("position", "bad", "words"),
    [
        (
            0,
            np.zeros((3, 4), np.int64),
            "`X` does not fit the compiled kernel `common.add_sums`. an array of i8 of shape (3, 4)",
        ),
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
    ],
)
def test_what_does_not_fit_reaches_no_kernel(position, bad, words):
    arguments = [np.zeros((3, 4)), np.zeros(4), 0, np.zeros(3)]
    arguments[position] = bad
    with pytest.raises(InputTypeError) as caught:
        add_sums(*arguments)
    assert words in str(caught.value)


def test_what_is_written_must_be_writable():
    out = np.zeros(3)
    out.flags.writeable = False
    with pytest.raises(InputTypeError, match=r"`out` does not fit .* read-only"):
        add_sums(np.ones((3, 4)), np.ones(4), 0, out)
    X = np.ones((3, 4))
    X.flags.writeable = False
    add_sums(X, np.ones(4), 0, np.zeros(3))


def test_empty_arrays():
    for rows, terms in ((0, 4), (3, 0), (0, 0)):
        out = np.ones(rows)
        add_sums(np.zeros((rows, terms)), np.zeros(terms), 0, out)
        assert (out == 1.0).all()


def test_the_number_of_arguments():
    with pytest.raises(TypeError, match=r"`common.add_sums` takes 4 arguments, not 1"):
        add_sums(np.zeros((3, 4)))
    with pytest.raises(TypeError, match="declared with 1 arguments in Python and 4 in C"):
        kernel("common.add_sums(X)")(1)


def test_structures_that_do_not_fit():
    with pytest.raises(InputTypeError, match="fields values, scale"):
        follow(Range(np.zeros(3), 1.0), 0)
    with pytest.raises(InputTypeError, match=r"`chain.range.values` does not fit .* array of f4"):
        follow(chain()._replace(range=Range(np.zeros(3, np.float32), 1.0)), 0)
    with pytest.raises(InputTypeError, match="do not belong together"):
        follow(chain()._replace(range=Range(np.zeros(2), 1.0)), 0)
    with pytest.raises(InputTypeError, match=r"`chain.next` does not fit .* list"):
        follow(chain()._replace(next=[1]), 0)


def test_indices_that_lead_outside_are_a_fault():
    for wrong in ((2, -1, 7), (2, -1, 0)):
        with pytest.raises(ModelFormatError, match=r"common.follow"):
            follow(chain(wrong), 0)


def test_no_memory():
    with pytest.raises(MemoryError, match=r"`common.exhaust`"):
        exhaust(1 << 20)
    with pytest.raises(MemoryError):
        exhaust(1 << 40)  # the product of the sizes overflows
    with pytest.raises(MemoryError):
        exhaust(-1)


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

"""Black boxes whose calls go through a map: the same bits for any cuts' runners, failures named, finished calls kept."""

import io
import os
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import pytest

import scale_cases as cases
from exactshap import Explainer
from exactshap.errors import ExplanationWarning, InputError, InputTypeError
from exactshap.scale import MappedFunction, Partition
from tolerances import assert_close

NAMES = [f"f{j}" for j in range(14)]


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    return rng.normal(size=(4, 14)), rng.normal(size=(6, 14))


def explained(function, data, **settings):
    X, background = data
    return Explainer(function, background, budget=120, **settings)(X)


def test_workers_give_the_bits_of_one_process(data, pool):
    here = explained(MappedFunction(cases.product, batch_rows=50), data)
    whole = explained(cases.product, data)
    assert_close(here.values, whole.values, scale=10.0, n_terms=120)  # other cuts: the function's own BLAS may round otherwise
    for n_jobs in (None, 3):
        there = explained(MappedFunction(cases.product, pool.map, batch_rows=50), data, n_jobs=n_jobs)
        assert np.array_equal(here.values, there.values)
        assert np.array_equal(here.std_error, there.std_error)


def test_frames_stay_frames(data):
    frames = [pd.DataFrame(part, columns=NAMES) for part in data]
    function = lambda rows: rows["f0"] * rows["f1"]  # noqa: E731
    with ThreadPoolExecutor(2) as pool:
        found = explained(MappedFunction(function, pool.map, batch_rows=40), frames)
    assert np.array_equal(found.values, explained(function, frames).values)


class Fragile:
    """A function that fails on one row of the request as long as it is told to."""

    def __init__(self):
        self.broken, self.calls = False, 0

    def __call__(self, rows):
        self.calls += 1
        if self.broken and (rows[:, 0] == 7.0).any():
            raise KeyError("the service is down")
        return rows[:, 0] * rows[:, 1] + rows[:, 2]

    def __reduce__(self):
        return Fragile, ()


def test_a_call_that_fails_is_named_and_the_others_are_kept(tmp_path):
    X, background = np.array([[1.0, 2.0, 3.0], [5.0, 1.0, 1.0], [7.0, 2.0, 5.0]]), np.zeros((2, 3))
    function = Fragile()
    explainer = Explainer(MappedFunction(function, batch_rows=2, kept=tmp_path), background)
    function.broken = True
    place = r"for row 2 on \d+ rows of 8 coalitions, in the call that begins at that with \['x0'.*\] from x"
    with pytest.raises(InputError, match=f"{place}. KeyError: 'the service is down'"):
        explainer(X)
    function.broken, before = False, function.calls
    values = explainer(X).values
    resumed = function.calls - before
    assert np.array_equal(values, Explainer(function, background)(X).values)
    again = function.calls
    fresh = Explainer(MappedFunction(function, batch_rows=2, kept=tmp_path), background)
    assert np.array_equal(fresh(X).values, values)
    assert function.calls == again  # nothing is called twice
    assert 0 < resumed <= 4 + 2  # the batches that failed, and the prediction


@pytest.mark.parametrize(
    ("mapped", "settings"),
    [
        (False, {}),
        (False, {"memory_limit": 2**14}),
        (True, {"n_jobs": 3}),
        (True, {"memory_limit": 2**14, "n_jobs": 2}),
    ],
)
def test_the_row_of_a_failed_call_counts_from_the_first_of_the_table(mapped, settings):
    rng = np.random.default_rng(0)
    X = pd.DataFrame(rng.normal(size=(40, 3)), columns=["a", "b", "c"], index=[f"r{i}" for i in range(40)])
    X.iloc[[31, 37], 0] = 7.0
    function, fragile = (lambda rows: fragile(np.asarray(rows))), Fragile()
    fragile.broken = True
    with ThreadPoolExecutor(2) as pool:
        model = MappedFunction(function, pool.map, batch_rows=2) if mapped else function
        words = r"for row 31 \(label r31\) on \d+ rows of 8 coalitions.*the service is down"
        with pytest.raises(InputError, match=words) as caught:
            Explainer(model, X[:2], **settings)(X)
    assert caught.value.row == 31


def test_a_map_that_breaks_is_named_as_a_call_and_what_was_there_is_kept(tmp_path):
    """As a pool of processes does whose worker was killed."""
    function, intact = Fragile(), [True]

    def breaking(function, batches):
        for number, batch in enumerate(batches):
            if number == 3 and not intact[0]:
                raise OSError("a worker was killed")
            yield function(batch)

    X, background = np.array([[1.0, 2.0, 3.0]]), np.zeros((2, 3))
    explainer = Explainer(MappedFunction(function, breaking, batch_rows=2, kept=tmp_path), background)
    intact[0] = False
    words = "raised CallError for row 0 on 16 rows of 8 coalitions.*OSError: a worker was killed .rows 8 to 9"
    with pytest.raises(InputError, match=words):
        explainer(X)
    intact[0], before = True, function.calls
    values, resumed = explainer(X).values, function.calls - before
    assert resumed == 4 + 1  # the batches that were left, and the prediction
    assert np.array_equal(values, Explainer(function, background)(X).values)


def test_kept_calls_are_those_of_the_function(tmp_path):
    background, scale = np.zeros((1, 2)), 2.0
    one = Explainer(MappedFunction(lambda rows: rows[:, 0] * scale, kept=tmp_path), background)([[1.0, 1.0]])
    scale = 3.0
    two = Explainer(MappedFunction(lambda rows: rows[:, 0] * scale, kept=tmp_path), background)([[1.0, 1.0]])
    assert (one.values[0, 0], two.values[0, 0]) == (2.0, 3.0)


def npy(array):
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


TAMPERED = {
    **{
        f"bit {8 * byte + byte % 8}": (lambda data, byte=byte: flipped(data, byte))
        for byte in (0, 8, 30, 127, 128, 135, 140, 151, -1)
    },
    "cut": lambda data: data[:-5],
    "longer": lambda data: data + b"\0",
    "empty": lambda data: b"",
    "a pickle": lambda data: b"\x80\x04N.",
    "another array": lambda data: npy(np.zeros(3)),
    "another shape": lambda data: npy(np.zeros(2)) + data[-32:],
}


def flipped(data, byte):
    changed = bytearray(data)
    changed[byte] ^= 1 << byte % 8
    return bytes(changed)


@pytest.mark.parametrize("how", TAMPERED)
def test_a_kept_answer_that_is_not_what_was_written_is_called_again(how, tmp_path):
    mapped, rows = MappedFunction(cases.product, batch_rows=3, kept=tmp_path), np.random.default_rng(0).normal(size=(6, 14))
    first = mapped(rows)
    whole = {place: place.read_bytes() for place in tmp_path.iterdir()}
    place = min(whole)
    place.write_bytes(TAMPERED[how](whole[place]))
    with pytest.warns(ExplanationWarning, match="kept answers? in .* differed from what had been written: called again"):
        again = mapped(rows)
    assert np.array_equal(again, first)
    assert {place: place.read_bytes() for place in tmp_path.iterdir()} == whole
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.array_equal(mapped(rows), first)


def test_kept_answers_that_change_places_are_called_again(tmp_path):
    mapped, rows = MappedFunction(cases.product, batch_rows=3, kept=tmp_path), np.random.default_rng(0).normal(size=(6, 14))
    first = mapped(rows)
    one, two = tmp_path.iterdir()
    content = one.read_bytes()
    one.write_bytes(two.read_bytes())
    two.write_bytes(content)
    with pytest.warns(ExplanationWarning, match="2 kept answers"):
        assert np.array_equal(mapped(rows), first)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes as files here")
def test_a_pipe_in_the_place_of_a_kept_answer_does_not_block(tmp_path):
    mapped, rows = MappedFunction(cases.product, kept=tmp_path), np.ones((3, 14))
    first = mapped(rows)
    (place,) = tmp_path.iterdir()
    place.unlink()
    os.mkfifo(place)
    with pytest.warns(ExplanationWarning, match="1 kept answer"):
        assert np.array_equal(mapped(rows), first)


def test_settings_are_checked(tmp_path):
    with pytest.raises(InputError, match="'batch_rows' parameter"):
        MappedFunction(len, batch_rows=0)
    with pytest.raises(InputTypeError, match="'function' parameter must be callable"):
        MappedFunction(3)

    class Closed:
        def __call__(self, rows):
            return rows[:, 0]

        def __reduce__(self):
            raise TypeError("never")

    with pytest.raises(InputError, match="cannot be pickled, so that kept answers"):
        MappedFunction(Closed(), kept=tmp_path)
    assert repr(MappedFunction(cases.product)) == "MappedFunction(product, batch_rows=1000)"


def test_in_a_partition_the_row_of_a_failed_call_is_named_too(tmp_path):
    rows = pd.DataFrame([[1.0, 2.0, 3.0], [5.0, 1.0, 1.0], [7.0, 2.0, 5.0]], columns=["a", "b", "c"])
    function = Fragile()
    mapped = MappedFunction(lambda table: function(np.asarray(table)), batch_rows=2, kept=tmp_path)
    part = Partition(Explainer(mapped, pd.DataFrame(np.zeros((2, 3)), columns=["a", "b", "c"])))
    function.broken = True
    with pytest.raises(InputError, match=r"Row 2 of the partition cannot be explained.*with \['a'\] from x. KeyError"):
        part(rows)
    function.broken = False
    plain = Partition(Explainer(lambda table: function(np.asarray(table)), part.explainer.reader.traits.background.native))
    pd.testing.assert_frame_equal(part(rows), plain(rows), check_exact=True)

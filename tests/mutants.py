"""What damage does to bytes: cuts, repeats, swaps, other bytes, and nasty numbers and words in place of others."""

import collections
import re
import time
import traceback
import warnings

import numpy as np

from exactshap.errors import ExactshapError

WORDS = b'-1 0 1 91 2147483647 -2147483648 99999999999999999999 1e400 -1e400 nan NaN Infinity null true [] {} "" 0.5 ='.split()
WORDS += [b"\n", b"\x00", b"\xff", b""]
LISTS = [[], [[]], [1], [1.0, 2.0, 3.0, 4.0], ["x", "y", "z"], [[0], [1], [2]], [[0, 1]], [["x"]]]
NUMBERS = [-1, 0, 1, 3, 2**63, 10**400, 0.5, -1e308, float("nan"), float("inf")]
TEXTS = ["", "x", "1", "\x00\ud800", "x" * 10_000, "pandas", "polars", "array", "objects"]
ODD = [None, True, False, *NUMBERS, *TEXTS, *LISTS, {}, {"a": 1}, {"a": [0, 9]}, {"a": "xyz"}, {"a": [0.5]}]


def mutant(data, rng):
    """One to three edits: a byte, a cut, a repeated or swapped piece, or a number or token replaced by a nasty one."""
    for _ in range(rng.integers(1, 4)):
        n = len(data)
        if n < 4:
            break
        i, j = sorted(int(v) for v in rng.integers(0, n, 2))
        kind = rng.integers(6)
        if kind == 0:
            data = data[:i] + bytes([rng.integers(256)]) + data[i + 1 :]
        elif kind == 1:
            data = data[:i]
        elif kind == 2:
            data = data[:i] + data[i : i + 40] + data[i:]
        elif kind == 3:
            data = data[:i] + data[j : j + 8] + data[i + 8 :]
        elif kind == 4:
            data = data[:i] + data[i + int(rng.integers(1, 30)) :]
        else:
            data = replace_token(data, i, WORDS[rng.integers(len(WORDS))])
    return data


def other_number(data, rng):
    """Replace one number of a text by another one of it, or by a nasty word: most such files can still be read."""
    places = [match.span() for match in re.finditer(rb"-?[0-9][0-9.eE+-]*", data)]
    (start, end), (i, j) = (places[rng.integers(len(places))] for _ in range(2))
    return data[:start] + (data[i:j] if rng.integers(4) else WORDS[rng.integers(len(WORDS))]) + data[end:]


def replace_token(data, i, word):
    """Replace the number around or after byte i."""
    digits = b"0123456789.-+eE"
    while i < len(data) and data[i] not in digits:
        i += 1
    start = i
    while start > 0 and data[start - 1] in digits:
        start -= 1
    end = i
    while end < len(data) and data[end] in digits:
        end += 1
    return data[:start] + word + data[end:]


def other_bytes(content, rng):
    """Replace one to three bytes: lengths stay, so that what comes after the first check is reached."""
    changed = bytearray(content)
    for place in rng.integers(0, len(changed), rng.integers(1, 4)):
        changed[place] = rng.integers(256)
    return bytes(changed)


def campaign(whole, damage, judge, count, seed, seconds, report=None):
    """Return how often each verdict came up; foreign exceptions and long work are verdicts, with the mutant's number."""
    verdicts = collections.Counter()
    for number in range(count):
        damaged = damage(whole[number % len(whole)], np.random.default_rng([seed, number]))
        started, text = time.process_time(), ""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                verdict = judge(damaged)
        except BaseException as error:  # a crash of Rust is no Exception
            if isinstance(error, (KeyboardInterrupt, SystemExit)):
                raise
            kind = "AN OWN ERROR OF ANOTHER CLASS" if isinstance(error, ExactshapError) else "A FOREIGN EXCEPTION"
            verdict, text = f"{kind}: mutant {number}: {type(error).__name__}", traceback.format_exc()
        if time.process_time() - started > seconds:
            verdict = f"SLOW: mutant {number}"
        if verdict[0].isupper() and report is not None:
            report(f"mutant {number}: {verdict}\n{text}")
        verdicts[verdict] += 1
    return verdicts

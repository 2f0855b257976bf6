"""Write the interactive page: one file with charts and scripts, without requests.

The scripts are Vega as a Python package brings it, and ours; a policy allows no others.
"""

from __future__ import annotations

import base64
import functools
import hashlib
import json
import re
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import Column
from exactshap.errors import InputError, printable
from exactshap.results.data import (
    Cells,
    ExplanationData,
    Observed,
    axis_name,
    cells,
    filter_grammar,
    index_title,
    observe,
    readable,
    response,
    row_name,
)
from exactshap.results.plots import shortened_apart
from exactshap.results.report._words import page_words, rendered

# Rows that a browser can sum while a brush moves.
_MAX_ROWS = 20_000
# Compressed bytes: with 4/3 of that as base64 and 0.9 MB of scripts, a page stays below 10 MB.
_MAX_BYTES = 6_700_000
# Compressed bytes per number of each kind.
_BYTES = {"values": 3.55, "cells": 2.65, "errors": 1.9, "pairs": 3.55, "rows": 24.0}
# What the page shows first, besides its feature and row.
_STATE = {"output": 0, "colour": -1, "pair": -1, "B": [], "sort": "", "up": False, "page": 0}
_RESPONSES = ("probability", "predicted target")
_FACTS = ("baseline", "prediction", *_RESPONSES, "observed", "error", "residual")
# Bits of the mantissa, for five and three digits.
_CELL_BITS, _ERROR_BITS = 16, 9

_FULL_BITS = 23  # of a float32's mantissa
# Letters of a name next to bars of all rows, and next to those of one row, with its cell.
_LETTERS = {"wide": 28, "narrow": 18}
# Players of the matrix of pairs.
_PAIRED = 12
# The second script is a module, which is strict and may await
_SCRIPT_PLACES = ("@@vega@@", "@@script@@")


def render_interactive(explanation: ExplanationData, *, target: Column = None, seed: int = 0, **words: Any) -> str:
    """Return the interactive report as HTML text; see :meth:`exactshap.Explanation.report`.

    The page holds up to 20,000 rows, fewer where it would exceed 10 MB, and says which. The row with the largest error to ``target`` is shown
    first. Its policy allows the two scripts that it contains, by their hashes, and no requests. The first page of a process takes some
    seconds, in which Vega is bundled.
    """
    if explanation.n_rows == 0:
        raise InputError("A report needs at least one row", "Got an explanation of 0 rows")
    library, script = vega(), own_script()
    errors = explanation.std_error is not None or explanation.covariances is not None
    page = rendered(
        "interactive/page.html.jinja",
        **page_words(explanation, seed=seed, interactive=True, **words),
        packed=pack(explanation, target=target, seed=seed),
        errors=errors,
        policy=content_policy(library, script),
        vega=_SCRIPT_PLACES[0],
        script=_SCRIPT_PLACES[1],
    )
    # Byte for byte, as their hashes are in the policy
    for place, content in zip(_SCRIPT_PLACES, (library, script), strict=True):
        before, _, after = page.rpartition(f"{place}</script>")
        page = f"{before}{content}</script>{after}"
    return page


@functools.cache
def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script without requests. The first call bundles them in some seconds."""
    converter = require("vl_convert", "interactive", purpose="An interactive report")
    return _inline(converter.javascript_bundle("window.vegaEmbed = vegaEmbed;"))


@functools.cache
def own_script() -> str:
    """Return the page's own script: the filter language, the charts and the page's behaviour."""
    folder = Path(__file__).parent / "interactive"
    parts = ((folder / name).read_text(encoding="utf-8") for name in ("filter.js", "charts.js", "page.js"))
    return _inline(f"const GRAMMAR = {filter_grammar().strip()};\n{''.join(parts)}")


def _inline(script: str) -> str:
    """Return a script that can be embedded: no closing tag, and line ends that a parser keeps."""
    script = script.replace("\r\n", "\n").replace("\r", "\n").replace("\0", "\\0")
    return re.sub(r"<(?=!--|/script)", r"\\x3c", script, flags=re.IGNORECASE)


def content_policy(*scripts: str) -> str:
    """Return the page's Content-Security-Policy: these scripts by their hashes, styles of the page, and nothing else.

    >>> content_policy("alert(1)")
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-bhHHL3z2vDgxUt0W3dWQOrprscmda2Y5pLsLg4GF+pI='"
    """
    hashes = [base64.b64encode(hashlib.sha256(script.encode()).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{text}'" for text in hashes)
    return f"default-src 'none'; style-src 'unsafe-inline'; script-src {allowed}"


@dataclass(frozen=True)
class Packed:
    """Hold the page's block of data and the texts about its rows."""

    text: str  # base64 of zlib of: the length of the JSON (4 bytes, little endian), the JSON, the arrays
    rows: np.ndarray  # array of int: the rows in the page
    sentence: str  # text: which rows these are, and why
    first: int  # the row that is shown first, as a position in ``rows``
    first_words: str  # why this one
    target_words: str  # definition of a row's error; "" without a target
    labels: list[str]  # of these rows
    pairs: list[tuple[int, int]]  # list of pairs of int: those that the page can draw


def pack(explanation: ExplanationData, *, target: Column = None, seed: int = 0) -> Packed:
    """Choose the rows of the page, by ``seed`` where there are too many, and pack their numbers. Errors are in the unit of the target."""
    observed = None if target is None else observe(explanation, target)
    first, words = _first(explanation, None if observed is None else observed.error)
    pairs = strongest_pairs(explanation)
    rows, sentence = _rows(explanation, _bytes_per_row(explanation, len(pairs)), first, seed)
    shown = cells(explanation, rows)
    people = readable(explanation)
    arrays = _arrays(people, explanation.residual, rows, pairs, observed)
    kinds, texts = _cell_arrays(explanation, rows, shown, arrays)
    place = int(np.searchsorted(rows, first))
    strength = np.abs(people.values).mean(axis=0).reshape(people.n_players, -1).T.tolist()
    tiled = players_of(pairs)
    about = _names(explanation, rows)
    info = {
        **about,
        "kinds": kinds,
        "texts": texts,
        "coarse": [] if shown is None else [is_rounded(shown.numbers[:, j]) for j in range(explanation.n_players)],
        "ranges": [_range(column) for column in arrays.get("cells", ())],
        "pairs": pairs,
        "strength": strength,
        "tiles": tiles(people, pairs),
        "tile_signals": {"words": [about["names"][j] for j in tiled], "height": 30 * len(tiled)},
        "state": _STATE | {"feature": int(np.argmax(strength[0])), "A": [place]},
        "rounding": float(explanation.tolerance.min()),  # of a sum: values below it are zero
        "facts": [name for name in _FACTS if name in arrays],
        "response": next((name for name in _RESPONSES if name in arrays), ""),
    }
    named = [(first, second) for first, second, _ in pairs]
    said = "" if observed is None else observed.sentence
    return Packed(_block(info, arrays), rows, sentence, place, words, said, info["labels"], named)


def _first(explanation: ExplanationData, error: np.ndarray | None) -> tuple[int, str]:
    """Return the row with the largest error or median prediction, and why."""
    n = explanation.n_rows

    def largest(numbers: np.ndarray) -> int:
        return int(np.argmax(np.nan_to_num(np.abs(numbers)).reshape(n, -1).max(axis=1)))

    if not explanation.certificate().passed:
        return largest(explanation.residual), "the row with the largest residual"
    if error is not None:
        return largest(error), "the row with the largest error of the prediction"
    errors = readable(explanation).std_error
    if errors is not None and errors.any():
        return largest(errors), "the row with the largest standard error"
    order = np.argsort(explanation.prediction.reshape(n, -1)[:, 0], kind="stable")
    return int(order[n // 2]), "the row with the median prediction" if n > 1 else "the only row"


def _bytes_per_row(explanation: ExplanationData, n_pairs: int) -> float:
    outputs = max(explanation.n_outputs, 1)
    errors = _BYTES["errors"] * (explanation.std_error is not None or explanation.covariances is not None)
    cell = _BYTES["cells"] * (explanation.data is not None)
    player = outputs * (_BYTES["values"] + errors) + cell
    return explanation.n_players * player + outputs * (_BYTES["rows"] + _BYTES["pairs"] * n_pairs)


def _rows(explanation: ExplanationData, width: float, first: int, seed: int) -> tuple[np.ndarray, str]:
    n = explanation.n_rows
    limit = max(min(_MAX_ROWS, int(_MAX_BYTES / width)), 10)
    if n <= limit:
        every = "the one row" if n == 1 else f"all {n:,} rows"
        return np.arange(n), f"The page holds {every} that {'was' if n == 1 else 'were'} explained."
    prediction = explanation.prediction.reshape(n, -1)[:, 0]
    residual = np.abs(explanation.residual).reshape(n, -1).max(axis=1)
    kept = {first, int(np.argmin(prediction)), int(np.argmax(prediction)), int(np.argmax(residual))}
    others = np.setdiff1d(np.arange(n), list(kept))
    drawn = np.random.default_rng(seed).choice(others, size=limit - len(kept), replace=False)
    why = "a page of all of them would be too large to mail" if limit < _MAX_ROWS else "a browser is slow with more"
    return np.sort(np.concatenate([drawn, list(kept)])), (
        f"The page holds {limit:,} of the {n:,} explained rows, because {why}: drawn at random (seed {seed}), and the rows with the "
        "lowest and the highest prediction, the largest residual, and the one shown first. Importances before a filter are of all rows."
    )


def _per_output(numbers: np.ndarray, rows: np.ndarray, n_outputs: int) -> np.ndarray:
    """Return (n_outputs, ..., n_rows), contiguous for each output and player."""
    taken = numbers[rows]
    return np.moveaxis(taken if n_outputs else taken[..., None], (-1, 0), (0, -1))


def _arrays(
    explanation: ExplanationData, residual: np.ndarray, rows: np.ndarray, pairs: list[list[int]], observed: Observed | None
) -> dict[str, np.ndarray]:
    K = 0 if explanation.output_names is None else explanation.n_outputs
    spread = explanation.std_error if explanation.std_error is not None else explanation.std
    known = response(explanation)
    arrays = {
        name: _per_output(numbers, rows, K)
        for name, numbers in (
            ("baseline", explanation.baseline),
            ("prediction", explanation.prediction),
            ("residual", residual),
            ("values", explanation.values),
            *(() if known is None else (known,)),
            *(() if observed is None else (("observed", observed.target), ("error", observed.error))),
        )
        if numbers is not None
    }
    if spread is not None:
        arrays["errors"] = rounded(_per_output(spread, rows, K), _ERROR_BITS)
    if pairs and explanation.set_values is not None:
        arrays["pairs"] = _per_output(explanation.set_values[:, [s for _, _, s in pairs]], rows, K)
    return arrays


def _cell_arrays(
    explanation: ExplanationData, rows: np.ndarray, shown: Cells | None, arrays: dict[str, np.ndarray]
) -> tuple[list[str], list[list[str]]]:
    """Add the cells of the players (n_players, n_rows). Return their kinds and the texts of codes."""
    if shown is None:
        return [], []
    kinds, texts, columns = [], [], []
    for j in range(explanation.n_players):
        days = shown.days(j)
        # Whole days are exact in float32; a time of day would be off by minutes, and stays float64
        kinds.append("number" if shown.numeric[j] else "text" if days is None else "date")
        numbers = shown.numbers[:, j] if days is None else days
        columns.append(numbers if days is not None and is_rounded(days) else rounded(numbers, _CELL_BITS))
        texts.append([_short(text) for text in (shown.categories(j) if days is None else ())])
    arrays["cells"] = np.stack(columns) if columns else np.zeros((0, len(rows)))
    return kinds, texts


def _range(column: np.ndarray) -> list[float]:
    known = column[np.isfinite(column)]
    return [0.0, 0.0] if known.size == 0 else [float(bound) for bound in np.percentile(known, [5, 95])]


def _names(explanation: ExplanationData, rows: np.ndarray) -> dict[str, Any]:
    names, has_data = explanation.feature_names, explanation.data is not None
    shown = [_short(name) for name in names]
    return {
        "names": shown,
        **{size: shortened_apart(shown, letters) for size, letters in _LETTERS.items()},
        "axes": [_short(axis_name(explanation, j) if has_data else name) for j, name in enumerate(names)],
        "labels": [_short(row_name(explanation, int(i))) for i in rows],
        "outputs": [_short(name) for name in explanation.output_names or ()],
        "unit": printable(explanation.unit),
        "index": index_title(explanation.index, explanation.order),
        "additive": explanation.additive,
        "n_outputs": max(len(explanation.output_names or ()), 1),
    }


def _short(text: str) -> str:
    """Return a name of the user as the page shows it."""
    return printable(text)[:200]


def _block(info: dict[str, Any], arrays: dict[str, np.ndarray]) -> str:
    """Return one block of bytes, grouped by their position in a number. That compresses better."""
    offset, places, pieces = 0, {}, []
    for name, array in arrays.items():
        size = 8 if name in _FACTS or (name == "cells" and array.dtype == float) else 4
        flat = np.ascontiguousarray(array, f"<f{size}").ravel()
        places[name] = [offset, flat.size, size]
        offset += flat.nbytes
        pieces.append(flat.view(np.uint8).reshape(-1, size).T.tobytes())
    words = json.dumps({**info, "arrays": places}, allow_nan=False).encode()
    return base64.b64encode(zlib.compress(len(words).to_bytes(4, "little") + words + b"".join(pieces), 6)).decode()


def rounded(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Round numbers to ``bits`` bits of mantissa, unless float32 holds all exactly.

    Columns that float32 holds exactly (counts, codes, prices in cents) stay as they are: they compress well.

    >>> rounded(np.array([1234567.0, 3.0]), 9).tolist(), rounded(np.array([0.123456789]), 9).tolist()
    ([1234567.0, 3.0], [0.1234130859375])
    """
    single = _single(numbers)
    if not is_rounded(numbers):
        return single
    drop = np.uint32(_FULL_BITS - bits)
    words = single.view(np.uint32)
    half = np.uint32(1) << (drop - np.uint32(1))
    kept = ((words + half) >> drop) << drop
    return np.where(np.isfinite(single), kept.view(np.float32), single)


def is_rounded(numbers: np.ndarray) -> bool:
    """Say whether :func:`rounded` changes a column. Bounds of filters are then rounded as well."""
    return not np.array_equal(_single(numbers).astype(float), numbers, equal_nan=True)


def _single(numbers: np.ndarray) -> np.ndarray:
    # Beyond float32: infinite in the page, and not drawn
    with np.errstate(over="ignore", under="ignore"):
        return np.asarray(numbers).astype(np.float32)


def strongest_pairs(explanation: ExplanationData) -> list[list[int]]:
    if explanation.sets is None or explanation.set_values is None:
        return []
    mean = np.abs(explanation.set_values).mean(axis=0).reshape(len(explanation.sets), -1).max(axis=1)
    strength = np.zeros(explanation.n_players)
    for members, value in zip(explanation.sets, mean.tolist(), strict=True):
        if len(members) == 2:
            strength[list(members)] += value
    strongest = set(np.argsort(-strength, kind="stable")[:_PAIRED].tolist())
    return [[*members, s] for s, members in enumerate(explanation.sets) if len(members) == 2 and strongest.issuperset(members)]


def players_of(pairs: list[list[int]]) -> list[int]:
    return sorted({j for first, second, _ in pairs for j in (first, second)})


def tiles(explanation: ExplanationData, pairs: list[list[int]]) -> list[list[dict[str, Any]]]:
    """Return the matrix of mean magnitudes of the chart, output by output."""
    if not pairs or explanation.set_values is None:
        return []
    mean = np.abs(explanation.set_values[:, [s for _, _, s in pairs]]).mean(axis=0).reshape(len(pairs), -1)
    place = {j: where for where, j in enumerate(players_of(pairs))}
    names = [_short(name) for name in explanation.feature_names]
    return [
        [
            {
                "pair": p,
                "j": j,
                "k": k,
                "first": place[j],
                "second": place[k],
                "share": value / largest,
                "text": f"{value:.2g}",
                "said": f"{names[j]} and {names[k]}: {value:.2g}",
            }
            for p, ((first, second, _), value) in enumerate(zip(pairs, values.tolist(), strict=True))
            for j, k in ((first, second), (second, first))
        ]
        for values in mean.T
        for largest in [float(values.max()) or 1.0]
    ]

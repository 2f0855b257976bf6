"""Habits of shap are answered by one table, which is held against shap's own public names."""

import inspect

import numpy as np
import pytest
import shap
from sklearn.linear_model import Ridge

import exactshap
from exactshap.errors import UnknownNameError
from exactshap.results.data import called_here, keyword_here
from explanation_factory import linear

X = np.random.default_rng(0).normal(size=(30, 3))
MODEL = Ridge().fit(X, X[:, 0])
PICTURES = ["waterfall", "beeswarm", "bar", "scatter", "shape", "heatmap", "violin", "intervals", "decision"]
PICTURES += ["image", "text", "interactions"]
INSIDE = {"Any", "NoReturn", "UnsupportedModule", "have_matplotlib", "matplotlib", "other", "unsupported"}  # no habits


def public(holder):
    return {name for name in dir(holder) if not name.startswith("_")} - INSIDE


def words(*functions):
    found = {name for function in functions for name in inspect.signature(function).parameters}
    return found - {"self", "args", "kwargs", "model", "X", "shap_values"}


@pytest.mark.peer
def test_every_public_name_of_shap_is_here_or_has_an_answer():
    for name in public(shap):
        if not hasattr(exactshap, name):
            with pytest.raises(AttributeError, match=r"module '?exactshap'? has no attribute '\w+'[.:] \w"):
                getattr(exactshap, name)
    explanation, explainer = linear(X), exactshap.Explainer(MODEL, X)
    holders = {
        "Explanation": (shap.Explanation, explanation, set()),
        "Explainer": (shap.TreeExplainer, explainer, set()),
        "plot": (shap.plots, explanation.plot, {"benchmark", "colors"}),
    }
    for holder, (theirs, ours, left_out) in holders.items():
        names = public(theirs) - left_out
        assert [name for name in names if not hasattr(ours, name) and not called_here(holder, name)] == []


@pytest.mark.peer
def test_every_keyword_of_shaps_calls_and_pictures_is_here_or_has_an_answer():
    call = words(exactshap.Explainer.__call__)
    theirs = words(
        shap.Explainer.__call__,
        shap.TreeExplainer.__call__,
        shap.TreeExplainer.shap_values,
        shap.KernelExplainer.shap_values,
        shap.PermutationExplainer.__call__,
    ) | {"nsamples", "l1_reg", "silent", "gc_collect"}  # of KernelExplainer, which takes them as **kwargs
    assert [word for word in theirs - call if not keyword_here(word)] == []
    for name in ("waterfall", "beeswarm", "bar", "scatter", "heatmap", "violin"):
        ours, theirs = getattr(linear(X).plot, name), getattr(shap.plots, name)
        assert [word for word in words(theirs) - words(ours) if not keyword_here(word, picture=True)] == [], name
        for word in words(theirs) - words(ours):
            with pytest.raises(TypeError, match=rf"{name}\(\) has no keyword '{word}': \w"):
                ours(**{word: None})


def test_every_picture_answers_the_keywords_of_shaps():
    explanation = linear(X)
    pictures = [getattr(explanation.plot, name) for name in PICTURES]
    pictures += [explanation.compare(explanation, drift=False).plot, explanation.by(0).plot]
    pictures += [exactshap.decompose_mmd(X[:9], X[9:]).plot.bar]
    for picture in pictures:
        with pytest.raises(TypeError, match=rf"{picture.__name__}\(\) has no keyword 'show': pictures return their axes"):
            picture(show=False)


def test_the_interpreter_adds_no_guess_to_an_answer():
    explanation, explainer = linear(X), exactshap.Explainer(MODEL, X)
    for holder, name in ((explanation, "base_values"), (explainer, "shap_values"), (explanation.plot, "force")):
        with pytest.raises(AttributeError) as answer:
            getattr(holder, name)
        assert answer.value.obj is None  # a traceback guesses from the names of this object


@pytest.mark.parametrize("word", ["nsamples", "max_evals", "check_additivity", "budget", "interactions", "silent"])
def test_words_of_a_call_are_answered(word):
    explainer = exactshap.Explainer(MODEL, X)
    with pytest.raises(TypeError, match=rf"explainer\(X\) has no keyword '{word}': \w"):
        explainer(X, **{word: 1})
    with pytest.raises(TypeError, match="nonsense"):
        explainer(X, nonsense=1)


SETTINGS = {
    "data": "It is called 'background' here",
    "masker": "background",
    "model_output": "It is called 'output' here",
    "feature_perturbation": "It is called 'value_function' here",
    "nsamples": "It is called 'budget' here",
    "bg_w": "background_weights",
    "check_additivity": "on_inexact='warn'",
    "order": r"Pass it with the rows: explainer\(X, order=...\)",
    "max_order": "'order'",
    "link": "unit",
    "algorithm": r"\w",
    "seed": r"\w",
}


def total(rows):
    return rows.sum(axis=1)


@pytest.mark.parametrize(
    ("model", "word"),
    [(total, word) for word in SETTINGS] + [(MODEL, word) for word in SETTINGS if word != "nsamples"],  # exact: no budget
)
def test_settings_of_other_libraries_are_answered(model, word):
    with pytest.raises(UnknownNameError, match=rf"no setting '{word}'\. .*{SETTINGS[word]}"):
        exactshap.Explainer(model, X, **{word: None})
    for word, ours in (("marginal", "interventional"), ("conditional", "observational")):
        with pytest.raises(UnknownNameError, match=f"It is called '{ours}' here"):
            exactshap.Explainer(MODEL, value_function=word)


NAMES = [
    (exactshap, "TreeExplainer", r"There is one for all models: exactshap.Explainer\(model, background\)"),
    (exactshap, "load", r"exactshap.Explanation.load\(path\)"),
    (exactshap.Explainer(MODEL, X), "shap_values", r"It is explainer\(X\).values here"),
    (exactshap.Explainer(MODEL, X), "nothing", "'nothing'"),
    (linear(X), "base_values", "no attribute 'base_values'. It is called 'baseline' here; explanation.to_shap"),
    (linear(X), "shap_values", "no attribute 'shap_values'. It is called 'values' here; explanation.to_shap"),
    (linear(X), "nonsense", "no attribute 'nonsense'"),
    (linear(X).plot, "summary", "no attribute 'summary'. It is called 'beeswarm' here; explanation.to_shap"),
    (linear(X).plot, "force", r"no attribute 'force': plot.*waterfall\(i\).*explanation.to_shap\(\)"),
]


@pytest.mark.parametrize(("holder", "name", "words"), NAMES, ids=[name for _, name, _ in NAMES])
def test_names_of_other_libraries_are_answered(holder, name, words):
    with pytest.raises(AttributeError, match=words):
        getattr(holder, name)


def test_a_colour_is_a_feature_and_not_an_explanation():
    explanation = linear(X)
    with pytest.raises(TypeError, match=r"named or numbered. Got Explanation. .*color='sex'"):
        explanation.plot.scatter(0, color=explanation)


def test_signatures_stay_readable():
    assert list(inspect.signature(exactshap.Explainer.__call__).parameters) == ["self", "X", "index", "order", "offset"]
    assert "ax" in inspect.signature(linear(X).plot.bar).parameters


@pytest.mark.parametrize(
    ("name", "answer"), [("to_pandas", "explanation.to_frame"), ("feature_importances_", "explanation.importance")]
)
def test_habits_of_other_packages_are_answered_by_a_call_that_exists(name, answer):
    with pytest.raises(AttributeError, match=answer):
        getattr(linear(X), name)
    assert callable(getattr(linear(X), answer.split(".")[1]))

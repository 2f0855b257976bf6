"""Map names of shap and acronyms of shapiq to the names of this package."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, TypeVar

Call = TypeVar("Call", bound=Callable[..., Any])

_CERTIFIED = "every explanation is checked by itself; see explanation.certificate()"
_BUDGET = "how many coalitions a row may cost is a setting: Explainer(model, background, budget=...)"
_BACKGROUND = (
    "reference rows are passed as they are: Explainer(model, background), all of them used, with background_weights= if need be"
)
_OWN_PICTURE = "shap draws its own from explanation.to_shap()"

_MODULE = {  # of shap itself
    "Cohorts": "explanation.by(column) compares groups of rows",
    "kmeans": f"{_BACKGROUND}; sklearn.cluster.KMeans gives rows and weights",
    "sample": f"{_BACKGROUND}; X.sample(100) draws some",
    "maskers": f"{_BACKGROUND}; how features are removed is value_function=, players in groups are groups=",
    "links": 'the unit is output= of Explainer: "probability", or the log-odds by default',
    "datasets": "sklearn.datasets has such data",
    "plots": "pictures are methods: explanation.plot.waterfall(0)",
    "utils": "pictures, checks and frames are methods of Explainer and Explanation",
    "models": "functions that return several labels or scores are explained as they are",
    "explainers": "there is one for all models: exactshap.Explainer(model, background)",
    "approximate_interactions": "explainer(X, index='k-sii', order=2).interactions",
    "initjs": "pictures need no scripts",
    "getjs": "pictures need no scripts",
    "save_html": "explanation.report(path)",
    "actions": "there are no actions here; exactshap.app shows what a changed row would be",
    "ActionOptimizer": "there are no actions here; exactshap.app shows what a changed row would be",
    "summary_plot": "explanation.plot.beeswarm(), or explanation.plot.bar()",
    "dependence_plot": "explanation.plot.scatter(feature)",
    "force_plot": "explanation.plot.waterfall(i)",
    "waterfall_plot": "explanation.plot.waterfall(i)",
    "bar_plot": "explanation.plot.bar()",
    "heatmap_plot": "explanation.plot.heatmap()",
    "violin_plot": "explanation.plot.violin()",
    "decision_plot": "explanation.plot.decision(), or explanation.plot.waterfall(i) of one row",
    "multioutput_decision_plot": "explanation.plot.waterfall(i, output=name) for each output",
    "group_difference_plot": "explanation.by(column).plot()",
    "monitoring_plot": "explanation.compare(other).plot()",
    "embedding_plot": _OWN_PICTURE,
    "partial_dependence_plot": "explanation.plot.scatter(feature) shows values; sklearn.inspection has partial dependence",
    "image_plot": "explanation.plot.image(i, shape)",
    "text_plot": "explanation.plot.text(i, words)",
}
_RESULT = {
    "base_values": "baseline",
    "expected_value": "baseline",
    "shap_values": "values",
    "error_std": "std_error",
    "display_data": "data",
    "plots": "plot",
    "summary": "beeswarm",
    "dependence": "scatter",
}
_RESULT_WAYS = {  # what is no attribute of another name
    "shape": "values have one: explanation.values.shape",
    "argsort": "explanation.ranking() sorts the players",
    "flip": "explanation.ranking() sorts the players",
    "max": "explanation.abs().max() has each player's largest",
    "min": "explanation.abs().min() has each player's smallest",
    "sum": "explanation.values.sum(axis=1) has that of each row",
    "percentile": "numpy takes the values: np.percentile(explanation.values, 95, axis=0)",
    "identity": "explanation.values are the values as they are",
    "sample": "rows are selected: explanation[rows]",
    "hstack": "values are arrays: np.hstack([one.values, other.values])",
    "cohorts": "explanation.by(column) compares groups of rows",
    "hclust": "explanation.plot.heatmap() orders rows by their values",
    "clustering": "players in groups are groups= of Explainer",
    "hierarchical_values": "semivalues.owen({...}) gives values within nested groups",
    "instance_names": "rows have the index of explanation.data",
    "output_indexes": "outputs are explanation.output(name)",
    "lower_bounds": "std_error has the standard errors of sampled values; plot.intervals() draws intervals",
    "upper_bounds": "std_error has the standard errors of sampled values; plot.intervals() draws intervals",
    "main_effects": "explainer(X, index='k-sii', order=2).interactions has them on its diagonal",
}
_PICTURES = {  # names of pictures in shap -> the same picture here
    "force": "plot.waterfall(i) shows the same numbers as bars with their names",
    "embedding": _OWN_PICTURE,
    "group_difference": "explanation.by(column).plot() compares groups",
    "image_to_text": _OWN_PICTURE,
    "monitoring": "explanation.compare(other).plot() compares two samples",
    "partial_dependence": "plot.scatter(feature) shows values; sklearn.inspection has partial dependence",
    "initjs": "pictures need no scripts",
}
_EXPLAINER = {
    "shap_values": "It is explainer(X).values here",
    "shap_interaction_values": "It is explainer(X, index='k-sii', order=2).interactions here",
    "expected_value": "It is explainer(X).baseline here",
    "explain_row": "It is explainer(X[:1]) here",
    "save": "Models are saved by their own libraries, results by explanation.save(path)",
    "load": "Models are loaded by their own libraries, results by Explanation.load(path)",
    "assert_additivity": _CERTIFIED[0].upper() + _CERTIFIED[1:],
    "supports_model_with_masker": "explainer.plan(X) says what a model will cost",
}
_WORDS = {  # keywords of shap's calls and pictures
    "nsamples": _BUDGET,
    "npermutations": _BUDGET,
    "max_evals": _BUDGET,
    "budget": _BUDGET,
    "check_additivity": _CERTIFIED,
    "approximate": "values are exact where a model has structure; plan(X) says where",
    "interactions": "pairs need index='k-sii', order=2",
    "main_effects": "pairs and single effects need index='k-sii', order=2",
    "error_bounds": "sampled values carry explanation.std_error",
    "l1_reg": "no value is set to 0 by a penalty",
    "gc_collect": "memory_limit= of Explainer bounds the memory",
    "keep_index": "the index of a frame is kept",
    "batch_size": "memory_limit= of Explainer bounds the rows solved at a time",
    "outputs": "output= of Explainer chooses one output or 'all'",
    "model_output": "output= of Explainer chooses the unit or one output",
    "link": 'output= of Explainer chooses the unit: "probability", or the log-odds by default',
    "linearize_link": "output= of Explainer chooses the unit",
    "silent": "progress=False of Explainer shows none",
    "y": "decompose_loss and decompose_r2 split a loss over the features",
    "tree_limit": "n_stages= of exactshap.trees.load keeps the first rounds",
    "from_call": "explainer(X) returns an Explanation by itself",
    "data": _BACKGROUND,
    "masker": _BACKGROUND,
    "feature_perturbation": "value_function= of Explainer says how features are removed",
    "algorithm": "the method follows from the model; plan(X) names it",
    "seed": "random_state= of Explainer is the seed of sampling",
    "output_names": "output_names= is a setting of functions: Explainer(function, background, output_names=[...])",
    "show": "pictures return their axes and show nothing; call matplotlib.pyplot.show()",
    "order": "features are sorted by mean magnitude; explanation.ranking() has their order",
    "sort": "features are sorted by mean magnitude",
    "feature_order": "features are sorted by mean magnitude",
    "instance_order": "rows with similar values stand side by side",
    "feature_values": "features are sorted by mean magnitude",
    "features": "data and names are those of the explanation",
    "feature_names": "data and names are those of the explanation",
    "clustering": "players in groups are groups= of Explainer",
    "clustering_cutoff": "players in groups are groups= of Explainer",
    "cluster_threshold": "players in groups are groups= of Explainer",
    "plot_type": "plot has a method for each kind of picture",
}
_STYLE = frozenset(  # of pictures: set on the axes that they return
    [
        "alpha",
        "axhline_lw",
        "axis_color",
        "class_inds",
        "class_names",
        "cmap",
        "color",
        "color_bar",
        "color_bar_label",
        "color_bar_label_size",
        "color_bar_tick_size",
        "dot_size",
        "group_remaining_features",
        "hist",
        "layered_violin_max_num_bins",
        "log_scale",
        "overlay",
        "plot_size",
        "plot_width",
        "s",
        "show_data",
        "title",
        "use_log_scale",
        "x_jitter",
        "xmax",
        "xmin",
        "ylabel",
        "ymax",
        "ymin",
    ]
)
SHAPIQ_NAMES = {  # index -> shapiq's acronyms of order 1 and above; "" where it has none
    "shapley": ("SV", "SII"),
    "banzhaf": ("BV", "BII"),
    "banzhaf-interaction": ("BV", "BII"),
    "sii": ("SV", "SII"),
    "k-sii": ("SV", "k-SII"),
    "stii": ("SV", "STII"),
    "fsii": ("SV", "FSII"),
    "chaining": ("SV", "CHII"),
    "moebius": ("", "Moebius"),
}


def called_here(owner: str, name: str) -> str | None:
    """Return the name here of an attribute of shap's, None if unknown.

    >>> called_here("Explanation", "base_values")
    "Explanation has no attribute 'base_values'. It is called 'baseline' here; explanation.to_shap() gives shap's own object."
    >>> called_here("Explainer", "expected_value")
    "Explainer has no attribute 'expected_value'. It is explainer(X).baseline here."
    """
    start = f"{owner} has no attribute {name!r}"
    if owner == "exactshap":
        return f"module {start}: {_MODULE[name]}." if name in _MODULE else None
    if owner == "Explainer":
        return f"{start}. {_EXPLAINER[name]}." if name in _EXPLAINER else None
    if owner == "plot" and name in _PICTURES:
        own = "" if _OWN_PICTURE in _PICTURES[name] else f"; {_OWN_PICTURE}"
        return f"{start}: {_PICTURES[name]}{own}."
    if name in _RESULT:
        return f"{start}. It is called {_RESULT[name]!r} here; explanation.to_shap() gives shap's own object."
    return f"{start}: {_RESULT_WAYS[name]}." if name in _RESULT_WAYS else None


def refuse_name(owner: str, name: str) -> None:
    """Raise an error with the name here of an attribute of shap's."""
    if text := called_here(owner, name):
        raise AttributeError(text, name=name)  # named, so that a traceback adds no guess


def keyword_here(word: str, *, picture: bool = False) -> str | None:
    """Return the equivalent here of a keyword of shap's, None if unknown.

    >>> keyword_here("check_additivity")
    'every explanation is checked by itself; see explanation.certificate()'
    """
    if picture and word in _STYLE:
        return f"set it on the axes that the picture returns; {_OWN_PICTURE}"
    return _WORDS.get(word)


def answers_keywords(function: Call, *, picture: bool = False) -> Call:
    """Return a function that answers keywords of shap's with their equivalents."""
    known = frozenset(inspect.signature(function).parameters)
    called = "explainer(X)" if function.__name__ == "__call__" else f"{function.__name__}()"

    @functools.wraps(function)
    def checked(*arguments: Any, **keywords: Any) -> Any:
        for word in keywords.keys() - known:
            if text := keyword_here(word, picture=picture):
                raise TypeError(f"{called} has no keyword {word!r}: {text}.")
        return function(*arguments, **keywords)

    return checked  # type: ignore[return-value]

"""BART of stochtree as trees by arrays: each draw of the posterior is an output."""

import json

import numpy as np

from exactshap.trees import RawTree, TreeModel, build


def bart_draws(model):
    """Return the mean forest of a fitted BARTModel of numeric columns."""
    dump = json.loads(model.forest_container_mean.dump_json_string())
    trees, draws = [], dump["num_samples"]
    for draw in range(draws):
        forest = dump[f"forest_{draw}"]
        for number in range(forest["num_trees"]):
            tree = forest[f"tree_{number}"]
            assert not tree["has_categorical_split"], "categories: encode them as numbers before the fit"
            left, right = np.array(tree["left"]), np.array(tree["right"])
            value = model.y_std * np.array(tree["leaf_value"])  # the model standardizes its target
            trees.append(RawTree(np.array(tree["split_index"]), np.array(tree["threshold"]), left, right, value, output=draw))
    constant = np.full(draws, model.y_bar)
    flat = build(trees, n_features=model.num_covariates, constant=constant, less_equal=True, single_precision=False)
    return TreeModel(
        flat,
        library="stochtree",
        name="BARTModel",
        unit="target",
        output_names=tuple(f"draw {draw}" for draw in range(draws)),
        single_output=False,
        tree_output=np.array([tree.output for tree in trees]),
        tree_stage=np.zeros(len(trees), int),
    )

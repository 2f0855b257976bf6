"""A reader in 50 lines: the response of a log-linear model, exp(b + sum_j w_j x_j), as a product game with one term."""

import copy
from dataclasses import replace

import numpy as np

from exactshap.frames import Table
from exactshap.games import ProductGame
from exactshap.readers import Reader, Request, Traits, register


class LogLinear:
    """Somebody's model."""

    def __init__(self, weights, bias):
        self.weights, self.bias = np.asarray(weights, float), float(bias)

    def predict(self, X):
        return np.exp(np.asarray(X, float) @ self.weights + self.bias)


class LogLinearReader(Reader):
    """exp(b) times the product over columns of exp(w_j x_j): players outside take the factors of the background rows."""

    def __init__(self, model: LogLinear, request: Request) -> None:
        self.model = model
        value_functions = ("interventional", "baseline")
        self.traits = Traits.of(model, request, n_columns=len(model.weights), value_functions=value_functions, unit="response")

    def predict(self, X: Table) -> np.ndarray:
        return self.model.predict(X.numeric())  # the model's own path: the residual is a real check

    def game(self, X: Table) -> ProductGame:
        def factors(rows):
            return np.exp(np.stack([rows[:, c] @ self.model.weights[list(c)] for c in self.traits.players], axis=1))

        inside, outside = factors(X.numeric()), factors(self.traits.background.numeric())
        return ProductGame([np.exp(self.model.bias)], inside[:, None, :], outside[:, None, :], weights=self.traits.weights)

    def bind(self, row: Table) -> "LogLinearReader":
        bound = copy.copy(self)  # the same reading with one reference row: the certificate solves hybrids of it
        bound.traits = replace(self.traits, background=row, weights=None)
        return bound


def read(model: LogLinear, request: Request) -> LogLinearReader:
    request.refuse_options(owner="LogLinear")  # settings that would be ignored
    request.refuse_outputs(("output",), owner="LogLinear")
    return LogLinearReader(model, request)


register(f"{__name__}.LogLinear", __name__)

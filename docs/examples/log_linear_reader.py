"""A reader in 45 lines: the response of a log-linear model, exp(b + sum_j w_j x_j), as a product game with one term."""

import copy

import numpy as np

from exactshap.frames import Table
from exactshap.games import ProductGame
from exactshap.readers import Reader, Request, choose_value_function, names_of, players_of, register


class LogLinear:
    """Somebody's model."""

    def __init__(self, weights, bias):
        self.weights, self.bias = np.asarray(weights, float), float(bias)

    def predict(self, X):
        return np.exp(np.asarray(X, float) @ self.weights + self.bias)


class LogLinearReader(Reader):
    """exp(b) times the product over columns of exp(w_j x_j): players outside take the factors of the background rows."""

    value_functions = ("interventional", "baseline")

    def __init__(self, model: LogLinear, request: Request) -> None:
        self.model, self.model_name, self.unit = model, "LogLinear", "response"
        self.output_names, self.single_output, self.fitted_names = ("response",), True, None
        self.feature_names = names_of(request, None, len(model.weights), self.model_name)
        self.players, self.player_names = players_of(request, self.feature_names)
        self.value_function = choose_value_function(request, self.value_functions, None, owner=self.model_name)
        self.background, self.weights = request.background, request.weights

    def predict(self, X: Table) -> np.ndarray:
        return self.model.predict(X.numeric())  # the model's own path: the residual is a real check

    def game(self, X: Table) -> ProductGame:
        factors = lambda rows: np.exp(np.stack([rows[:, c] @ self.model.weights[list(c)] for c in self.players], axis=1))  # noqa: E731
        inside, outside = factors(X.numeric()), factors(self.background.numeric())
        return ProductGame([np.exp(self.model.bias)], inside[:, None, :], outside[:, None, :], weights=self.weights)

    def bind(self, row: Table) -> "LogLinearReader":
        bound = copy.copy(self)  # the same reading with one reference row: the certificate solves hybrids of it
        bound.background, bound.weights = row, None
        return bound


def read(model: LogLinear, request: Request) -> LogLinearReader:
    return LogLinearReader(model, request)


register(f"{__name__}.LogLinear", __name__)

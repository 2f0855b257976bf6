"""A reader of a chain: an exponential machine, f(x) = (A_1 + x_1 B_1) (A_2 + x_2 B_2) ..., as a tensor train."""

import functools

import numpy as np

from exactshap.frames import Table
from exactshap.games import TensorTrainGame
from exactshap.readers import Reader, Request, choose_value_function, names_of, players_of, register


class ExponentialMachine:
    """Somebody's model: all 2^d products of columns, with weights that a chain of small matrices holds (Novikov et al. 2016)."""

    def __init__(self, constants, slopes):
        self.constants, self.slopes = (
            constants,
            slopes,
        )  # d arrays of shape (rank, rank), the first (1, rank), the last (rank, 1)

    def predict(self, X):
        state = np.ones((len(X), 1))
        for column, constant, slope in zip(np.asarray(X, float).T, self.constants, self.slopes, strict=True):
            state = state @ constant + column[:, None] * (state @ slope)
        return state[:, 0]


class ExponentialMachineReader(Reader):
    """One matrix for each column, of the row inside and of the background rows outside."""

    value_functions = ("interventional", "baseline")

    def __init__(self, model: ExponentialMachine, request: Request) -> None:
        self.model, self.model_name, self.unit = model, "ExponentialMachine", "output"
        self.output_names, self.single_output, self.fitted_names = ("output",), True, None
        self.feature_names = names_of(request, None, len(model.slopes), self.model_name)
        self.players, self.player_names = players_of(request, self.feature_names)
        self.value_function = choose_value_function(request, self.value_functions, None, owner=self.model_name)
        self.background, self.weights = request.background, request.weights

    def predict(self, X: Table) -> np.ndarray:
        return self.model.predict(X.numeric())

    def game(self, X: Table) -> TensorTrainGame:
        rows = (X.numeric(), self.background.numeric())
        return TensorTrainGame(*([self._matrix(x, columns) for columns in self.players] for x in rows), self.weights)

    def _matrix(self, x: np.ndarray, columns: tuple[int, ...]) -> np.ndarray:
        """The product of a player's matrices: its columns must follow one another in the chain."""
        if list(columns) != list(range(columns[0], columns[-1] + 1)):
            raise ValueError(f"A group must be a piece of the chain, got columns {columns}")
        cores = [self.model.constants[j] + x[:, j, None, None] * self.model.slopes[j] for j in columns]
        return functools.reduce(np.matmul, cores)


def read(model: ExponentialMachine, request: Request) -> ExponentialMachineReader:
    return ExponentialMachineReader(model, request)


register(f"{__name__}.ExponentialMachine", __name__)

"""Read linear models behind approximate kernel maps: both together are kernel expansions again."""

from __future__ import annotations

import functools

import numpy as np

from exactshap._runtime.types import Foreign, Model
from exactshap.frames import Table
from exactshap.games import ProductGame
from exactshap.kernels import from_sklearn
from exactshap.readers import Outputs, Reader, Request, Rounding, Traits, fitted_names, sklearn_name
from exactshap.readers.kernel_machines._expansion import expand
from exactshap.readers.kernel_machines._kernel_machine import KernelReader, sampled, with_outer_response
from exactshap.readers.responses import HybridScores, RowScores, of_score


def read(feature_map: Model, linear: Model, parts: Foreign, request: Request, model: Model) -> Reader:
    """Read ``Nystroem + linear`` or ``RBFSampler + linear``.

    The first is a kernel machine on the components, the second a sum of cosines.

    ``parts`` are those of the linear model: coefficients (n_components, n_outputs), intercept, output names, unit and method;
    ``model`` is the pipeline of both, which predicts.
    """
    if sklearn_name(feature_map) == "Nystroem":
        return _nystroem(model, request, feature_map, linear, parts)
    if request.outer_response is None:
        return FourierReader(feature_map, linear, parts, request, model)
    score = FourierReader(feature_map, linear, parts, of_score(request), model)
    return sampled(model, score, HybridScores(score.hybrids), request)


def _chosen(linear: Model, parts: Foreign, request: Request) -> tuple[Outputs, np.ndarray, np.ndarray]:
    """Return the explained outputs, their coefficients (n_outputs, n_components) and intercepts (n_outputs,)."""
    outputs = Outputs.of(parts.output_names, request.output, owner=type(linear).__name__)
    coefficients, intercept = np.transpose(parts.coefficients), parts.intercept
    return outputs, np.asarray(coefficients, float)[outputs.numbers], np.asarray(intercept, float)[outputs.numbers]


@with_outer_response
def _nystroem(model: Model, request: Request, feature_map: Model, linear: Model, parts: Foreign) -> Reader:
    outputs, coefficients, intercept = _chosen(linear, parts, request)
    named = {"gamma": feature_map.gamma, "coef0": feature_map.coef0, "degree": feature_map.degree}
    parameters = named | (feature_map.kernel_params or {})
    kernel = from_sklearn(
        feature_map.kernel, feature_map.components_.shape[1], **{k: v for k, v in parameters.items() if v is not None}
    )
    whitener = np.asarray(feature_map.normalization_, float)
    # landmarks that nearly span each other have huge whiteners: their products with the coefficients cancel. Each component of
    # the map is rounded on its own, so that their errors add up in squares
    dual, height = (coefficients @ whitener).T, np.sqrt(coefficients**2 @ whitener**2).T
    call = outputs.call(parts.method)
    return KernelReader(
        feature_map,
        request,
        expand(kernel, feature_map.components_, dual, intercept, magnitudes=height, cancels=True),
        outputs,
        unit=parts.unit,
        own_call=call,
        predict=functools.partial(call.in_double, model),
        epsilon=_epsilon(feature_map.components_),
    )


def _epsilon(fitted: Foreign) -> float:
    """Return the rounding unit of a map: one fitted on single-precision rows computes in that precision in a pipeline."""
    return float(np.finfo(np.float32 if fitted.dtype == np.float32 else np.float64).eps)


class FourierReader(Reader):
    r"""Read random Fourier features as products of one-column factors.

    A cosine of a sum is the real part of such a product.

    .. math:: \cos\Bigl(\sum_j w_{jl} x_j + \beta_l\Bigr) = \mathrm{Re}\; e^{i \beta_l} \prod_j e^{i w_{jl} x_j}
    """

    def __init__(self, feature_map: Model, linear: Model, parts: Foreign, request: Request, pipeline: Model) -> None:
        outputs, coefficients, self.intercept = _chosen(linear, parts, request)
        request.refuse_options(owner=type(feature_map).__name__)
        self.frequencies, self._pipeline = np.asarray(feature_map.random_weights_, float), pipeline
        self._call = outputs.call(parts.method)
        self.traits = Traits.of(
            feature_map,
            request,
            fitted_names=fitted_names(feature_map),
            n_columns=len(self.frequencies),
            output_names=outputs.names,
            single_output=outputs.single,
            unit=parts.unit,
            own_call=self._call,
            rounding=Rounding(float(self.frequencies.shape[1]), _epsilon(feature_map.random_weights_)),
        )
        amplitude = np.sqrt(2.0 / self.frequencies.shape[1])
        self.coefficients = amplitude * coefficients * np.exp(1j * np.asarray(feature_map.random_offset_, float))
        self._absent = self._factors(self.traits.reference.numeric(what="background"))

    def _phases(self, X: np.ndarray) -> np.ndarray:
        """Return the sums w_jl x_j of each player's columns, (n_rows, n_terms, n_players)."""
        phases = np.zeros((len(X), self.frequencies.shape[1], self.traits.n_players))
        for p, columns in enumerate(self.traits.players):
            # A matrix product would give a row other bits alone than in a batch
            for j in columns:
                phases[:, :, p] += X[:, j, None] * self.frequencies[j]
        return phases

    def _factors(self, X: np.ndarray) -> np.ndarray:
        return np.exp(1j * self._phases(X))

    def predict(self, X: Table) -> np.ndarray:
        return self._call.in_double(self._pipeline, X)

    def bind(self, row: Table) -> FourierReader:
        bound = self._rebound(row)
        bound._absent = self._factors(row.numeric(what="background"))
        return bound

    def game(self, X: Table) -> ProductGame:
        c = self.coefficients[0] if self.traits.single_output else self.coefficients.T
        return ProductGame(c, self._factors(X.numeric()), self._absent, weights=self.traits.weights, constant=self.intercept)

    def hybrids(self, X: Table) -> RowScores:
        """Return the scores of one row's hybrids, for what a link makes of them."""
        absent = self._phases(self.traits.reference.numeric(what="background"))
        steps, base = self._phases(X.numeric()) - absent, absent.sum(axis=2)
        c, (n_background, n_terms) = self.coefficients, base.shape

        def scores(masks: np.ndarray) -> np.ndarray:
            moved = steps.reshape(-1, masks.shape[1]) @ masks.T.astype(float)
            phases = base[:, :, None] + moved.reshape(n_background, n_terms, -1)
            return np.asarray(c.real @ np.cos(phases) - c.imag @ np.sin(phases) + self.intercept[:, None])

        return RowScores(scores, np.flatnonzero(steps.any(axis=(0, 1))).tolist())

    def memory(self, n_rows: int, order: int) -> float:
        return 16.0 * 4 * n_rows * self.frequencies.shape[1] * self.traits.n_players + super().memory(n_rows, order)

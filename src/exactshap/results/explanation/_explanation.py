"""Define the immutable explanation of a batch of rows."""

from __future__ import annotations

import functools
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from exactshap._runtime.optional import MethodOnFirstUse
from exactshap._runtime.words import fields_html, fields_text
from exactshap.errors import InputError
from exactshap.results import data as forms
from exactshap.results.data import ExplanationData, NamedValues, facts, headline, refuse_name

if TYPE_CHECKING:
    from exactshap.results import comparison
    from exactshap.results.explanation import _storage
    from exactshap.results.plots import PlotAccessor
    from exactshap.results.reasons import find_reasons
    from exactshap.results.report import write_card, write_report


@dataclass(frozen=True, kw_only=True, eq=False, repr=False)
class Explanation(ExplanationData):
    r"""Hold a batch of rows' values with everything needed to judge them. It computes nothing.

    :func:`exactshap.explain` and :class:`exactshap.Explainer` return one. What people do with it:

    - judge it: ``print(explanation)``, :meth:`certificate`, ``explanation.std_error``;
    - look at it: ``explanation.plot.waterfall(0)``, ``explanation.plot.beeswarm()``;
    - select: ``explanation[:10]``, ``explanation[rows, "age"]``, ``explanation.output("class b")``;
    - summarise: :meth:`importance`, :meth:`ranking`, ``explanation.abs().mean()``;
    - compare: :meth:`compare` with another one, :meth:`by` the groups of its rows;
    - give reasons: :meth:`reasons`;
    - send it: :meth:`report`, :meth:`model_card`;
    - keep it: :meth:`save`, :meth:`to_frame`; hand it on: :meth:`to_shap`, :meth:`to_shapiq`.

    Arrays have the shape ``(n_rows, n_players)`` for one output and ``(n_rows, n_players, n_outputs)`` for several;
    ``baseline`` has ``(n_rows,)`` or ``(n_rows, n_outputs)``. For an efficient index

    .. math:: f(x_i) = \mathrm{baseline}_i + \sum_j \mathrm{values}_{ij} + \mathrm{residual}_i.

    Attributes
    ----------
    values : array of shape (n_rows, n_players[, n_outputs])
        Order-1 values of the index, in the unit of the model output.
    baseline : array of shape (n_rows[, n_outputs])
        v(empty).
    prediction : array of shape (n_rows[, n_outputs])
        The model's own prediction.
    residual : array of shape (n_rows[, n_outputs])
        ``prediction - baseline - sum(values)`` for efficient indices (the sum over all sets for order > 1),
        ``prediction - v(D)`` otherwise.
    tolerance : float or array of shape (n_rows,)
        Largest residual that rounding can explain.
    feature_names : sequence of str
        Names of the players: columns, or groups of columns.
    value_function : str
        Which game was played; the report says it in a sentence.
    std_error : array like ``values``, or None
        Standard errors of sampled values; None (never 0) for exact ones.
    data : table or None
        The explained rows as the user passed them: an array or a DataFrame. Cells are not copied; columns that the user's frame gets
        or replaces later are not in it.
    output_names : sequence of str, or None
        Names of the outputs; None for one output.
    index, order : str and int, default="shapley" and 1
        The question that the values answer.
    sets : sequence of tuples of int, or None
        For order > 1 the sets of players, by size and then lexicographically, beginning with all single players.
    set_values, set_std_error : array of shape (n_rows, n_sets[, n_outputs]), or None
        Values of ``sets`` and their standard errors.
    unit : str, default="response"
        Of the model output: "response", "log-odds", "margin", ...
    method, model_name : str
        How the values were computed, and what was explained.
    error_bound : float or array of shape (n_rows,), default=0.0
        A-priori bound on the quadrature error of each value.
    n_evaluations : int, default=0
        Calls of the game or model that sampling or enumeration used.
    seconds : float or None
        Wall time.
    background_size, background_hash : int and str, or None
        Of the reference rows: how many (0: joined parts with different numbers of them), and the first digits of the SHA-256 of
        their cells.
    groups : mapping of player name to a sequence of columns (numbers or names), or None
        The columns of each player that is a group.
    covariances : array of shape (n_rows, n_players, n_players[, n_outputs]), or None
        Covariance of the order-1 values under a probabilistic model (a Gaussian process), output by output.
    covariance_residual : array of shape (n_rows[, n_outputs]), or None
        The model's own variance of f(x) - baseline minus the sum of all entries of the covariance: rounding.
    set_std : array like ``set_values``, or None
        Standard deviations of all sets under a probabilistic model, for order 2.
    approximation_error : array of shape (n_rows,), or None
        Estimate of how far any v(S) of a row is off, where the game itself was approximated (low-rank embeddings).
    mask_difference, mask_tolerance : float, or None
        Largest difference of a few coalitions to the model's own predictions of hybrid rows, and what rounding explains of it; None
        where none were compared.
    n_masks : int, default=0
        Number of coalitions that were compared.
    mask_rows : sequence of int
        The rows that they belong to; none if they are of an earlier explanation or of the background.
    mask_reason : str, default=""
        Why none were compared.
    stability_bound : callable, or None
        What :meth:`stability` calls; it is not saved.

    Raises
    ------
    InputError
        If two of the arrays do not fit together; the message has both shapes.

    Examples
    --------
    >>> import numpy as np
    >>> explanation = Explanation(
    ...     values=[[1.0, 2.0]], baseline=[0.5], prediction=[3.5], residual=[0.0], tolerance=1e-12,
    ...     feature_names=["age", "bmi"], value_function="baseline", data=np.array([[40.0, 22.5]]),
    ... )
    >>> explanation.values.sum(axis=1) + explanation.baseline
    array([3.5])
    >>> explanation.certificate().passed
    True
    """

    def __reduce__(self) -> tuple[Any, ...]:
        # Made again, not filled in: arrays are checked, and read-only as before
        return functools.partial(Explanation, **{field.name: getattr(self, field.name) for field in fields(self)}), ()

    def __getattr__(self, name: str) -> Any:
        refuse_name("Explanation", name)
        return object.__getattribute__(self, name)  # raises again, whatever it was

    def stability(self, delta: ArrayLike) -> Any:
        r"""Bound the change of values for changes of columns up to ``delta``.

        .. math:: |\phi_j(x) - \phi_j(x')| \le |f| \sqrt{c\, M_\mu L_\delta}, \qquad |x_k - x'_k| \le \delta_k

        Parameters
        ----------
        delta : float or array of shape (n_features,)
            In the units of the columns.

        Returns
        -------
        stability : object with ``bound (n_outputs,)``, ``rkhs_norm (n_outputs,)``, ``functional`` and ``delta``

        Notes
        -----
        Theorem 6 of RKHS-SHAP (Chau et al. 2022) for Shapley values of kernel machines, with its constants corrected: for signed
        kernels, and for observational values, where they depend on the ridge. It is loose, and holds for all rows; where columns
        are factors themselves (linear and polynomial kernels), for the explained ones. Loaded explanations do not carry it.
        """
        if self.stability_bound is None:
            raise InputError(
                "This explanation has no stability bound",
                f"It is of {self.model_name or 'its model'} with value_function={self.value_function!r}, index {self.index!r}",
                "It exists for interventional, baseline and enumerated observational Shapley values of kernel machines by themselves, not "
                "inside pipelines (explain the last step, on transformed rows)",
            )
        return self.stability_bound(delta)

    # --- words ---------------------------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        return fields_text(f"Explanation: {headline(self)}", self.facts())

    def _repr_html_(self) -> str:
        return fields_html(f"Explanation: {headline(self)}", self.facts())

    def facts(self) -> dict[str, str]:
        """Return short texts by name that explain the numbers."""
        return facts(self)

    def cite(self) -> str:
        """Return BibTeX of the library, the value function and the method.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.svm import SVR
        >>> from exactshap import explain
        >>> X, y = load_diabetes(return_X_y=True)
        >>> print(explain(SVR().fit(X, y), X[:5]).cite().split("@misc")[1].splitlines()[0])
        {pkexshapley,
        """
        return forms.bibtex(forms.cited_by_values(self.value_function, self.method))

    # --- summaries and groups of rows ----------------------------------------------------------------------------------

    def abs(self) -> NamedValues:
        """Return the values' magnitudes by name; ``explanation.abs().mean()`` gives importances."""
        return self._named(self.values, self.feature_names).abs()

    __abs__ = abs

    def mean(self) -> NamedValues:
        """Return each player's mean value over the rows, with names."""
        return self._named(self.values, self.feature_names).mean()

    def ranking(self) -> NamedValues:
        """Return the players by decreasing mean magnitude; several outputs need ``explanation.output(name).ranking()``."""
        return self.abs().mean().sort_values(ascending=False)

    # What most explanations need none of is a third of the library's own import
    if TYPE_CHECKING:
        importance, reasons, compare, by = forms.importance, find_reasons, comparison.compare, comparison.by
        report, model_card, save = write_report, write_card, _storage.save
    else:
        importance = MethodOnFirstUse("exactshap.results.data", "importance")
        reasons = MethodOnFirstUse("exactshap.results.reasons", "find_reasons")
        compare = MethodOnFirstUse("exactshap.results.comparison", "compare")
        by = MethodOnFirstUse("exactshap.results.comparison", "by")
        report = MethodOnFirstUse("exactshap.results.report", "write_report")
        model_card = MethodOnFirstUse("exactshap.results.report", "write_card")
        save = MethodOnFirstUse("exactshap.results.explanation._storage", "save")

    # --- conversions, pictures, files ----------------------------------------------------------------------------------

    to_frame, to_shap, to_shapiq = forms.to_frame, forms.to_shap, forms.to_shapiq
    concat = classmethod(forms.concat)  # type: ignore[var-annotated]
    from_solution = classmethod(forms.from_solution)  # type: ignore[var-annotated]

    @classmethod
    def load(cls, path: str | Path, *, max_bytes: int | None = None) -> Explanation:
        """Read a file of :meth:`save` as untrusted data. A damaged or another file raises ModelFormatError.

        ``max_bytes`` bounds what is unpacked: zip entries while they are, a Parquet table's pages before they are. None: 64 times
        the size of the file, at least 256 MiB and at most 8 GiB.
        """
        from exactshap.results.explanation import _storage

        return _storage.load(path, cls, max_bytes=max_bytes)

    @property
    def plot(self) -> PlotAccessor:
        """Plots: ``waterfall(i)``, ``beeswarm()``, ``bar()``, ``scatter(feature)``, ``interactions(i)``; each takes ``ax``."""
        from exactshap.results.plots import PlotAccessor

        return PlotAccessor(self)

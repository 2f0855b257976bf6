"""Explain a model on rows, against a background."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any

import numpy as np

from exactshap._runtime.process_settings import without_lost_threads
from exactshap._runtime.progress import Progress, duration, progress_text
from exactshap._runtime.threads import using_jobs
from exactshap._runtime.types import Column, Model, TableLike
from exactshap._runtime.words import fields_html
from exactshap.errors import ExplanationWarning, InputError, InputTypeError, message, refused_beyond_memory, warn
from exactshap.explainer._certify import Certifier, together
from exactshap.explainer._changes import COMPARED_ROWS, Changes, blaming, change_message
from exactshap.explainer._offset import add_offsets, check_offsets, split_offset, without_offset
from exactshap.explainer._plan import Forecast, cut_rows, forecast
from exactshap.explainer._results import named_unit, refuse_or_warn, wrap
from exactshap.explainer._settings import aligned, check_names, check_settings, checked_names, of_shape, warn_of_number
from exactshap.explainer._solve import solve_rows, values_by_background_row
from exactshap.frames import Shape, Table, as_table, check_columns, warn_of_other_order, with_column_of
from exactshap.games import normalised_weights
from exactshap.readers import Reader, Request, read, reader_for
from exactshap.results.data import answers_keywords, counted, refuse_name, value_function_sentence
from exactshap.results.explanation import Explanation, fingerprint
from exactshap.semivalues import Hierarchy, Question, Semivalue

if TYPE_CHECKING:
    from exactshap.explainer._verify import Verification

_FEWER_ROWS = "Pass fewer rows at a time; scale.explain_dataset explains files of any size into files"
_refused_beyond_memory = refused_beyond_memory("The request", _FEWER_ROWS)


class Explainer:
    """Explain a fitted model.

    Parameters
    ----------
    model : object
        A fitted model that a reader knows (kernel machines, Gaussian processes, trees, additive models, pipelines of them),
        or a function on tables, which is then sampled.
    background : array or DataFrame of shape (n_background, n_features), default=None
        Reference rows, all of them used. One row with ``value_function="baseline"`` is a single reference point.
    value_function : str, default="auto"
        What v(S) means. "auto" is "interventional" with a background, else the family's own: "functional" for kernel machines,
        "path_dependent" for trees.
    output : int, str, "auto" or "all", default="auto"
        Which output of a model with several: a number or name. "probability" is that of a classifier in place of its score, "response" also a rate or price.
    groups : mapping of name to list of columns, default=None
        Players that are groups of columns, treated as one player exactly (not summed afterwards).
    background_weights : array of shape (n_background,), default=None
        Weights of the reference rows.
    feature_names : sequence of str, default=None
        Names for a model that was fitted without.
    shape : mapping of axis name to length or labels, default=None
        Of the rows of a function that are windows or pictures: ``{"time": 24, "variable": ["load", "wind"]}``. ``groups`` may then
        name axes: ``"variable"``, ``["time", "variable"]``, or lengths of blocks, ``{"time": 6}``. Several inputs have a name each.
    align : bool, default=False
        Reorder the columns of a frame by name instead of refusing a different order.
    n_jobs : int, default=None
        Threads, with joblib's conventions: -1 is one for each core. Results are the same bits for every value. None: blocks of
        rows go to the workers of ``joblib.parallel_config(backend=..., n_jobs=...)`` where one is active, else one thread (within a
        function that another explainer calls: the threads of that one).
    memory_limit : float, default=2**30
        Bytes of working memory of a block; rows stream in blocks under it. A request that cannot fit is refused. The result, and three
        numbers for each row and output while it is checked, come on top: :func:`exactshap.scale.explain_dataset` streams those, too.
    on_inexact : {"raise", "warn"}, default="raise"
        What happens when a residual is above its derived tolerance.
    progress : bool, callable or None, default=None
        None: a line on standard error with the time left, once the work takes more than two seconds and if that is a terminal
        or a notebook. True and False: always and never. A function is called with (rows done, rows in all).
    **options
        Settings of one model family; unknown names raise.

    Raises
    ------
    UnsupportedModelError, UnsupportedStructureError
        If no exact form is known; the message names the closest route.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> explainer = Explainer(SVR(C=10.0).fit(X, y), background=X[:50])
    >>> explanation = explainer(X[:3])
    >>> explanation.values.shape, explanation.value_function, explanation.certificate().passed
    ((3, 10), 'interventional', True)
    """

    def __init__(
        self,
        model: Model,
        background: TableLike = None,
        *,
        value_function: str = "auto",
        output: Any = "auto",
        groups: Mapping[str, Any] | str | Sequence[str] | None = None,
        background_weights: Column = None,
        feature_names: Sequence[str] | None = None,
        shape: Mapping[str, Any] | None = None,
        align: bool = False,
        n_jobs: int | None = None,
        memory_limit: float = 2.0**30,
        on_inexact: str = "raise",
        progress: Progress = None,
        **options: Any,
    ) -> None:
        check_settings(locals())
        self.align, self.n_jobs, self.memory_limit = align, n_jobs, float(memory_limit)
        self.on_inexact, self.progress = on_inexact, progress
        self.shape = None if shape is None else Shape.of(shape)
        if self.shape is not None:
            model, background = of_shape(model, self.shape), self.shape.flat(background, "background")
            groups, feature_names = self.shape.groups(groups), feature_names or self.shape.names
        # First, as readers must not see the user's own array, which may change.
        table = None if background is None else _background(background, model, align)
        if table is not None:
            warn_of_other_order(table, background_weights, "background_weights", "background")
        self._request = Request(
            background=table,
            weights=None
            if table is None or background_weights is None
            else normalised_weights(background_weights, table.n_rows),
            value_function=value_function,
            output=output,
            groups=groups,  # type: ignore[arg-type]
            feature_names=checked_names(feature_names),
            options=options,
            memory_limit=self.memory_limit,
        )
        reading = progress_text(progress, lambda _, seconds: f"reading {type(model).__name__} for {duration(seconds)}")
        with reading, np.errstate(all="ignore"):  # the certificate reports overflow
            self.reader: Reader = read(model, self._request)
        check_names(self.reader, self._request)
        warn_of_number(self.reader, output)
        self._certifier, self._changes = Certifier(self.reader), Changes(model, self._request, self.reader)
        # Explanations carry it, so that those of different backgrounds are not compared or joined by mistake.
        self._background_hash = None if table is None or self.reader.traits.compared_with is None else fingerprint(table.native)

    def __repr__(self) -> str:
        reader = self.reader
        background = "" if reader.traits.compared_with is None else f", {reader.traits.compared_with.n_rows} background rows"
        return f"Explainer({reader.traits.model_name}, value_function={reader.traits.value_function!r}, {reader.traits.n_players} players{background})"

    def _repr_html_(self) -> str:
        reader, names = self.reader, self.reader.traits.player_names
        sentence = value_function_sentence(reader.traits.value_function, has_background=reader.traits.background is not None)
        facts = {
            "value function": f"{reader.traits.value_function}. {sentence}",
            "background": "" if reader.traits.compared_with is None else counted(reader.traits.compared_with.n_rows, "row"),
            "players": f"{len(names)}: {', '.join(names[:10])}{', ...' if len(names) > 10 else ''}",
            "outputs": "" if reader.traits.single_output else ", ".join(reader.traits.output_names),
            "unit": named_unit(reader, self._request.output),
            "next": "explainer(X) explains rows, explainer.plan(X) says what that costs, explainer.verify(X) checks the reading",
        }
        return fields_html(f"Explainer of {reader.traits.model_name}", {name: text for name, text in facts.items() if text})

    def __getattr__(self, name: str) -> Any:
        refuse_name("Explainer", name)
        return object.__getattribute__(self, name)  # raises the first error again

    @answers_keywords
    @_refused_beyond_memory
    def __call__(self, X: TableLike, index: str | Question = "shapley", order: int = 1, *, offset: Any = None) -> Explanation:
        """Explain rows.

        Parameters
        ----------
        X : array or DataFrame of shape (n_rows, n_features)
        index : str, Semivalue or Hierarchy, default="shapley"
            See :func:`exactshap.semivalues.available`; :func:`exactshap.semivalues.owen` for columns in nested groups,
            :func:`exactshap.semivalues.asymmetric` for an order of causes.
        order : int, default=1
            2 for pairs (``explanation.interactions``), more for larger sets (``explanation.set_values``).
        offset : array of shape (n_rows[, n_outputs]) or str, default=None
            What is added to the score of each row besides its columns (log exposure; XGBoost's ``base_margin``, LightGBM's
            ``init_score``), or the column of ``X`` that holds it. It is part of the baseline: no column gets a share.

        Returns
        -------
        explanation : Explanation
            ``values (n_rows, n_players[, n_outputs])`` in the unit of the model output.

        Raises
        ------
        InputError
            If the rows do not fit the model; the message names row and column.
        BudgetError
            If the request cannot fit in ``memory_limit``.
        ExactnessError
            If a residual against the model's own prediction is above its tolerance.
        """
        started = time.perf_counter()
        if offset is None and self.reader.traits.offset_note:
            warn(self.reader.traits.offset_note, ExplanationWarning)
        rows, offsets = (X, None) if offset is None else split_offset(X, offset, self.reader.traits.feature_names)
        table, (reader, semivalue, order) = self._checked(rows, index), reader_for(self.reader, index, order)
        cut = cut_rows(reader, table.n_rows, order, self.memory_limit, self.n_jobs)
        # Before the model is called, as its calls may change it
        change = self._changes.seen()
        blamed = nullcontext() if change is None else blaming(reader, change)
        with nullcontext() if self.n_jobs is None else using_jobs(self.n_jobs), blamed:
            if change is not None and self.on_inexact == "raise" and table.n_rows > COMPARED_ROWS:
                # Few rows first, so that a changed model is refused before all are solved
                self._changes.require_none(self.reader, table)
            check_rows = self._certifier.check_rows(table)
            # Hybrids are predicted with the rows in one call, as each call has fixed costs.
            others = check_rows.table if check_rows is not None and check_rows.joins else None
            solution, prediction = solve_rows(reader, table, cut, semivalue, order, self.progress, others)
            # A change may be undone, and is seen again if not
            remember = change is None
            certified = self._certifier.certify(table, solution, prediction, check_rows, semivalue, order, remember=remember)
            cause = ""
            if change is not None:
                check = self._changes.compared(table, cut, semivalue, order, solution)
                if not check.passed:
                    cause = change_message(reader, change)
                    certified = certified._replace(check=together([certified.check, check]))
            if offsets is not None:
                # Last: hybrids are compared without offsets, which shift v(S) of every coalition alike.
                solution, certified = add_offsets(reader, table, solution, certified, offsets)
        unit, seconds = named_unit(reader, self._request.output), time.perf_counter() - started
        settings = {"unit": unit, "seconds": seconds, "background_hash": self._background_hash}
        explanation = wrap(reader, table, solution, certified, semivalue, order, **settings)
        if not self._changes.is_used:
            self._changes.after_first(change)
        if not explanation.is_within_tolerance:
            refuse_or_warn(reader, explanation, self.on_inexact, cause)
        return explanation

    @_refused_beyond_memory
    def plan(self, X: TableLike, index: str | Question = "shapley", order: int = 1, *, offset: Any = None) -> Forecast:
        """Forecast method and cost on ``X`` without explaining a row. The arguments are those of a call."""
        rows, offsets = split_offset(X, offset, self.reader.traits.feature_names)
        table, (reader, semivalue, order) = self._checked(rows, index), reader_for(self.reader, index, order)
        if offsets is not None:
            check_offsets(reader, table.n_rows, offsets)
        with using_jobs(self.n_jobs):
            return forecast(reader, self._certifier, table, semivalue, order, self.memory_limit)

    @_refused_beyond_memory
    def background_values(self, X: TableLike) -> np.ndarray:
        r"""Return the rows' Shapley values against each background row alone.

        .. math:: \phi_j(x) = \frac1m \sum_z \phi_j(x; z)

        Their mean over the background are the interventional values, so that they say how far another background of the same kind
        would move them: ``explanation.reasons(background_values=...)`` and ``explanation.importance(background_values=...)``.

        Parameters
        ----------
        X : array or DataFrame of shape (n_rows, n_features)

        Returns
        -------
        values : array of shape (n_background, n_rows, n_players[, n_outputs])
            It costs one request with a background of one row for each background row, and the memory of the array.

        Raises
        ------
        InputError
            If the values are no mean over background rows (another value function, weights, sampled values).
        BudgetError
            If the array is larger than ``memory_limit``.

        Examples
        --------
        >>> from sklearn.datasets import load_diabetes
        >>> from sklearn.svm import SVR
        >>> X, y = load_diabetes(return_X_y=True)
        >>> explainer = Explainer(SVR(C=10.0).fit(X, y), background=X[:50])
        >>> explainer.background_values(X[:3]).shape
        (50, 3, 10)
        """
        table = self._checked(X)
        self._changes.require_none(self.reader, table)
        with using_jobs(self.n_jobs), np.errstate(all="ignore"):
            return values_by_background_row(self.reader, table, self.memory_limit, self.progress)

    @_refused_beyond_memory
    def verify(
        self,
        X: TableLike,
        n_masks: int = 8,
        random_state: int = 0,
        *,
        index: str | Semivalue = "shapley",
        order: int = 1,
        offset: Any = None,
    ) -> Verification:
        """Check that credit goes to the right columns, which additivity cannot see.

        On random coalitions S the game's v(S) is compared with the model's own prediction on rows masked by hand (for path-dependent
        trees: with a walk over the library's own dump); the values with those of every coalition (or, beyond ten players, of every
        term) of the game; the nodes of trees with the library's dump. Residuals are checked on the same rows. With another ``index`` or
        ``order``, the values of its sets are compared with those of every coalition up to ten players. Beyond, all sets of each size are
        compared at once, as a mean with random weights, with derivatives of the multilinear extension: two values that are swapped or one
        that is wrong move the mean, by its error over the number of sets. This needs a game that is a sum of products or of terms
        (kernel machines, trees, additive models, with and without a background); of others ``unchecked`` says that values were not compared.
        An ``offset`` moves every v(S) of a row alike: residuals are those of the model's own predictions with it.
        """
        from exactshap.explainer._verify import verify

        _, question, order = reader_for(self.reader, index, order)
        if not isinstance(question, Semivalue):
            raise InputError(
                "Only semivalues and interaction indices can be verified", f"Got {question.name!r}", "Pass the name of one"
            )
        rows, offsets = split_offset(X, offset, self.reader.traits.feature_names)
        table = self._checked(rows)
        self._changes.require_none(self.reader, table)
        return verify(
            self.reader,
            table,
            n_masks=n_masks,
            random_state=random_state,
            semivalue=question,
            order=order,
            offsets=offsets,
            memory_limit=self.memory_limit,
        )

    def _checked(self, X: TableLike, question: str | Question = "shapley") -> Table:
        if isinstance(question, Hierarchy) and self._request.options.get("uncertainty") is True:
            what, do = "uncertainty=True is for players without groups or stages", "put columns together with groups="
            raise InputError(what, f"Got index={question.name!r}", f"Leave uncertainty= out, or {do}")
        # After a fork GNU's OpenMP would wait for ever for threads of the parent, once the model predicts.
        without_lost_threads()
        reader = self.reader
        table = as_table(X if self.shape is None else self.shape.flat(X, "X"), allow_empty=True)
        if self.align:
            table = aligned(table, reader.traits.model)
        fitted, background = reader.traits.fitted_names, reader.traits.background
        if background is not None and (table.was_column or background.was_column):
            table = with_column_of(background, table)
        # A cell that is absent from a sparse matrix means missing or zero, by library: mixing both kinds would guess.
        if background is not None and table.is_sparse != background.is_sparse:
            kinds = ["sparse" if one.is_sparse else "dense" for one in (table, background)]
            got = f"`X` is {kinds[0]}, `background` is {kinds[1]}"
            do = "Pass both as the model was fitted: what a sparse matrix leaves out is missing to XGBoost, and zero to others"
            raise InputTypeError("Rows of `X` and of `background` do not mix", got, do)
        if fitted is not None and table.names is None:
            warn(f"X does not have valid feature names, but {reader.traits.model_name} was fitted with feature names")
        elif fitted is None and table.names is not None and background is not None and background.names is None:
            warn(f"X has feature names, but {reader.traits.model_name} was fitted without feature names")
        names = background.names if fitted is None and background is not None else fitted
        owner = reader.traits.model_name
        checked = check_columns(table, names, len(reader.traits.feature_names), owner=owner, align=self.align)
        if fitted is None and checked is not table:
            got, do = "Columns of X were put in the order of the background", "It must be that of the fit"
            warn(message(f"{owner} was fitted without feature names", got, do), ExplanationWarning)
        return checked


def explain(
    model: Model,
    X: TableLike,
    background: TableLike = None,
    *,
    index: str | Question = "shapley",
    order: int = 1,
    offset: Any = None,
    **settings: Any,
) -> Explanation:
    """Explain rows of a fitted model in one call.

    Parameters
    ----------
    model, background, **settings
        As in :class:`Explainer`.
    X, index, order, offset
        As in the call of an :class:`Explainer`; mind that the rows come before the background.

    Returns
    -------
    explanation : Explanation

    Raises
    ------
    ExactshapError
        Whatever :class:`Explainer` and its call raise.

    Examples
    --------
    >>> from sklearn.datasets import load_diabetes
    >>> from sklearn.svm import SVR
    >>> X, y = load_diabetes(return_X_y=True)
    >>> explain(SVR(C=10.0).fit(X, y), X[:5]).value_function
    'functional'
    """
    return Explainer(model, without_offset(background, offset), **settings)(X, index, order, offset=offset)


@refused_beyond_memory("The background", _FEWER_ROWS)
def _background(background: TableLike, model: Model, align: bool) -> Table:
    """Read the background. A mutation by the caller afterwards must not change anything, so it is copied."""
    table = as_table(background, what="background").copy()
    if not table.is_frame:
        return table
    if align:
        table = aligned(table, model)
    names = getattr(model, "feature_names_in_", None)
    # FLAML names the columns that it makes, interpret those of arrays; their readers compare. LightGBM's CVBooster answers every name
    if names is None or callable(names) or type(model).__module__.startswith(("flaml", "interpret")):
        return table
    owner = type(model).__name__
    return check_columns(table, [str(n) for n in names], len(names), owner=owner, what="background", align=align)

"""What a run over files gives back."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from exactshap._runtime.progress import duration
from exactshap.scale.statistics import GlobalImportance

__all__ = ["DatasetResult"]


@dataclass(frozen=True, repr=False)
class DatasetResult:
    """The outcome of :func:`explain_dataset`; printed, it is a page.

    Attributes
    ----------
    destination : Path
        The folder of results, which readers of Parquet folders take as one table.
    files : tuple of Path
        Its files, in the order of the rows.
    n_rows : int
        Rows in all.
    n_bad_rows : int
        Rows among them that could not be explained and are marked.
    n_resumed : int
        Rows that an earlier run had explained.
    seconds : float
        Wall time of this run.
    importance : GlobalImportance
        Mean and mean absolute values over all rows.
    max_residual : float
        Largest ``|residual|``, in the unit of the model output.
    """

    destination: Path
    files: tuple[Path, ...]
    n_rows: int
    n_bad_rows: int
    n_resumed: int
    seconds: float
    importance: GlobalImportance
    max_residual: float

    def __repr__(self) -> str:
        resumed = f", {self.n_resumed:,} of them by an earlier run" if self.n_resumed else ""
        files = f"{len(self.files):,} file{'' if len(self.files) == 1 else 's'}"
        head = f"{self.n_rows:,} rows explained in {duration(self.seconds)}{resumed}: {files} in {self.destination}"
        return f"{head}\nlargest residual {self.max_residual:.2g}\n{self.importance!r}"

"""A solution in words."""

from __future__ import annotations

from typing import Any

import numpy as np

__all__ = ["solution_facts"]


def solution_facts(solution: Any) -> dict[str, str]:
    """Return short texts by name on a solution and its error."""
    residual, error, bound = solution.residual, solution.std_error, np.max(solution.error_bound, initial=0.0)
    full = solution.full
    found = {
        "values": np.array2string(np.asarray(solution.values), precision=6, threshold=12, edgeitems=3),
        "shape": " x ".join(map(str, np.shape(solution.values))),
        "v(empty), v(D)": " to ".join(_range(ends) for ends in (solution.empty, full)),
        "method": solution.method,
        "exact": "yes" if solution.exact else "no",
        "residual": "" if residual is None else f"at most {np.max(np.abs(residual), initial=0.0):.2g}",
        "std error": "" if error is None else f"at most {np.max(error, initial=0.0):.2g}",
        "error bound": f"{bound:.2g}" if bound > 0 else "",
        "evaluations": f"{solution.n_evaluations:,}" if solution.n_evaluations else "",
    }
    return {name: text for name, text in found.items() if text}


def _range(ends: Any) -> str:
    low, high = np.min(ends, initial=np.inf), np.max(ends, initial=-np.inf)
    return f"{low:.6g}" if low == high else f"[{low:.6g}, {high:.6g}]"

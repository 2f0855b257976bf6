"""What a piece of work costs, said before it is done: the one currency of every forecast."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Cost"]


@dataclass(frozen=True)
class Cost:
    """Seconds on one thread, bytes of working memory, and what they buy.

    ``a + b`` is one after the other, with the memory of both held; ``n * a`` is n of them in the same memory.

    Attributes
    ----------
    seconds : float
        NaN where only the user's own function could tell.
    bytes : float
        Beyond the input and the result.
    exact : bool
        Whether values are exact up to rounding, for the game in question.
    method : str
        As ``Solution.method`` says it.

    Examples
    --------
    >>> Cost(1.0, 8.0, method="tables") + 3 * Cost(0.5, 8.0, exact=False)
    Cost(seconds=2.5, bytes=16.0, exact=False, method='tables')
    """

    seconds: float = 0.0
    bytes: float = 0.0
    exact: bool = True
    method: str = ""

    def __add__(self, other: Cost) -> Cost:
        method = "; ".join(text for text in (self.method, other.method) if text)
        return Cost(self.seconds + other.seconds, self.bytes + other.bytes, self.exact and other.exact, method)

    def __mul__(self, times: float) -> Cost:
        return Cost(times * self.seconds, self.bytes, self.exact, self.method)

    __rmul__ = __mul__

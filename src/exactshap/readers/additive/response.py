"""Read the responses of additive models, such as probabilities, from scores as sums over players."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

from exactshap._runtime.types import Model
from exactshap.errors import UnknownNameError, no_output
from exactshap.readers import OwnCall, Reader, Request
from exactshap.readers.additive._additive import AdditiveReader

if TYPE_CHECKING:
    from exactshap.readers.responses import Response

# Links of generalised models: unit of the score, inverse link (None: the score is the response), unit of the response
LINKS = {
    "identity": ("target", None, "target"),
    "log": ("log of the target", "exponential", "target"),
    "logit": ("log-odds", "logistic", "probability"),
}


def unit_of_link(link: str) -> str:
    """Return the unit of the score that a link makes of the target."""
    return LINKS[link][0] if link in LINKS else f"{link} of the target"


def response_of_link(model: Model, link: str, call: OwnCall, why: str) -> Response:
    """Return the mean of the target, which ``call`` answers; refuse links that are not known."""
    from exactshap.readers.responses import Response, no_response

    if link not in LINKS:
        raise no_response(model, why)
    _, inverse, unit = LINKS[link]
    return Response(inverse, call, unit)


_Read = Callable[[Any, Request], AdditiveReader]


def with_response(describe: Callable[[Any], Response]) -> Callable[[_Read], Callable[[Any, Request], Reader]]:
    """Extend the reader of a score by ``output="probability"`` and ``"response"``, as ``describe(model)`` defines them."""

    def decorate(read: _Read) -> Callable[[Any, Request], Reader]:
        @wraps(read)
        def read_either(model: Model, request: Request) -> Reader:
            outer: Response | None = request.outer_response
            if outer is not None and not hasattr(model, outer.call.method):
                outer = None
            if outer is None and not request.asks_response:
                return read(model, request)
            from exactshap.readers.responses import of_score

            score = read(model, of_score(request))
            response = describe(model) if outer is None else outer
            if outer is not None and score.traits.single_output == outer.takes_several:
                raise UnknownNameError(no_output(score.traits.model_name, "probability", score.traits.output_names))
            if outer is not None and outer.is_of_probability:
                response = outer.after(describe(model))
            if request.output == "probability" and not response.unit.startswith("probability"):
                raise UnknownNameError(no_output(score.traits.model_name, request.output, score.traits.output_names))
            if response.link is None:
                return score
            from exactshap.readers.additive._responses import response_of_score

            return response_of_score(score, response, request)

        return read_either

    return decorate

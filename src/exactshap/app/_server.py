"""The page on localhost, behind a token: Shiny for Python, which is a Starlette application."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

from exactshap._runtime.optional import require
from exactshap.app._session import WhatIf

__all__ = ["make_app", "run_app"]

_COOKIE = "exactshap_token"


def run_app(
    what_if: WhatIf, *, port: int = 0, token: str | None = None, open_browser: bool = True, ready: Callable[[str], None] = print
) -> None:
    """Serve the page on 127.0.0.1 until it is interrupted.

    Parameters
    ----------
    what_if : WhatIf
    port : int, default=0
        0 takes a free one.
    token : str or None, default=None
        What the address must carry; None makes one.
    open_browser : bool, default=True
        Open the page in the system's browser.
    ready : callable, default=print
        Called with the address, token included.

    Raises
    ------
    MissingDependencyError
        If shiny is not installed.

    Examples
    --------
    >>> run_app(WhatIf(model, data, background))  # doctest: +SKIP
    http://127.0.0.1:40123/?token=...
    """
    import socket

    uvicorn = require("uvicorn", "app", purpose="The app")
    token = token or secrets.token_urlsafe(24)
    application = make_app(what_if, token)
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/?token={token}"
    ready(address)
    if open_browser:
        import webbrowser

        webbrowser.open(address)
    uvicorn.Server(uvicorn.Config(application, log_level="warning")).run(sockets=[listening])


def make_app(what_if: WhatIf, token: str) -> Any:
    """Return the page as an ASGI application that answers only who brings the token.

    Parameters
    ----------
    what_if : WhatIf
    token : str

    Returns
    -------
    application : callable
        For any ASGI server; bind it to localhost.

    Examples
    --------
    >>> make_app(WhatIf(model, data), "a long random text")  # doctest: +SKIP
    """
    shiny = require("shiny", "app", purpose="The app")
    from exactshap.app._page import page, server

    inner = shiny.App(page(what_if), server(what_if))
    return _guarded(inner, token)


def _guarded(inner: Any, token: str) -> Any:
    """Let requests through whose address or cookie carries the token, and whose Host is this machine's.

    The first answer sets a cookie, so that scripts, styles and the socket of the page pass. Checking the Host keeps pages of
    other sites from reaching the port under a name of their own (DNS rebinding), SameSite from riding on the cookie.
    """

    async def application(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan" or (_is_here(scope) and _knows(scope, token)):
            await inner(scope, receive, _with_cookie(send, token) if scope["type"] == "http" else send)
        elif scope["type"] == "http":
            await send({"type": "http.response.start", "status": 403, "headers": [(b"content-type", b"text/plain")]})
            await send({"type": "http.response.body", "body": b"This page needs the address that exactshap app printed."})
        else:
            await send({"type": "websocket.close", "code": 1008})

    return application


def _is_here(scope: Any) -> bool:
    host = dict(scope["headers"]).get(b"host", b"").decode("latin-1").rsplit(":", 1)[0]
    return host in ("127.0.0.1", "localhost")


def _knows(scope: Any, token: str) -> bool:
    given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
    cookies = dict(scope["headers"]).get(b"cookie", b"").decode("latin-1").split(";")
    given += [value for name, _, value in (cookie.strip().partition("=") for cookie in cookies) if name == _COOKIE]
    return any(hmac.compare_digest(text.encode(), token.encode()) for text in given)


def _with_cookie(send: Any, token: str) -> Any:
    async def sending(event: Any) -> None:
        if event["type"] == "http.response.start":
            cookie = f"{_COOKIE}={token}; HttpOnly; SameSite=Strict; Path=/".encode()
            event = {**event, "headers": [*event.get("headers", []), (b"set-cookie", cookie)]}
        await send(event)

    return sending

"""Serve the page on localhost behind a token, with Shiny for Python."""

from __future__ import annotations

import hmac
import secrets
from collections.abc import Callable, MutableMapping
from typing import Any, TypeAlias
from urllib.parse import parse_qs

from exactshap._runtime.optional import require
from exactshap._runtime.types import Model
from exactshap.app._session import WhatIf

Scope: TypeAlias = MutableMapping[str, Any]  # ASGI's description of a request


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
        Token in the address; None makes one.
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
    # Other users of the machine can read the address that a browser is started with in the list of processes.
    launch_token = secrets.token_urlsafe(24) if open_browser else None
    shiny = require("shiny", "app", purpose="The app")
    from exactshap.app._page import is_quick, page, server

    quick = is_quick(what_if)
    application = _Guard(shiny.App(page(what_if, quick), server(what_if, quick)), token, launch_token)
    # Bound here, so that the port is known before the server runs and no other process takes it in between.
    listening = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listening.bind(("127.0.0.1", port))
    # From here on, browsers that connect before the server has started wait instead of being refused.
    listening.listen()
    address = f"http://127.0.0.1:{listening.getsockname()[1]}/?token="
    ready(address + token)
    if launch_token is not None:
        import webbrowser

        webbrowser.open(address + launch_token)
    uvicorn.Server(uvicorn.Config(application, log_level="warning")).run(sockets=[listening])


class _Guard:
    """Admit to an ASGI application only the browser that has the token.

    Browsers do not keep apart the ports of a host: a page of any other local server may open requests and sockets here, and
    cookies of this page travel to that server. Hence four locks:

    - The address with the token leads to a folder with a random name. The cookie is bound to that folder, so that it never goes to
      another server, and its value is not the token; its name has the port, so that pages of two ports do not share one.
    - A socket must name its ``Origin``, and that must be the host and port that it was opened on. Other requests may leave it out.
    - Everything but the page itself requires the cookie.
    - ``Host`` must be this machine: a page of another site cannot reach the port under a name of its own (DNS rebinding).
    """

    def __init__(self, inner: Model, token: str, launch_token: str | None) -> None:
        from starlette.routing import Mount, Router

        self._inner, self._token, self._launch_token, self._cookie = inner, token, launch_token, secrets.token_urlsafe(24)
        self._folder = f"/{secrets.token_urlsafe(24)}"
        self._mounted = Router([Mount(self._folder, app=inner)])

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        # Start and stop of the server come from the server itself, not from a browser.
        if scope["type"] == "lifespan":
            await self._inner(scope, receive, send)
        elif self._may_pass(scope):
            await self._mounted(scope, receive, send)
        elif scope["type"] == "websocket":
            # 1008 is the code for a violated policy.
            await send({"type": "websocket.close", "code": 1008})
        elif self._brings_token(scope):
            # Redirected, so that the token does not stay in the history or leave as a referrer.
            cookie = f"{_cookie_name(scope)}={self._cookie}; HttpOnly; SameSite=Strict; Path={self._folder}/"
            headers = [(b"set-cookie", cookie.encode()), (b"location", f"{self._folder}/".encode())]
            await self._answer(send, 303, "", headers)
        else:
            await self._answer(send, 403, "This page needs the address that exactshap app printed.", [])

    def _may_pass(self, scope: Scope) -> bool:
        if not (_is_here(scope) and _same(f"/{scope['path'].split('/')[1]}", self._folder)):
            return False
        # The page itself may be requested without the cookie: SameSite=Strict holds it back after a link from another page.
        if scope["type"] == "http" and scope["path"] == f"{self._folder}/":
            return _is_own_origin(scope, required=False)
        return _is_own_origin(scope, required=scope["type"] == "websocket") and self._brings_cookie(scope)

    def _brings_token(self, scope: Scope) -> bool:
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [])
        if not (_is_here(scope) and scope["path"] == "/"):
            return False
        if self._launch_token is not None and any(_same(text, self._launch_token) for text in given):
            self._launch_token = None
            return True
        return any(_same(text, self._token) for text in given)

    def _brings_cookie(self, scope: Scope) -> bool:
        pairs = (pair.strip().partition("=") for pair in _header(scope, b"cookie").split(";"))
        return any(name == _cookie_name(scope) and _same(value, self._cookie) for name, _, value in pairs)

    @staticmethod
    async def _answer(send: Any, status: int, text: str, headers: list[tuple[bytes, bytes]]) -> None:
        fixed = [(b"content-type", b"text/plain"), (b"referrer-policy", b"no-referrer"), (b"cache-control", b"no-store")]
        await send({"type": "http.response.start", "status": status, "headers": [*fixed, *headers]})
        await send({"type": "http.response.body", "body": text.encode()})


def _header(scope: Scope, name: bytes) -> str:
    """Return a header, or ""; one that occurs twice counts as absent."""
    held = [value for key, value in scope["headers"] if key == name]
    return held[0].decode("latin-1") if len(held) == 1 else ""


def _is_here(scope: Scope) -> bool:
    return _header(scope, b"host").partition(":")[0] in ("127.0.0.1", "localhost")


def _is_own_origin(scope: Scope, *, required: bool) -> bool:
    if not required and not any(key == b"origin" for key, _ in scope["headers"]):
        return True
    # ws and wss name the scheme of a socket; its Origin names that of the page.
    scheme = "https" if scope["scheme"] in ("https", "wss") else "http"
    return _header(scope, b"origin") == f"{scheme}://{_header(scope, b'host')}"


def _cookie_name(scope: Scope) -> str:
    return f"exactshap_{_header(scope, b'host').partition(':')[2] or 80}"


def _same(given: str, secret: str) -> bool:
    # In constant time, so that no delay shows how much of a guess was right.
    return hmac.compare_digest(given.encode(), secret.encode())

"""A real headless Chromium for tests of pages: no network, and every complaint of the page is collected."""

import os
import shutil
from contextlib import contextmanager
from pathlib import Path

import pytest

FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
FLAGS += ["--disable-component-update", "--disable-sync"]


def executable():
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next((path for path in (os.environ.get("CHROMIUM"), *found) if path and Path(path).exists()), None)


@contextmanager
def launched():
    """Yield a browser, or skip the test where there is none."""
    playwright = pytest.importorskip("playwright.sync_api")
    if executable() is None:
        pytest.skip("no Chromium is installed: the page is not opened in a browser")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable(), args=FLAGS)
        yield browser
        browser.close()


@contextmanager
def opened(browser, path, *, width=1280, scheme="light", javascript=True):
    """Yield a page of a file with the network blocked; fail on complaints in its console, on requests and on dialogs.

    ``javascript=None``: the page has no script of its own to wait for; False: scripts are switched off.
    """
    complaints = []
    context = browser.new_context(
        viewport={"width": width, "height": 900}, color_scheme=scheme, offline=True, java_script_enabled=javascript is not False
    )
    page = context.new_page()
    page.set_default_timeout(20_000)
    page.on("console", lambda message: complaints.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: complaints.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (complaints.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: request.url == path.as_uri() or complaints.append(f"request: {request.url}"))
    page.goto(path.as_uri())
    if javascript:
        page.wait_for_selector("html[data-ready]")
    yield page
    context.close()
    assert not complaints, complaints

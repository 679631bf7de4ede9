"""The documentation in a browser, as `make docs` has built it, which also sets the variable with its folder."""

from __future__ import annotations

import http.server
import json
import os
import queue
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urlparse

import pytest

SITE = Path(os.environ.get("CORDWOOD_SITE", "missing"))

if not SITE.is_dir():
    pytest.skip("needs the site, which `make docs` builds", allow_module_level=True)

# sends the links of the search's results, as soon as there are some
PROBE = """
<script>
const timer = setInterval(() => {
  const links = [...document.querySelectorAll(".md-search-result__link")].map((link) => link.href);
  if (links.length) {
    clearInterval(timer);
    fetch("ADDRESS/found", { method: "POST", mode: "no-cors", body: JSON.stringify(links) });
  }
}, 50);
</script>
"""


@pytest.fixture
def site(tmp_path: Path) -> Path:
    return Path(shutil.copytree(SITE, tmp_path / "site"))


@contextmanager
def served(site: Path) -> Iterator[tuple[str, queue.Queue[list[str]]]]:
    """The site on loopback, its first page with the probe; and what the probe finds."""
    found: queue.Queue[list[str]] = queue.Queue()

    class Handler(http.server.SimpleHTTPRequestHandler):
        def do_POST(self) -> None:
            found.put(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), lambda *request: Handler(*request, directory=str(site)))
    address = f"http://127.0.0.1:{server.server_address[1]}"
    page = site / "index.html"
    text = page.read_text(encoding="utf-8")
    page.write_text(text.replace("</body>", f"{PROBE.replace('ADDRESS', address)}</body>"), encoding="utf-8")
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield address, found
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def browse(page: str, profile: Path, found: queue.Queue[list[str]]) -> list[str]:
    """What is found while a browser shows a page."""
    browser = shutil.which("chromium")
    if browser is None:
        pytest.skip("needs chromium, which is not installed")
    arguments = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", f"--user-data-dir={profile}"]
    # no request for another server can succeed
    arguments.append("--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1")
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([browser, *arguments, page], **quiet, start_new_session=True) as process:
        try:
            return found.get(timeout=120)
        finally:
            # all of its processes: the end of a browser that is asked to end may take minutes
            os.killpg(process.pid, signal.SIGKILL)


LOOK_UP = "reference/python/logs.html#cordwood.Log.offset_for_time"


@pytest.mark.parametrize(
    ("words", "wanted", "opened"),
    [
        ("offset_for_time", LOOK_UP, "from a server"),
        ("offset_for_time", LOOK_UP, "from the disk"),
        ("damaged_batch", "reference/findings.html", "from a server"),
        ("retention.ms", "reference/settings.html", "from a server"),
        ("power loss", "guarantees.html", "from a server"),
    ],
)
def test_the_search_finds_it_in_a_browser(words: str, wanted: str, opened: str, site: Path, tmp_path: Path) -> None:
    with served(site) as (address, found):
        start = address if opened == "from a server" else site.as_uri()
        links = browse(f"{start}/index.html?q={words}", tmp_path / "browser", found)
    # without the words to highlight
    places = [re.sub(r"\?[^#]*", "", link.removeprefix(f"{start}/")) for link in links]
    assert any(place.startswith(wanted) for place in places), places


class Page(HTMLParser):
    """What a page loads when it is opened."""

    def __init__(self) -> None:
        super().__init__()
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        if tag in {"img", "script", "iframe"}:
            self.loaded.append(values.get("src") or "")
        if tag == "link" and values.get("rel") == "stylesheet":
            self.loaded.append(values.get("href") or "")


def test_no_page_loads_anything_from_another_server() -> None:
    pages = sorted(SITE.rglob("*.html"))
    assert len(pages) > 25
    for path in pages:
        page = Page()
        page.feed(path.read_text(encoding="utf-8"))
        assert page.loaded
        for loaded in page.loaded:
            parts = urlparse(loaded)
            assert not parts.netloc, (path, loaded)
            if parts.path and path.name != "404.html":
                assert (path.parent / parts.path).is_file(), (path, loaded)

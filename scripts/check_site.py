"""Look at the built site as a reader does: links, pictures, console, search; with screenshots.

    python -m sphinx -W docs build/site
    python scripts/check_site.py build/site [folder for screenshots]

Links and pictures of all pages are checked by reading the files. Where `playwright` is installed
and a Chromium is found (`CHROMIUM`, or one on the PATH), 40 pages are opened as files at widths of
1280 and 390 pixels, light and dark. Ends with the number of faults.
"""

from __future__ import annotations

import os
import shutil
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

SEARCHES = {"softmax": "softmax", "GradScaler": "GradScaler", "collate": "collate"}
SIZES = {"wide": (1280, 900), "phone": (390, 844)}
PAGES = 40


class Page(HTMLParser):
    """The links and ids of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.links: list[str] = []
        self.ids: set[str] = set()
        self.feed(path.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.ids |= {given[key] for key in ("id", "name") if given.get(key)}
        link = given.get("href" if tag in ("a", "link") else "src")
        if link:
            self.links.append(link)


def broken_links(site: Path) -> list[str]:
    """Links within the site that lead nowhere, and whatever the site would fetch from a network."""
    files = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    pages = {path: Page(path) for path in files}
    found = []
    for path, page in pages.items():
        for link in page.links:
            fault = fault_of(link, path, pages)
            if fault:
                found.append(f"{path.relative_to(site)}: {link}: {fault}")
    return found


def fault_of(link: str, path: Path, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme in ("data", "mailto", "javascript"):
        return ""
    if parts.scheme or parts.netloc:
        return "" if link.startswith("https://") else "not https"
    target = path if not parts.path else (path.parent / unquote(parts.path)).resolve()
    if not target.exists():
        return "no such file"
    place = unquote(parts.fragment)
    if place and target in pages and place not in pages[target].ids:
        return "no such place"
    return ""


def chosen(site: Path) -> list[Path]:
    """The pages to open: the guide, the topics, and some of the reference."""
    first = [site / "index.html", *sorted(site.glob("gallery/[0-9]*.html"))]
    first += [
        path for path in sorted(site.glob("*.html")) if path not in first and path.stem != "search"
    ]
    names = ["index", "missing", "torch", "torch.nn", "torch/softmax", "torch/mul", "torch.Tensor"]
    more = [site / f"reference/{name}.html" for name in names]
    return [path for path in (*first[: PAGES - len(more)], *more) if path.exists()]


def look(site: Path, shots: Path | None) -> list[str]:
    """Open pages in a browser; what it complains about."""
    from playwright.sync_api import sync_playwright

    binary = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    found: list[str] = []
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=binary, args=["--no-sandbox"])
        for size, (width, height) in SIZES.items():
            for theme in ("light", "dark") if size == "wide" else ("light",):
                context = browser.new_context(
                    viewport={"width": width, "height": height}, color_scheme=theme
                )
                for path in chosen(site):
                    found += open_page(context, site, path, f"{size}-{theme}", shots)
                if size == "wide" and theme == "light":
                    found += search(context, site)
                context.close()
        browser.close()
    return found


def open_page(context: object, site: Path, path: Path, look: str, shots: Path | None) -> list[str]:
    name = str(path.relative_to(site))
    said: list[str] = []
    page = context.new_page()
    page.on("console", lambda m: said.append(m.text) if m.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("requestfailed", lambda request: said.append(f"failed: {request.url[:120]}"))
    page.goto(path.resolve().as_uri())
    page.wait_for_timeout(150)
    said += page.evaluate(
        "[...document.images].filter(i => i.complete && !i.naturalWidth && i.src)"
        ".map(i => 'broken: ' + i.src.slice(0, 90))"
    )
    over = page.evaluate("document.documentElement.scrollWidth - window.innerWidth")
    if over > 4:
        said.append(f"{over} px wider than the screen")
    if shots is not None:
        shots.mkdir(parents=True, exist_ok=True)
        page.screenshot(path=str(shots / f"{path.parent.name}-{path.stem}-{look}.png"))
    page.close()
    return [f"{name} ({look}): {text}" for text in said]


def search(context: object, site: Path) -> list[str]:
    """Whether the search finds what it should."""
    missed = []
    for word, wanted in SEARCHES.items():
        page = context.new_page()
        page.goto((site / "search.html").resolve().as_uri() + f"?q={word}")
        page.wait_for_selector("#search-results li a", timeout=20_000)
        page.wait_for_timeout(500)
        hits = page.evaluate(
            "[...document.querySelectorAll('#search-results li a')].map(a => a.href)"
        )
        if not any(wanted in hit for hit in hits):
            missed.append(f"search for {word}: not among {len(hits)} hits")
        page.close()
    return missed


def main(arguments: list[str]) -> int:
    site = Path(arguments[0] if arguments else "build/site").resolve()
    shots = Path(arguments[1]) if len(arguments) > 1 else None
    faults = broken_links(site)
    print(f"links: {len(faults)} faults in {len(list(site.rglob('*.html')))} pages")
    try:
        seen = look(site, shots)
        print(f"browser: {len(seen)} faults")
        faults += seen
    except ImportError:
        print("browser: not looked at, since playwright is not installed")
    print(*faults[:60], sep="\n")
    return min(len(faults), 100)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

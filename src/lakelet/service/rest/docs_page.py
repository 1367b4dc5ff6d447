"""The page that shows the OpenAPI document: three files of this package, nothing from elsewhere, and no key to see them."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

_FILES = {
    "/docs": ("docs.html", "text/html; charset=utf-8"),
    "/docs/page.js": ("docs.js", "text/javascript; charset=utf-8"),
    "/docs/page.css": ("docs.css", "text/css; charset=utf-8"),
}
DOCS_PATHS = frozenset(_FILES)
_HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",
}


def docs_routes() -> list[Route]:
    """The routes of the page and what it loads."""
    return [Route(path, docs_file, methods=["GET"]) for path in _FILES]


async def docs_file(request: Request) -> Response:
    """A file of the page."""
    name, media_type = _FILES[request.url.path]
    return Response(_content(name), media_type=media_type, headers=_HEADERS)


@cache
def _content(name: str) -> bytes:
    return files(__package__).joinpath("pages").joinpath(name).read_bytes()

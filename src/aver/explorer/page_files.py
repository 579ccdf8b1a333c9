"""The files of the page, as the server gives them: read once, with their digests.

`index.html` is marked `data-door="live"`, so that the page reads from its server. All else is the same to the byte as
in a site. A browser may keep the files if it asks each time whether they are still the same (`ETag`).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import Response

from aver.explorer.answers import COMMON_HEADERS
from aver.files.regular import CHUNK, open_file
from aver.ledger.bundle.site import PAGE_FILE, PAGE_MEMBERS, page_directory

_DOOR = (b'data-door="files"', b'data-door="live"')
_MEDIA = {"html": "text/html; charset=utf-8", "js": "text/javascript; charset=utf-8", "css": "text/css; charset=utf-8"}


@dataclass(frozen=True, slots=True)
class PageFile:
    """One file of the page."""

    data: bytes
    media: str
    sha256: str


class PageFiles:
    """The files by their paths on the server, and one digest of them all."""

    def __init__(self) -> None:
        directory = page_directory()
        self.by_path: dict[str, PageFile] = {}
        for member in PAGE_MEMBERS:
            with open_file(directory.joinpath(*member)) as file:
                data = b"".join(iter(lambda file=file: file.read(CHUNK), b""))  # type: ignore[misc]
            if member == (PAGE_FILE,):
                data = data.replace(*_DOOR)
            media = _MEDIA[member[-1].rpartition(".")[2]]
            self.by_path["/" + "/".join(member)] = PageFile(data, media, hashlib.sha256(data).hexdigest())
        self.by_path["/"] = self.by_path[f"/{PAGE_FILE}"]
        listed = "".join(
            f"{self.by_path['/' + '/'.join(member)].sha256}  {'/'.join(member)}\n" for member in PAGE_MEMBERS
        )
        self.sha256 = hashlib.sha256(listed.encode("ascii")).hexdigest()
        """SHA-256 of lines as `sha256sum` prints them, one for each file."""

    def answer(self, request: Request) -> Response:
        """The file that a request names; 304 if its client has it already."""
        file = self.by_path[request.url.path]
        headers = {**COMMON_HEADERS, "cache-control": "no-cache", "etag": f'"{file.sha256}"'}
        known = [tag.strip().removeprefix("W/") for tag in request.headers.get("if-none-match", "").split(",")]
        if f'"{file.sha256}"' in known:
            return Response(status_code=304, headers=headers)
        return Response(file.data, headers=headers, media_type=file.media)

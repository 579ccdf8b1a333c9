"""A bundle that is also a site: the Explorer's page beside the records.

    index.html              the page, for any static host and for a double click
    explorer/app.js         its script
    explorer/style.css
    explorer/data/names.js  averNames(["index.json", ...]);
    explorer/data/<n>.js    averFile("<name>", "<base64 of gzip>"); the twin of the n-th of these files

Over HTTP the page reads the bundle's own files. A page that was opened from a file may read none; it then takes their
twins. The two must have the same bytes: else a person would see other records than a verifier judges. The check `page`
compares them, and fails with `ARTIFACT_HASH_MISMATCH`. The files of the page itself prove nothing; the check says
whether they are those of this version of Aver.
"""

from __future__ import annotations

import base64
import binascii
import gzip
import os
import re
import zlib
from collections.abc import Iterable
from pathlib import Path

import orjson

from aver.errors import BadInput, NotFound, Unavailable
from aver.files.atomic import replace_file
from aver.files.regular import CHUNK, open_file, open_inside, read_chunks, read_limited
from aver.ledger.bundle.layout import BLOBS, HEAD, INDEX, META, BundleIndex
from aver.verdict import Finding, Place, Tally

CHECK = "page"
PAGE_FILE = "index.html"
SITE_DIRECTORY = "explorer"
DATA_DIRECTORY = "data"
NAMES_FILE = "names.js"

PAGE_MEMBERS = ((PAGE_FILE,), (SITE_DIRECTORY, "app.js"), (SITE_DIRECTORY, "style.css"))
"""The files of the page, each as the names of its directories and its own."""

SITE_NAMES = frozenset({PAGE_FILE, SITE_DIRECTORY})
"""The names that a site adds to a bundle's directory."""

NAMES_MAX = 16 * 1024 * 1024
"""Largest `names.js` that is read, in bytes: enough for some 100,000 files."""

PAGE_MAX = 8 * 1024 * 1024
"""Largest file of the page that is compared, in bytes. Those of this version have less than one."""

_PACKED = 6
"""The level of compression: the same as that of `.cap` files."""

_DOOR = (b'data-door="files"', b'data-door="site"')
"""The mark in the page that tells it where its records are: as shipped, and in a site."""

_NAMES = re.compile(rb"averNames\((\[.*\])\);\n", re.DOTALL)
_TWIN = re.compile(rb'averFile\(("(?:[^"\\]|\\.)*+"),"([A-Za-z0-9+/=]*+)"\);\n')


def page_directory() -> Path:
    """The directory with the page that came with this version. Raises `Unavailable` if it is not there."""
    found = Path(__file__).parents[2] / "explorer" / "page"
    if not (found / PAGE_FILE).is_file():
        raise Unavailable("the Explorer's page is not installed", advice="reinstall Aver; in a checkout run: make web")
    return found


def is_site(directory: Path) -> bool:
    """Whether the Explorer's page lies in the directory of a bundle."""
    return os.path.isfile(directory / SITE_DIRECTORY / "app.js")


def write_site(directory: Path, files: list[str]) -> None:
    """Put the page into a directory, with the twins of `files`, which lie there already."""
    page = page_directory()
    data = directory / SITE_DIRECTORY / DATA_DIRECTORY
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number, name in enumerate(files):
        with open_inside(directory, *name.split("/")) as file:
            packed = base64.b64encode(gzip.compress(file.read(), _PACKED, mtime=0))
        replace_file(data / f"{number}.js", b'averFile(%b,"%b");\n' % (orjson.dumps(name), packed))
    replace_file(data / NAMES_FILE, b"averNames(%b);\n" % orjson.dumps(files))
    for member in PAGE_MEMBERS:
        replace_file(directory.joinpath(*member), _shipped_bytes(page, member))


def list_site_files(index: BundleIndex, blobs: Iterable[str]) -> list[str]:
    """The files of a bundle that a site has twins of, in their order."""
    chains = [claim.file for claim in index.chains]
    meta = [] if index.meta is None else [META]
    return [INDEX, HEAD, *meta, *chains, *(f"{BLOBS}/{digest}" for digest in sorted(blobs))]


def check_site(directory: Path, files: list[str], tally: Tally) -> None:
    """Compare every twin with its file (check `page`), and say whether the page is this version's own.

    `files` are those of the bundle that records and index name. Each of them that is there needs a twin.
    """
    try:
        names = _read_names(directory)
    except BadInput as error:
        _fail(tally, error.message, f"{SITE_DIRECTORY}/{DATA_DIRECTORY}/{NAMES_FILE}")
        return
    for number, name in enumerate(names):
        tally.count_done(CHECK)
        where = f"{SITE_DIRECTORY}/{DATA_DIRECTORY}/{number}.js"
        try:
            if not _is_twin(directory, number, name):
                _fail(tally, f"the page would show other bytes of {name} than the bundle has", where)
        except BadInput as error:
            _fail(tally, error.message, where)
    for name in files:
        if name not in names and os.path.isfile(directory / name):
            _fail(tally, f"{name} has no twin: the page would not show it", f"{SITE_DIRECTORY}/{DATA_DIRECTORY}")
    own = "this version's own" if _is_own_page(directory) else "not this version's own; open the records with your own"
    tally.notes[CHECK] = f"{len(names)} files are those that the page shows; the page is {own}"


def _read_names(directory: Path) -> list[str]:
    with open_inside(directory, SITE_DIRECTORY, DATA_DIRECTORY, NAMES_FILE) as file:
        match = _NAMES.fullmatch(read_limited(file, NAMES_MAX, NAMES_FILE))
    try:
        names = None if match is None else orjson.loads(match[1])
    except orjson.JSONDecodeError:
        names = None
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise BadInput(f"{NAMES_FILE} does not list files")
    if len(set(names)) != len(names):
        raise BadInput(f"{NAMES_FILE} lists a file twice")
    return names


def _is_twin(directory: Path, number: int, name: str) -> bool:
    """Whether a twin has the name and the bytes of a file. Raises `BadInput` if one of them cannot be read."""
    with open_inside(directory, *name.split("/")) as file:
        size = os.fstat(file.fileno()).st_size
        with open_inside(directory, SITE_DIRECTORY, DATA_DIRECTORY, f"{number}.js") as twin:
            # Packed data is at most a little larger than the plain data, and base64 a third larger than that.
            raw = read_limited(twin, 2 * size + 4096 + 6 * len(name), f"{number}.js")
        match = _TWIN.fullmatch(raw)
        if match is None:
            raise BadInput(f"{number}.js is no twin of a file")
        try:
            if orjson.loads(match[1]) != name:
                return False
            packed = base64.b64decode(match[2], validate=True)
        except (orjson.JSONDecodeError, binascii.Error):
            raise BadInput(f"{number}.js is no twin of a file") from None
        unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
        try:
            # As far as the file goes: a bomb is unpacked no further than that.
            for chunk in read_chunks(file):
                if _unpack_exactly(unpack, packed, len(chunk)) != chunk:
                    return False
                packed = b""
            extra = unpack.decompress(unpack.unconsumed_tail + packed, 1)
        except zlib.error:
            raise BadInput(f"{number}.js is damaged") from None
    return not extra and unpack.eof and not unpack.unused_data


def _unpack_exactly(unpack: zlib._Decompress, packed: bytes, size: int) -> bytes:
    parts = []
    while size:
        piece = unpack.decompress(unpack.unconsumed_tail + packed, size)
        packed = b""
        if not piece and (unpack.eof or not unpack.unconsumed_tail):
            break
        parts.append(piece)
        size -= len(piece)
    return b"".join(parts)


def _is_own_page(directory: Path) -> bool:
    """Whether every file of the page is the one that came with this version."""
    try:
        page = page_directory()
        for member in PAGE_MEMBERS:
            with open_inside(directory, *member) as file:
                if file.read(PAGE_MAX + 1) != _shipped_bytes(page, member):
                    return False
    except (BadInput, NotFound, Unavailable):
        return False
    return True


def _shipped_bytes(page: Path, member: tuple[str, ...]) -> bytes:
    with open_file(page.joinpath(*member)) as file:
        data = b"".join(iter(lambda: file.read(CHUNK), b""))
    return data.replace(*_DOOR) if member == (PAGE_FILE,) else data


def _fail(tally: Tally, words: str, source: str) -> None:
    tally.add(Finding(CHECK, "failed", "ARTIFACT_HASH_MISMATCH", words, Place(source=source)))

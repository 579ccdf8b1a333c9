"""A bundle that is also a site: the Explorer's page beside the records.

    index.html              the page, for any static host and for a double click
    explorer/app.js         its script
    explorer/style.css
    explorer/data/names.js  averNames(["index.json", ...]);
    explorer/data/<n>.js    averFile("<name>", "<base64 of gzip>"); the twin of the n-th of these files

Over HTTP the page reads the bundle's own files. A page that was opened from a file may read none; it then takes their
twins. The two must have the same bytes: else a person would see other records than a verifier judges. The check `page`
compares them, and fails with `ARTIFACT_HASH_MISMATCH`.

The receiver of a site opens its page, and another page may show anything. So the check warns with `PAGE_FOREIGN` of a
page that no version of Aver has made, and of every other file beside it. `pages.json`, which comes with Aver's own
page, has the digest of the page of each version. The build of the page writes that of the present version into it.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO

import orjson

from aver.capsule.base64_text import decode_base64
from aver.errors import BadInput, Unavailable
from aver.files.atomic import open_replacement, replace_file
from aver.files.regular import CHUNK, open_file, open_inside, read_chunks, read_limited
from aver.ledger.bundle.layout import BLOBS, HEAD, INDEX, META, BundleIndex
from aver.verdict import Finding, Place, Tally

CHECK = "page"
PAGE_FILE = "index.html"
SITE_DIRECTORY = "explorer"
DATA_DIRECTORY = "data"
NAMES_FILE = "names.js"

KNOWN_PAGES_FILE = "pages.json"
"""Beside Aver's own page: the SHA-256 of the page of each version, over lines as `sha256sum` prints them."""

PAGE_MEMBERS = ((PAGE_FILE,), (SITE_DIRECTORY, "app.js"), (SITE_DIRECTORY, "style.css"))
"""The files of the page, each as the names of its directories and its own."""

PATH_SHOWN = 80
"""Characters of a strange file's path that a verdict repeats."""

SITE_NAMES = frozenset({PAGE_FILE, SITE_DIRECTORY})
"""The names that a site adds to a bundle's directory."""

NAMES_MAX = 16 * 1024 * 1024
"""Largest `names.js` that is read, in bytes: enough for some 100,000 files."""

PAGE_MAX = 8 * 1024 * 1024
"""Largest file of the page that is read, in bytes. Those of this version have less than one million."""

_PACKED = 6
"""The level of compression: the same as that of `.cap` files."""

_DOOR = (b'data-door="files"', b'data-door="site"')
"""The mark in the page that tells it where its records are: as shipped, and in a site."""

_NAMES = re.compile(rb"averNames\((\[.*\])\);\n", re.DOTALL)
_TWIN_HEAD = re.compile(rb'averFile\(("(?:[^"\\]|\\.)*+"),"')
_TWIN_END = b'");\n'

_TWIN_HEAD_MAX = 4096
"""Bytes at the beginning of a twin that hold the name of its file."""

_TWIN_PIECE = 64 * 1024
"""Characters of base64 that are unpacked at a time. Four of them are three bytes."""


def page_directory() -> Path:
    """The directory with the page that came with this version. Raises `Unavailable` if it is not there."""
    found = Path(__file__).parents[2] / "explorer" / "page"
    if not (found / PAGE_FILE).is_file():
        raise Unavailable("the Explorer's page is not installed", advice="reinstall Aver; in a checkout run: make web")
    return found


def is_site(directory: Path) -> bool:
    """Whether a page lies in the directory of a bundle, or any part of one."""
    return any(os.path.lexists(directory / name) for name in SITE_NAMES)


def write_site(directory: Path, files: list[str]) -> None:
    """Put the page into a directory, with the twins of `files`, which lie there already."""
    page = page_directory()
    data = directory / SITE_DIRECTORY / DATA_DIRECTORY
    data.mkdir(mode=0o700, parents=True, exist_ok=True)
    for number, name in enumerate(files):
        with open_inside(directory, *name.split("/")) as file, open_replacement(data / f"{number}.js") as twin:
            twin.write(b'averFile(%b,"' % orjson.dumps(name))
            for packed in _pack(read_chunks(file)):
                twin.write(packed)
            twin.write(_TWIN_END)
    replace_file(data / NAMES_FILE, b"averNames(%b);\n" % orjson.dumps(files))
    for member in PAGE_MEMBERS:
        replace_file(directory.joinpath(*member), _shipped_bytes(page, member))


def list_site_files(index: BundleIndex, blobs: Iterable[str]) -> list[str]:
    """The files of a bundle that a site has twins of, in their order."""
    chains = [claim.file for claim in index.chains]
    meta = [] if index.meta is None else [META]
    return [INDEX, HEAD, *meta, *chains, *(f"{BLOBS}/{digest}" for digest in sorted(blobs))]


def check_page(directory: Path, tally: Tally) -> None:
    """Warn of a page that no version of Aver has made, and of other files beside it (check `page`)."""
    listed, problem = "", "no version of Aver has made this page"
    try:
        for member in PAGE_MEMBERS:
            with open_inside(directory, *member) as file:
                data = read_limited(file, PAGE_MAX, "/".join(member))
            shipped = data.replace(_DOOR[1], _DOOR[0]) if member == (PAGE_FILE,) else data
            listed += f"{hashlib.sha256(shipped).hexdigest()}  {'/'.join(member)}\n"
    except BadInput as error:
        problem = f"this is no page of Aver's: {error.message}"
    with open_file(page_directory() / KNOWN_PAGES_FILE) as file:
        known = orjson.loads(file.read())
    if hashlib.sha256(listed.encode("ascii")).hexdigest() not in known.values():
        _warn(tally, f"{problem}: do not open it, open the records with your own Explorer", PAGE_FILE)
    own = {"/".join(member) for member in PAGE_MEMBERS} | {_data_path(NAMES_FILE)}
    with suppress(BadInput):  # Reported where the twins are compared.
        own.update(_data_path(f"{number}.js") for number, _ in enumerate(_read_names(directory)))
    for path in _list_site(directory):
        if path not in own:
            _warn(tally, "it is no part of the page, and may be opened by one: do not open it", path)


def _data_path(name: str) -> str:
    return f"{SITE_DIRECTORY}/{DATA_DIRECTORY}/{name}"


def _list_site(directory: Path) -> Iterator[str]:
    """The paths of what lies in the site's directories. No link is followed."""
    data = directory / SITE_DIRECTORY / DATA_DIRECTORY
    plain = [parent for parent in (data.parent, data) if parent.is_dir() and not parent.is_symlink()]
    for parent in plain:
        yield from (
            f"{parent.relative_to(directory).as_posix()}/{name}"
            for name in sorted(os.listdir(parent))
            if parent / name != data or data not in plain
        )


def check_site(directory: Path, files: list[str], tally: Tally) -> None:
    """Compare every twin with its file (check `page`).

    `files` are those of the bundle that records and index name. Each of them that is there needs a twin.
    """
    if not any(os.path.lexists(directory / SITE_DIRECTORY / name) for name in ("app.js", DATA_DIRECTORY)):
        return  # No script would show a twin: `check_page` has reported the rest.
    try:
        names = _read_names(directory)
    except BadInput as error:
        _fail(tally, error.message, _data_path(NAMES_FILE))
        return
    for number, name in enumerate(names):
        tally.count_done(CHECK)
        where = _data_path(f"{number}.js")
        try:
            if not _is_twin(directory, number, name):
                _fail(tally, f"the page would show other bytes of {name} than the bundle has", where)
        except BadInput as error:
            _fail(tally, error.message, where)
    for name in files:
        if name not in names and os.path.isfile(directory / name):
            _fail(tally, f"{name} has no twin: the page would not show it", f"{SITE_DIRECTORY}/{DATA_DIRECTORY}")
    tally.notes[CHECK] = f"{len(names)} files are those that the page shows; the page is one of Aver's"


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


def _pack(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Base64 of gzip, in pieces. It has no time in it: the same file has the same twin."""
    pack = zlib.compressobj(_PACKED, wbits=zlib.MAX_WBITS | 16)
    packed = b""
    for chunk in chunks:
        packed += pack.compress(chunk)
        whole = len(packed) - len(packed) % 3  # Only the last piece may end with signs that fill it up.
        yield base64.b64encode(packed[:whole])
        packed = packed[whole:]
    yield base64.b64encode(packed + pack.flush())


def _is_twin(directory: Path, number: int, name: str) -> bool:
    """Whether a twin has the name and the bytes of a file. Raises `BadInput` if one of them cannot be read."""
    with (
        open_inside(directory, *name.split("/")) as file,
        open_inside(directory, SITE_DIRECTORY, DATA_DIRECTORY, f"{number}.js") as twin,
    ):
        head = _TWIN_HEAD.match(twin.read(_TWIN_HEAD_MAX))
        end = max(os.fstat(twin.fileno()).st_size - len(_TWIN_END), 0)
        twin.seek(end)
        if head is None or end < head.end() or twin.read() != _TWIN_END:
            raise BadInput(f"{number}.js is no twin of a file")
        twin.seek(head.end())
        try:
            return bool(orjson.loads(head[1]) == name) and _has_bytes(file, _unpack(twin, end))
        except (ValueError, zlib.error):  # Not JSON, base64 or gzip.
            raise BadInput(f"{number}.js is damaged") from None


def _has_bytes(file: BinaryIO, pieces: Iterable[bytes]) -> bool:
    """Whether a file has exactly these bytes. It takes no piece after the first that differs: a bomb stays packed."""
    return all(file.read(len(piece)) == piece for piece in pieces) and not file.read(1)


def _unpack(twin: BinaryIO, end: int) -> Iterator[bytes]:
    """The bytes that a twin holds between here and `end` as base64 of gzip. Raises `ValueError` or `zlib.error`."""
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 16)
    while text := twin.read(min(_TWIN_PIECE, end - twin.tell())):
        packed = decode_base64(text)
        while packed and not unpack.eof:
            yield unpack.decompress(packed, CHUNK)
            packed = unpack.unconsumed_tail
        if unpack.unused_data or (packed and unpack.eof) or (text.endswith(b"=") and twin.tell() < end):
            raise zlib.error("something follows the packed file")
    yield unpack.flush()
    if not unpack.eof:
        raise zlib.error("it ends early")


def _shipped_bytes(page: Path, member: tuple[str, ...]) -> bytes:
    with open_file(page.joinpath(*member)) as file:
        data = b"".join(iter(lambda: file.read(CHUNK), b""))
    return data.replace(*_DOOR) if member == (PAGE_FILE,) else data


def _warn(tally: Tally, words: str, path: str) -> None:
    tally.add(Finding(CHECK, "warning", "PAGE_FOREIGN", words, Place(source=ascii(path)[1:-1][:PATH_SHOWN])))


def _fail(tally: Tally, words: str, source: str) -> None:
    tally.add(Finding(CHECK, "failed", "ARTIFACT_HASH_MISMATCH", words, Place(source=source)))

"""The twins in a site's `explorer/data`, and every way to change one."""

from __future__ import annotations

import base64
import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path

from aver import Blob, Ledger
from aver.ledger.bundle import export_bundle
from support.bundles import draft

CHANGED = "codex.two.json"
"""The file whose twin `TWIN_CHANGES` change."""

PIECE = 64 * 1024
"""Characters of a twin that are unpacked at a time."""


def twin_of(site: Path, name: str) -> Path:
    """The twin of a file, by its own words."""
    for path in (site / "explorer" / "data").glob("[0-9]*.js"):
        if path.read_bytes().startswith(f'averFile("{name}",'.encode()):
            return path
    raise AssertionError(f"there is no twin of {name}")


def packed_bytes(twin: Path) -> bytes:
    return base64.b64decode(twin.read_bytes().split(b'","')[1].removesuffix(b'");\n'))


def write_twin(path: Path, name: str, data: bytes) -> None:
    write_packed(path, name, gzip.compress(data))


def write_packed(path: Path, name: str, *packed: bytes) -> None:
    """Write a twin with these bytes, the base64 of each after the other."""
    path.write_bytes(b'averFile("%b","%b");\n' % (name.encode(), b"".join(map(base64.b64encode, packed))))


def repack(change: Callable[[bytes], tuple[bytes, ...]]) -> Callable[[Path], None]:
    """Change the packed bytes of a twin. What they unpack to stays the same."""
    return lambda path: write_packed(path, CHANGED, *change(packed_bytes(path)))


def write_padded(path: Path) -> None:
    """Write a twin with signs behind packed bytes that need none: a name in their header makes them whole threes."""
    packed = packed_bytes(path)
    name = b"n" * (-(len(packed) + 1) % 3) + b"\0"
    text = base64.b64encode(packed[:3] + b"\x08" + packed[4:10] + name + packed[10:])
    path.write_bytes(b'averFile("%b","%b====");\n' % (CHANGED.encode(), text))


TWIN_CHANGES: dict[str, Callable[[Path], object]] = {
    "other bytes": lambda path: write_twin(path, CHANGED, b"{}"),
    "another name": lambda path: write_twin(path, "other.json", b"{}"),
    "gone": lambda path: path.unlink(),
    "empty": lambda path: path.write_bytes(b""),
    "a script": lambda path: path.write_bytes(path.read_bytes() + b"alert(1)"),
    "a longer file": lambda path: write_twin(path, CHANGED, bytes(30_000_000)),
    "not base64": lambda path: path.write_bytes(b'averFile("codex.two.json","%%%");\n'),
    "nothing": lambda path: path.write_bytes(b'averFile("codex.two.json","");\n'),
    "not gzip": lambda path: path.write_bytes(b'averFile("codex.two.json","aGVsbG8=");\n'),
    "another file behind it": repack(lambda packed: (packed + gzip.compress(b""),)),
    "an empty file before it": repack(lambda packed: (gzip.compress(b"") + packed,)),
    "bytes behind it": repack(lambda packed: (packed + bytes(3),)),
    "its end is missing": repack(lambda packed: (packed[:-1],)),
    "padding that nothing needs": write_padded,
    "padding in the middle": repack(lambda packed: (packed[:100], packed[100:])),
}
"""Changes of the twin of `CHANGED`, each of which the check `page` must name."""


def _write(name: str, text: str = "// another") -> Callable[[Path], object]:
    return lambda site: (site / name).write_text(text)


def _append(name: str) -> Callable[[Path], object]:
    return lambda site: (site / name).write_bytes((site / name).read_bytes() + b"\n")


def _remove(name: str) -> Callable[[Path], object]:
    return lambda site: (site / name).unlink()


def _link(site: Path) -> None:
    """Put a link in the place of the script. It leads to the same bytes."""
    script = site / "explorer/app.js"
    script.rename(site.with_name("moved.js"))
    script.symlink_to(site.with_name("moved.js"))


_PAGE_FILES = ("index.html", "explorer/app.js", "explorer/style.css")

FOREIGN_PAGES: dict[str, Callable[[Path], object]] = {
    **{f"{name} replaced": _write(name, "<h1>ALL APPROVED</h1>") for name in _PAGE_FILES},
    **{f"{name} with one more byte": _append(name) for name in _PAGE_FILES},
    **{f"{name} removed": _remove(name) for name in _PAGE_FILES},
    "a script that is a link": _link,
    "a file beside the script": _write("explorer/evil.js"),
    "a file beside the twins": _write("explorer/data/999.js"),
    "a directory beside the script": lambda site: (site / "explorer/more").mkdir(),
    "a link beside the twins": lambda site: (site / "explorer/data/more").symlink_to("/"),
    "the page without its directory": lambda site: shutil.rmtree(site / "explorer"),
}
"""Changes after which the page of a site is none of Aver's, and its records are what they were."""


def export_long_site(filled: Ledger, out: Path) -> Path:
    """Export a site with a blob that no packing makes shorter. Returns its twin, which is read in several pieces."""
    blob = Blob(random.Random(7).randbytes(300_000), "application/octet-stream")
    filled.append("codex.two", draft("a blob", outcome={"status": "success", "result": blob.reference}), blobs=[blob])
    export_bundle(filled, out, html=True)
    return twin_of(out, f"blobs/{blob.digest}")


def changed_pieces(twin: Path) -> dict[str, bytes]:
    """Changes of a twin of several pieces, at their borders and elsewhere."""
    honest = twin.read_bytes()
    start = honest.index(b'","') + 3
    border = start + PIECE
    changed = {
        "padding at the end of a piece": honest[: border - 4] + b"QQ==" + honest[border:],
        "four signs are missing": honest[:border] + honest[border + 4 :],
        "a piece is missing": honest[:border] + honest[border + PIECE :],
        "pieces are swapped": honest[:start]
        + honest[border : border + PIECE]
        + honest[start:border]
        + honest[border + PIECE :],
    }
    for at in (start, border - 1, border, border + PIECE - 1, border + PIECE, len(honest) - 12):
        sign = b"A" if honest[at : at + 1] != b"A" else b"B"
        changed[f"another sign at {at - start}"] = honest[:at] + sign + honest[at + 1 :]
    return changed

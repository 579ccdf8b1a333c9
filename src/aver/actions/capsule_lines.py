"""The lines of `capsules.jsonl`: the run's sealed capsules, and those of the gate that its actions refer to.

    {"chain", "hash", "signature", "signature_pq", "signed_at", "signed_by", "canonical"}

`canonical` is the text that was hashed. In the capsule of an action it stands in two parts, and what belongs between
them is the action itself, in canonical form: it is in `actions.jsonl`, and is not repeated. So a changed action
changes its capsule, and nobody can tell two stories in the two files.
"""

from __future__ import annotations

from operator import itemgetter
from typing import NamedTuple

import orjson

from aver.capsule.bounds import ELEMENT_MAX, Unreadable
from aver.capsule.reading import TOKENS_MAX, read_json
from aver.capsule.sealed import SEAL_KEYS, Sealed
from aver.errors import IntegrityError

__all__ = ["CAPSULE_LINE_MAX", "CapsuleLine", "capsule_line", "read_capsule_line"]

CAPSULE_LINE_MAX = ELEMENT_MAX
"""Bytes of a line that is read."""

SEAL_MAX = 16 * 1024
"""Characters of a seal and a chain's name. An ML-DSA-65 signature, the longest part there is, has 6,618."""

_seal = itemgetter(*SEAL_KEYS)
_KEYS = frozenset({"chain", "canonical", *SEAL_KEYS})


class CapsuleLine(NamedTuple):
    """A line as it was read. `parts` has one text, or two where an action belongs between them."""

    chain: str
    parts: tuple[str, ...]
    seal: tuple[str, ...]

    @property
    def holds_action(self) -> bool:
        return len(self.parts) == 2

    def sealed(self, action: bytes | None) -> Sealed:
        """The capsule, with the sealed text of its action in its place."""
        canonical = (b"" if action is None else action).join(
            [part.encode("utf-8", "surrogatepass") for part in self.parts]
        )
        return Sealed(canonical, *self.seal, chain=self.chain)


def capsule_line(record: Sealed, action: bytes | None) -> bytes:
    """The line of a record, with its line feed; of the capsule of an action, where its sealed text is given."""
    try:
        canonical = record.canonical.decode("utf-8")
    except UnicodeDecodeError:
        raise _unfit(record, "it is not text") from None
    text: str | list[str] = canonical
    if action is not None:
        before, found, after = canonical.partition(f'"action":{action.decode()}')
        if not found:
            raise _unfit(record, "it does not hold its action")
        text = [f'{before}"action":', after]
    seal = {key: getattr(record, key) for key in SEAL_KEYS}
    return orjson.dumps({"chain": record.chain, **seal, "canonical": text}, option=orjson.OPT_APPEND_NEWLINE)


def read_capsule_line(raw: bytes) -> CapsuleLine:
    """Read a line, without its line feed; `Unreadable` where it is none."""
    content = _parsed(raw)
    if not isinstance(content, dict) or content.keys() != _KEYS:
        raise Unreadable("a line of capsules has a chain, a seal and its canonical text")
    canonical = content["canonical"]
    parts = (canonical,) if isinstance(canonical, str) else canonical
    if not isinstance(parts, list | tuple) or len(parts) > 2 or not all(isinstance(part, str) for part in parts):
        raise Unreadable("a capsule's canonical text is one text, or two")
    chain, seal = content["chain"], _seal(content)
    try:
        written = "".join((chain, *seal))
    except TypeError:
        raise Unreadable("the parts of a seal are strings") from None
    if len(written) > SEAL_MAX or not written.isprintable():
        raise Unreadable("its seal holds what no seal holds")
    return CapsuleLine(chain, tuple(parts), seal)


def _parsed(raw: bytes) -> object:
    """The JSON in a line. What orjson writes again in the same way has no key twice; the rest is read strictly."""
    if len(raw) <= TOKENS_MAX:
        try:
            content = orjson.loads(raw)
            if orjson.dumps(content) == raw:
                return content
        except ValueError:
            pass
    return read_json(raw)


def _unfit(record: Sealed, words: str) -> IntegrityError:
    return IntegrityError(
        "SCHEMA_INVALID",
        f"the capsule {record.hash[:16]} of chain {record.chain} cannot be written out: {words}",
        evidence=record,
        advice="run: aver verify",
    )

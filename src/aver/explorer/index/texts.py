"""The texts of a record that can be searched: all that its six sections tell, each once, and the paths that it names.

`aver.sessions.step` reads the record; nothing here reads a capsule by itself.

    text     summary, request, answer, reasoning, options, approver, calls, result and so on, one after the other
    paths    the arguments that name paths, and the objects of side effects such as `edited src/app.py`

A record that only repeats the prompt before it is not found by that prompt. The records of a session repeat the names
and ids of their context, which are left out there; so are numbers, and digests: a record is found by its hash with
`aver show`.

Texts beyond `INLINE_MAX` live in blobs beside the record; they are searched, too. A record is searched up to `TEXT_MAX`
characters.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from aver.capsule.canonical import has_surrogate
from aver.gate.decision_record import DECISION_KIND
from aver.gate.effects.arguments import PATH_ARGUMENTS, normalise_name
from aver.lazy_pattern import lazy_pattern
from aver.sessions.step import ReadBlob, Step, fetch_blobs, full_text, is_blob_reference

TEXT_MAX = 64 * 1024
"""Characters of one record that are searched. A session's largest outputs would fill the index with noise."""

BLOB_MAX = 64 * 1024
"""Largest blob that is read for its text, in bytes: the most that `TEXT_MAX` could hold of it."""

DIGEST_LENGTHS = frozenset({40, 64, 128})
"""Lengths of the digests and signatures that records hold, in hex digits."""

_DIGEST = lazy_pattern(r"[0-9a-f]+")
_EFFECT_PATH = lazy_pattern(r"(?:edited|wrote|added|deleted|read|moved|copied|renamed) (.+)", 0x10)  # re.DOTALL


class RecordTexts(NamedTuple):
    """The texts of one record for the full-text table. `is_cut`: it has more than is searched."""

    text: str
    paths: str
    is_cut: bool


def read_texts(step: Step, blob: ReadBlob, *, repeats_prompt: bool = False) -> RecordTexts:
    """The texts of a step. `repeats_prompt`: the step before it has the same prompt, which is found there."""
    # This runs for every record of a ledger, so it is one flat function.
    asked, text, thinking, error = step.asked, step.text, step.thinking, step.error
    if step.cut:
        asked, text, thinking, error = (full_text(step, name, blob) for name in ("asked", "text", "thinking", "error"))
    effects = step.side_effects
    parts = [step.summary, text, thinking, error, step.title, step.rule, step.model, *effects]
    if not repeats_prompt:
        parts.append(asked)
    paths = [match[1] for effect in effects if (match := _EFFECT_PATH.match(effect))]
    is_cut = False
    values = list(step.others)
    for call in step.calls:
        values += (call.get("tool"), call.get("error"))
        if arguments := call.get("arguments"):
            is_cut |= _collect(arguments, blob, parts, paths)
        values.append(call.get("result"))
    more = step.more
    if step.kind == DECISION_KIND:
        # The rest of a decision is numbers and settings. Its reasons are the text of the step.
        more = more.get("action") if isinstance(more, dict) else None
    values += (step.diff, more)
    if step.addition is not None:
        values.append(dict(step.addition.says))
    for value in values:
        if type(value) is str and len(value) not in DIGEST_LENGTHS:
            parts.append(value)
        elif value is not None:
            is_cut |= _collect(value, blob, parts, None)
    joined = "\n".join(filter(None, dict.fromkeys(parts)))
    is_cut |= len(joined) > TEXT_MAX
    return RecordTexts(to_stored(joined[:TEXT_MAX]), to_stored("\n".join(paths)[:TEXT_MAX]), is_cut)


def _collect(value: Any, blob: ReadBlob, parts: list[str], paths: list[str] | None) -> bool:
    """Add all texts inside a value, without the names of its fields; to `paths` also those under names of paths.

    A stack instead of recursion, because values may be deep. It ends when there is more text than is searched. Returns
    whether something was left out: a blob that is too large, or the rest of the value.
    """
    size, is_cut = 0, False
    waiting: list[tuple[Any, bool]] = [(value, False)]
    while waiting and size <= TEXT_MAX:
        item, is_path = waiting.pop()
        if type(item) is str:
            if len(item) not in DIGEST_LENGTHS or not _DIGEST.fullmatch(item):
                parts.append(item)
                size += len(item)
                if is_path and paths is not None:
                    paths.append(item)
        elif type(item) is dict:
            if "blob" in item and is_blob_reference(item):
                found = fetch_blobs(item, blob, most=BLOB_MAX)
                # A blob that is missing or too large stays a reference, which says nothing to search for.
                if found is not item:
                    waiting.append((found, is_path))
                is_cut |= item["blob"]["size"] > BLOB_MAX
                continue
            waiting += [(inner, is_path or _names_path(name)) for name, inner in reversed(item.items())]
        elif type(item) is list:
            waiting += [(inner, is_path) for inner in reversed(item)]
    # The same text twice counts once in the end, so that the length alone does not tell.
    return is_cut or bool(waiting)


@lru_cache(maxsize=1024)
def _names_path(name: str) -> bool:
    """Whether an argument of this name holds a path, as the gate judges it."""
    return normalise_name(name) in PATH_ARGUMENTS


def to_stored(text: str) -> str:
    """A text that SQLite takes whole: without NUL, at which FTS5 would stop, and without half characters."""
    if "\0" in text:
        text = text.replace("\0", " ")
    return text.encode("utf-8", "replace").decode("utf-8") if has_surrogate(text) else text

"""The texts of a record that can be searched: what its `Step` tells, and the paths that it names.

`aver.sessions.step` reads the record; nothing here reads a capsule by itself. The texts are those that a person sees in
the story of a session: summary, prompt, answer, reasoning, arguments, result, diff, error, side effects and rule.

    text     summary, prompt, answer, arguments and so on, one after the other
    paths    the arguments that name paths, and the objects of side effects such as `edited src/app.py`

Texts beyond `INLINE_MAX` live in blobs beside the record; they are searched, too. A record is searched up to `TEXT_MAX`
characters. Digests are left out: a record is found by its hash with `aver show`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from aver.gate.decision_record import DECISION_KIND
from aver.gate.effects.arguments import PATH_ARGUMENTS, find_argument_texts
from aver.lazy_pattern import lazy_pattern
from aver.sessions.step import ReadBlob, Step, fetch_blobs, full_text

TEXT_MAX = 64 * 1024
"""Characters of one record that are searched. A session's largest outputs would fill the index with noise."""

BLOB_MAX = 64 * 1024
"""Largest blob that is read for its text, in bytes: the most that `TEXT_MAX` could hold of it."""

_DIGEST = lazy_pattern(r"[0-9a-f]{40,128}")
_EFFECT_PATH = lazy_pattern(r"(?:edited|wrote|added|deleted|read|moved|copied|renamed) (.+)", 0x10)  # re.DOTALL


class RecordTexts(NamedTuple):
    """The texts of one record for the full-text table. `is_cut`: it has more than is searched."""

    text: str
    paths: str
    is_cut: bool


def read_texts(step: Step, kind: str, blob: ReadBlob, *, repeats_prompt: bool = False) -> RecordTexts:
    """The texts of a step. `repeats_prompt`: the step before it has the same prompt, which is found there."""
    parts: list[str] = []
    size = 0
    for text in _list_texts(step, kind, blob, repeats_prompt=repeats_prompt):
        if text and not (len(text) <= 128 and _DIGEST.fullmatch(text)):
            parts.append(text)
            size += len(text) + 1
            if size > TEXT_MAX:
                break
    joined = "\n".join(parts)
    # FTS5 reads a text up to the first NUL. SQLite takes no half characters.
    clean = joined[:TEXT_MAX].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    paths = "\n".join(_list_paths(step))[:TEXT_MAX].replace("\0", " ").encode("utf-8", "replace").decode("utf-8")
    return RecordTexts(clean, paths, size > TEXT_MAX)


def _list_texts(step: Step, kind: str, blob: ReadBlob, *, repeats_prompt: bool) -> Iterator[str]:
    yield step.summary
    if not repeats_prompt:
        yield full_text(step, "asked", blob) if step.cut else step.asked
    for name in ("text", "thinking", "error"):
        yield full_text(step, name, blob) if step.cut else getattr(step, name)
    yield from (step.title, step.call, step.rule, *step.side_effects)
    more = step.more
    if kind == DECISION_KIND:
        # The rest of a decision is numbers and settings. Its reasons are the text of the step.
        more = more.get("action") if isinstance(more, dict) else None
    says = None if step.addition is None else dict(step.addition.says)
    for value in (step.arguments, step.result, step.diff, more, says):
        if value is not None:
            yield from _leaf_texts(fetch_blobs(value, blob, most=BLOB_MAX))


def _leaf_texts(value: Any) -> Iterator[str]:
    """All texts inside a value, without the names of its fields. A stack instead of recursion: values may be deep."""
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str):
            yield item
        elif isinstance(item, dict):
            waiting += reversed(item.values())
        elif isinstance(item, list):
            waiting += reversed(item)


def _list_paths(step: Step) -> Iterator[str]:
    for effect in step.side_effects:
        if match := _EFFECT_PATH.match(effect):
            yield match[1]
    if isinstance(step.arguments, dict):
        for found in find_argument_texts(step.arguments):
            if found is not None and found.is_under(PATH_ARGUMENTS):
                yield found.text

"""Text in columns: every text has one form, every form one text, and both sort alike."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from aver import Capsule, Ledger
from aver.ledger.stores.postgres.transaction import INVALID_MARK, from_column, to_column
from support.tamper import first_bad, unguarded

CHAIN = "demo.text"
texts = st.text(st.sampled_from("\0\1\2\3aé\U0001f600"), max_size=8)


@given(texts)
def test_a_text_comes_back(text: str) -> None:
    assert "\0" not in to_column(text)
    assert from_column(to_column(text)) == text


@given(texts, texts)
def test_forms_sort_as_their_texts(left: str, right: str) -> None:
    assert (left.encode() < right.encode()) == (to_column(left).encode() < to_column(right).encode())


@given(texts)
def test_what_is_no_form_is_no_text(anything: str) -> None:
    stored = anything.replace("\0", "")  # a column cannot hold it
    text = from_column(stored)
    assert text.startswith(INVALID_MARK) or to_column(text) == stored


def test_a_session_with_such_characters_is_stored_and_found(ledger: Ledger) -> None:
    for session in ("a\0b", "a\1b", "a\1\1b", "ab"):
        ledger.append(CHAIN, Capsule(type="tool", context={"session_id": session}))
    assert [len(list(ledger.find(session=session))) for session in ("a\0b", "a\1b", "a\1\1b", "ab", "a")] == [
        1,
        1,
        1,
        1,
        0,
    ]
    assert ledger.verify().status == "verified"


def test_a_column_with_what_aver_would_not_have_written_is_found(ledger: Ledger) -> None:
    """Read carelessly, it would pass for the session that was signed; no search would ever find it."""
    ledger.append(CHAIN, Capsule(type="tool", context={"session_id": "\1x"}))
    unguarded(ledger).execute("UPDATE records SET session = ? WHERE session IS NOT NULL", ("\1x",))
    assert first_bad(ledger.verify()) == ("COLUMN_MISMATCH", CHAIN, 0)

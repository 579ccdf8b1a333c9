"""What is this thing, and which room judges it: the `verify` that `aver` exports.

`verify` takes a ledger (none named: the default one), anything in a ledger by its name, a file or directory, JSON, or
records in memory. A string is JSON if it begins like it, a path if there is something at it, and otherwise the name
of something in the ledger. One that could be both is refused: a file that somebody put into the current directory must
not be verified in the place of a chain. A `/` in it makes it a path, a ledger given with it makes it a name.
Looking creates nothing.

Rooms that can judge something list `Judge` values as `JUDGES`; `JUDGES_IN` says in which modules. They are asked in
that order, and a module is imported only when those before it did not recognise the thing.

Keys: exactly those given, and then a signer who is not among them is wrong; or else our own ring and the keys we
know, and then a signer who is not among them is unknown. A key inside the thing being verified proves nothing.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from aver.capsule.aver_block import split_chain_name
from aver.capsule.sealed import Sealed
from aver.config import hide_password, home_dir, load_config
from aver.errors import AverError, BadInput, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.regular import open_file
from aver.keys import KeyStore, PublicKey, Ring
from aver.ledger.ledger import Ledger, open_ledger
from aver.ledger.lookup import Location, locate
from aver.ledger.verify import verify_ledger, verify_record
from aver.verdict import BEGINNING_BYTES, LEVELS, Judge, Level, Subject, Verdict, VerifyOptions

__all__ = ["JUDGE_MODULES", "ResolvedTarget", "is_ledger_name", "resolve", "verify", "verify_with_key"]

JUDGE_MODULES = ("aver.ledger.formats", "aver.actions.formats", "aver.ledger.foreign.capsule_files")
"""Modules with `JUDGES`, asked in this order. The last takes all JSON that is left."""

CHAIN_JUDGE_MODULES = {"actions": "aver.actions.verify_files"}
"""Modules with a `judge_chain`, by the domain of the chains that they judge instead of the ledger, and with it."""

_LEDGER_URL = re.compile(r"(?!capsule:)[a-z][a-z0-9+]*://").match

LedgerLike = Ledger | str | Path | None
"""An open ledger, the URL or path of one, or the default one."""


def verify(
    thing: Any = None,
    *,
    keys: Iterable[PublicKey | str] = (),
    level: Level = "signature",
    require_pq: bool = False,
    tenant: str | None = None,
    home: Path | None = None,
    ledger: LedgerLike = None,
) -> Verdict:
    """The verdict on anything: see the module's text for what `thing` may be.

    Names are looked up in `ledger`, or in the default ledger. `NotFound` if nothing is called so; `BadInput` if it
    is nothing that Aver knows. What is there but damaged, or hostile, is no error: its verdict is `failed`.
    """
    if level not in LEVELS:
        raise BadInput(f"{level!r} is not a level of verification", advice=f"choose one of {', '.join(LEVELS)}")
    if isinstance(thing, Ledger):
        thing, ledger = None, thing
    home = ledger.config.home if isinstance(ledger, Ledger) else home or home_dir()
    where = _LedgerSource(tenant, home, ledger)
    terms = VerifyOptions(_build_ring(keys, home), home, level, require_pq, tenant, where.url)
    if thing is None or _is_ledger_url(thing):
        return _verify_whole_ledger(terms, where if thing is None else _LedgerSource(tenant, home, thing))
    subject = _to_subject(thing)
    if subject is None:
        return _verify_named(thing, terms, where)
    judge = _find_judge(subject)
    if judge is not None and not _is_ledger_name(thing, subject, where):
        return judge.judge(subject, terms)
    if isinstance(thing, str):
        try:
            return _verify_named(thing, terms, where)
        except NotFound:
            pass
    raise _unknown_error(subject)


def verify_with_key(
    sealed: Sealed | Mapping[str, Any] | str | bytes, key: PublicKey | str, *, require_pq: bool = False
) -> Verdict:
    """The verdict on one capsule (a `Sealed`, a sealed dict, or its JSON), held to exactly one key."""
    if isinstance(sealed, str | bytes):
        subject = _text_subject(sealed)
    elif isinstance(sealed, Sealed | Mapping):
        subject = Subject("the capsule", value=sealed)
    else:
        raise BadInput(f"{type(sealed).__name__} is not a sealed capsule")
    terms = VerifyOptions(_build_ring([key], None), home_dir(), require_pq=require_pq)
    judge = next((one for one in _load_judges("aver.ledger.foreign.capsule_files") if one.recognises(subject)), None)
    if judge is None:
        raise BadInput("this is not the JSON of a capsule")
    return judge.judge(subject, terms)


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """What a reference names: one record (then `record` is set), or a chain of records.

    `chain` is set where it is a chain, or a record, of a ledger; `fragment` where a URI pointed into the record.
    """

    name: str
    read: Callable[[], Iterator[Sealed]]
    """Its records in order, read afresh at each call. Read is not verified."""
    record: Sealed | None = None
    chain: str | None = None
    fragment: str | None = None


def resolve(
    thing: Any, *, tenant: str | None = None, home: Path | None = None, ledger: LedgerLike = None
) -> ResolvedTarget:
    """The one record or chain that `thing` names, for showing. Takes what `verify` takes, except what holds many."""
    home = ledger.config.home if isinstance(ledger, Ledger) else home or home_dir()
    where = _LedgerSource(tenant, home, ledger)
    if thing is None or isinstance(thing, Ledger) or _is_ledger_url(thing):
        raise BadInput("a ledger holds many chains", advice="name one of them, or verify it")
    subject = _to_subject(thing)
    if subject is None:
        return _resolve_name(thing, where)
    judge = _find_judge(subject)
    if judge is not None and judge.records is not None and not _is_ledger_name(thing, subject, where):
        return _resolve_subject(subject, judge.records)
    if isinstance(thing, str):
        try:
            return _resolve_name(thing, where)
        except NotFound:
            pass
    if judge is None:
        raise _unknown_error(subject)
    raise BadInput(f"{subject.name} is {judge.name}: it holds many chains", advice="name one of them, or verify it")


def is_ledger_name(
    thing: str, *, tenant: str | None = None, home: Path | None = None, ledger: LedgerLike = None
) -> bool:
    """Whether a string names something in the ledger, even where there is a file so called; `BadInput` if it may be
    either."""
    subject = _to_subject(thing)
    return subject is None or _is_ledger_name(thing, subject, _LedgerSource(tenant, home or home_dir(), ledger))


# --- what is it?


@dataclass(frozen=True, slots=True)
class _LedgerSource:
    """Where names are looked up."""

    tenant: str | None
    home: Path
    ledger: LedgerLike

    @contextmanager
    def opened(self) -> Iterator[Ledger]:
        if isinstance(self.ledger, Ledger):
            if self.tenant not in (None, self.ledger.tenant):
                raise BadInput(f"the ledger was opened for the tenant {self.ledger.tenant}, not {self.tenant}")
            yield self.ledger
            return
        with open_ledger(self.ledger, tenant=self.tenant, create=False, home=self.home) as opened:
            yield opened

    @property
    def url(self) -> str | None:
        given = self.ledger.store.url if isinstance(self.ledger, Ledger) else self.ledger
        return str(given) if given else None

    @property
    def words(self) -> str:
        return hide_password(self.url or load_config(home=self.home).ledger)


def _is_ledger_url(thing: Any) -> bool:
    return isinstance(thing, str) and _LEDGER_URL(thing) is not None


def _to_subject(thing: Any) -> Subject | None:
    """The thing as a subject; None for a string that is neither JSON nor a path, and so must be a name."""
    if isinstance(thing, bytes):
        return _text_subject(thing)
    if isinstance(thing, os.PathLike):
        return _path_subject(Path(thing))
    if isinstance(thing, Sealed | Mapping):
        return Subject("the capsule", value=thing)
    if not isinstance(thing, str):
        return Subject(f"the {type(thing).__name__}", value=thing)
    if thing.lstrip()[:1] in ("{", "["):
        return _text_subject(thing)
    path = Path(thing).expanduser() if thing else None
    return _path_subject(path) if path is not None and _is_existing_path(path) else None


def _is_ledger_name(thing: Any, subject: Subject, where: _LedgerSource) -> bool:
    if not isinstance(thing, str) or subject.path is None or os.sep in thing:
        return False
    try:
        with where.opened() as ledger:
            locate(ledger, thing)
    except AverError:
        return False
    if where.ledger is None:
        raise BadInput(
            f"{thing} is a file or directory here, and also the name of something in the ledger",
            advice=f"give ./{thing} for the file; for the ledger's, name the ledger too: --ledger {where.words}",
        )
    return True


def _text_subject(text: str | bytes) -> Subject:
    raw = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text
    return Subject("the text", value=raw, beginning=raw[:BEGINNING_BYTES])


def _is_existing_path(path: Path) -> bool:
    try:
        os.stat(path)
    except (OSError, ValueError):
        return False
    return True


def _path_subject(path: Path) -> Subject:
    """A file or directory, with its first bytes."""
    try:
        mode = os.stat(path).st_mode
    except FileNotFoundError:
        raise NotFound(f"there is no {path}", advice="check the path") from None
    except ValueError:
        raise BadInput(f"{ascii(str(path))[:80]} is not a path") from None
    except OSError as error:
        raise Unavailable(f"cannot look at {path}: {error.strerror}") from error
    name = path.name or str(path)
    if stat.S_ISDIR(mode):
        return Subject(name, path=path, is_directory=True)
    with open_file(path) as file:
        return Subject(name, path=path, beginning=file.read(BEGINNING_BYTES))


def _load_judges(module: str) -> tuple[Judge, ...]:
    judges: tuple[Judge, ...] = import_module(module).JUDGES
    return judges


def _find_judge(subject: Subject) -> Judge | None:
    """Who judges it. A directory that is two things is refused: the one must not be verified in the other's place."""
    judges = (judge for module in JUDGE_MODULES for judge in _load_judges(module) if judge.recognises(subject))
    first = next(judges, None)
    if first is not None and subject.is_directory and (second := next(judges, None)) is not None:
        raise BadInput(
            f"{subject.name} is {first.name} and also {second.name}", advice="name the file in it that you mean"
        )
    return first


def _unknown_error(subject: Subject) -> BadInput:
    return BadInput(
        f"{subject.name} is nothing that Aver can verify",
        advice="it takes ledgers, bundles, runs and .cap files, capsules and actions as JSON, and databases of "
        "agent-capsule and qp-capsule",
    )


def _build_ring(keys: Iterable[PublicKey | str], home: Path | None) -> Ring:
    given = [key if isinstance(key, PublicKey) else PublicKey(key) for key in keys]
    return Ring.pin(given) if given or home is None else KeyStore(home).ring()


# --- names in a ledger


def _verify_whole_ledger(terms: VerifyOptions, where: _LedgerSource) -> Verdict:
    with where.opened() as ledger:
        return _verify_in_ledger(ledger, None, terms)


def _verify_in_ledger(ledger: Ledger, chain: str | None, terms: VerifyOptions) -> Verdict:
    ring, level, require_pq = terms.ring, terms.level, terms.require_pq
    return verify_ledger(ledger, chain, level=level, since=None, ring=ring, require_pq=require_pq)


def _verify_chain(ledger: Ledger, chain: str, terms: VerifyOptions) -> Verdict:
    """The verdict on one chain; that of the room whose chain it is, where such a room adds to it."""
    room = CHAIN_JUDGE_MODULES.get(split_chain_name(chain)[0])
    if room is None:
        return _verify_in_ledger(ledger, chain, terms)
    verdict: Verdict = import_module(room).judge_chain(ledger, chain, terms)
    return verdict


def _verify_named(name: str, terms: VerifyOptions, where: _LedgerSource) -> Verdict:
    with _locate_name(name, where) as (ledger, place):
        if place.sequence is None:
            return _verify_chain(ledger, place.chain, terms)
        return verify_record(
            ledger, place.chain, place.sequence, level=terms.level, ring=terms.ring, require_pq=terms.require_pq
        )


@contextmanager
def _locate_name(name: str, where: _LedgerSource) -> Iterator[tuple[Ledger, Location]]:
    if not name:
        raise BadInput("an empty name names nothing")
    with ExitStack() as stack:
        try:
            ledger = stack.enter_context(where.opened())
            place = locate(ledger, name)
        except NotFound as error:
            words = f"there is no file or directory {ascii(name)[:120]}, and {error.message}"
            raise NotFound(words, advice=f"looked in {where.words}; aver log lists the chains there") from error
        yield ledger, place


def _resolve_name(name: str, where: _LedgerSource) -> ResolvedTarget:
    with _locate_name(name, where) as (ledger, place):
        if place.sequence is None:
            chain = place.chain
            count = ledger.head(chain).count
            return ResolvedTarget(chain, lambda: _read_chain(where, chain, 0, count), chain=chain)
        sequence = place.sequence
        record = next(ledger.read(place.chain, sequence, sequence + 1), None)
    if record is None:
        raise NotFound(f"record {sequence} of chain {place.chain} is missing", advice="run: aver verify")
    found = f"capsule://{place.chain}/{sequence}"
    return ResolvedTarget(found, lambda: iter((record,)), record, place.chain, place.fragment)


def _read_chain(where: _LedgerSource, chain: str, start: int, stop: int) -> Iterator[Sealed]:
    with where.opened() as ledger:
        yield from ledger.read(chain, start, stop)


def _resolve_subject(subject: Subject, records: Callable[[Subject], Iterator[Sealed]]) -> ResolvedTarget:
    """A chain, or the record itself where there is one only."""
    reading = records(subject)
    first = next(reading, None)
    if first is None:
        raise NotFound(f"there is no capsule in {subject.name}")
    alone = next(reading, None) is None
    return ResolvedTarget(subject.name, lambda: records(subject), first if alone else None)

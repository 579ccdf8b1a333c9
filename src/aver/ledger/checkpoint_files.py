"""Checkpoints in files, and a history of checkpoints in a git repository.

A file of checkpoints is one statement as JSON, or one statement on each line. Empty lines between them do no harm: such
files may be joined. The statements themselves are good only as Aver writes them: compact into a file, with spaces to
standard output, and indented to a terminal. A repository keeps a history for each ledger and tenant in

    checkpoints/<ledger>.<tenant>.jsonl

`append_checkpoint` only adds lines to it. The first line lists every chain. Each later line lists the chains that
changed, and names the time of the line before it as `since`. So the file stays small, and the verifier notices a line
that was removed. Other files in the directory whose names begin with the same ledger id belong to the history, too.

`examine_tenants` verifies a whole ledger: every tenant, with every checkpoint that was given. Each tenant has a
verdict of its own. A tenant whose rows were all deleted is in no table any more; so the tenants that checkpoints, or
this machine's own notes, remember are verified as well.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aver.capsule.json_document import read_exactly
from aver.config import hide_password
from aver.errors import BadInput, IntegrityError, NotFound, Unavailable
from aver.files.atomic import replace_file
from aver.files.locks import lock_directory
from aver.files.regular import open_file, open_inside
from aver.keys import KeyLike, Statement
from aver.ledger.checkpoint import (
    CHECK,
    Checkpoint,
    check_missing_links,
    check_signatures,
    extend_with_checkpoints,
    make_checkpoint,
    order_checkpoint,
    select_checkpoints,
)
from aver.ledger.foreign.seal_checks import unreadable_code
from aver.ledger.head import Head
from aver.ledger.imports.history import read_import_history
from aver.ledger.ledger import Ledger, list_tenants, open_ledger
from aver.ledger.seen_heads import HeadChecker, seen_tenants
from aver.ledger.stores.protocol import NotALedger
from aver.ledger.verified_heads import VerifiedChains, verified_tenants
from aver.ledger.verify import LedgerExamination, Since, examine_ledger, failed_verdict
from aver.verdict import Finding, Place, Subject, Tally, Verdict, VerifyOptions, conclude

if TYPE_CHECKING:
    from aver.ledger.ledger import Ledger

DIRECTORY = "checkpoints"
SUFFIX = ".jsonl"

FILE_MAX = 64 * 1024 * 1024
"""Largest file of checkpoints, in bytes: years of a small ledger, and small enough to be read at once."""

FAILED_TENANTS_MAX = 100
"""Tenants whose verdicts fail after which the others are not verified. A short file can name very many."""

FILES_MAX = 1000
"""Most files of one ledger in a repository."""


def to_checkpoint_line(statement: Statement) -> bytes:
    """A checkpoint as one line of a file. Such files may be concatenated."""
    return json.dumps(order_checkpoint(statement), separators=(",", ":")).encode("ascii") + b"\n"


# --- reading


def read_checkpoints(path: Path, ledger: str) -> list[Checkpoint]:
    """Read all checkpoints of a file, or the checkpoints of a ledger in a repository or its `checkpoints` directory.

    If a repository has checkpoints of other ledgers only, some of theirs are returned, and the comparison then fails
    with a clear message. Raises `NotFound` if there are none.
    """
    if not path.is_dir():
        with open_file(path) as file:
            return list(_parse_checkpoints(file.read(FILE_MAX + 1), str(path)))
    inner = path / DIRECTORY
    directory = inner if inner.is_dir() and not inner.is_symlink() else path
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(SUFFIX))
    except OSError as error:
        raise Unavailable(f"cannot list {directory}: {error.strerror}") from error
    own = [name for name in names if name.startswith(f"{ledger}.")] or names[:1]
    if len(own) > FILES_MAX:
        raise BadInput(f"{directory} has {len(own)} files of one ledger", advice="join some of them")
    found: list[Checkpoint] = []
    for name in own:
        with open_inside(directory, name) as file:
            raw = file.read(FILE_MAX + 1)
        found.extend(_parse_checkpoints(raw, name))
    if not found:
        raise NotFound(f"there are no checkpoints in {directory}", advice="aver checkpoint --git DIR makes them")
    return found


def _parse_checkpoints(raw: bytes, where: str, *, parts: bool = False) -> Iterator[Checkpoint]:
    """The checkpoints in a file. One that lists a part of a ledger is refused, unless `parts`."""
    if len(raw) > FILE_MAX:
        raise BadInput(f"{where} is larger than {FILE_MAX} bytes")
    for place, text in _split_documents(raw, where):
        try:
            found = read_exactly(text, place, partial(_read_statement, where=place), *_FORMS)
            if found.part and not parts:
                # Chains that it does not list may exist or not: comparing a ledger with it would prove too little.
                words = f"{place} lists only a part of the ledger's chains, and is no checkpoint"
                raise BadInput(words, advice="aver checkpoint --out FILE makes one of all chains")
            yield found
        except BadInput as error:
            error.message = error.message if error.message.startswith(place) else f"{place}: {error.message}"
            raise


def _read_statement(data: Any, where: str) -> Checkpoint:
    return Checkpoint.from_statement(Statement.from_dict(data, where), where)


def _dump(found: Checkpoint, **form: Any) -> bytes:
    return json.dumps(order_checkpoint(found.statement), **form).encode("ascii")


_FORMS = (partial(_dump, separators=(",", ":")), _dump, partial(_dump, indent=2))


def _split_documents(raw: bytes, where: str) -> Iterator[tuple[str, bytes]]:
    """The JSON documents of a file: one on each line; or the whole file, if its first line is no document."""
    lines = [(number, line) for number, line in enumerate(raw.split(b"\n"), 1) if line]
    if len(lines) < 2 or not lines[0][1].endswith(b"}"):
        yield where, raw.strip(b"\n")
        return
    for number, line in lines:
        yield f"{where}, line {number}", line


# --- a history in a repository


def history_path(repository: Path, ledger: Ledger) -> Path:
    """The file in which a repository keeps the checkpoints of a ledger and tenant."""
    if not _LEDGER_ID(ledger.id):  # It comes from the ledger's file, and becomes part of a path here.
        raise BadInput(f"the ledger's id {ascii(ledger.id)[:80]} is not one that Aver makes")
    return repository / DIRECTORY / f"{ledger.id}.{ledger.tenant}{SUFFIX}"


def append_checkpoint(repository: Path, ledger: Ledger) -> Checkpoint | None:
    """Add a checkpoint to the history of a ledger. Returns None if nothing changed since the last checkpoint.

    Aver compares the ledger with that history first. If they differ, this raises `IntegrityError` and writes nothing.
    """
    if not os.path.lexists(repository / ".git"):
        raise BadInput(f"{repository} is not a git repository", advice="git init it, or use --out FILE")
    path = history_path(repository, ledger)
    try:
        path.parent.mkdir(exist_ok=True)
    except OSError as error:
        raise Unavailable(f"cannot use the directory {path.parent}: {error.strerror}") from error
    # Two writers at once would each write a history that lacks the line of the other.
    with lock_directory(path.parent):
        try:
            with open_inside(path.parent, path.name) as file:
                raw = file.read(FILE_MAX + 1)
        except NotFound:
            raw = b""
        history = list(_parse_checkpoints(raw, path.name)) if raw else []
        # Nothing is written for a ledger that disagrees with its own history of checkpoints.
        tally = Tally()
        for checkpoint in history:
            if (checkpoint.ledger, checkpoint.tenant) != (ledger.id, ledger.tenant):
                raise BadInput(f"{checkpoint.where} is of another ledger or tenant", advice="move it elsewhere")
            check_signatures(checkpoint, ledger.keys.ring(), tally)
        latest = {head.chain: head for checkpoint in history for head in checkpoint.heads}
        excuse = read_import_history(ledger, ledger.keys.ring()).has_dropped
        checker = HeadChecker.for_ledger(ledger, tally, check=CHECK, excuse=excuse)
        checker.check(latest.values(), "the history of checkpoints")
        failed = [finding for finding in tally.findings if finding.status == "failed"]
        if failed:
            words = f"nothing was written: {failed[0]}"
            raise IntegrityError(
                failed[0].code, words, evidence=tuple(failed), advice="run: aver verify --checkpoint DIR"
            )
        changed = [head for head in ledger.heads() if head.count and latest.get(head.chain) != head]
        if not changed:
            return None
        statement = make_checkpoint(ledger, changed, since=history[-1].at if history else None)
        # Somebody may have edited the file by hand and left the last line without its end.
        whole = raw + (b"\n" if raw and not raw.endswith(b"\n") else b"") + to_checkpoint_line(statement)
        if len(whole) > FILE_MAX:
            spare = f"{path.stem}.1{SUFFIX}"
            raise BadInput(f"{path} would be larger than {FILE_MAX} bytes", advice=f"git mv it to {spare}, beside it")
        replace_file(path, whole, mode=0o644)
    return Checkpoint.from_statement(statement)


_LEDGER_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}").fullmatch


# --- judging checkpoints without their ledger

_PURPOSE_FIELD = re.compile(rb'"purpose"\s*:\s*"checkpoint"')


def is_checkpoint_file(subject: Subject) -> bool:
    """Whether it is a file of checkpoints."""
    named = subject.path is not None and {"v", "purpose"} <= set(subject.keys)
    return named and _PURPOSE_FIELD.search(subject.beginning) is not None


def judge_checkpoints(subject: Subject, options: VerifyOptions) -> Verdict:
    """The verdict on checkpoints without their ledger: are they signed and complete, and do they agree?"""
    tally = Tally()
    found: list[Checkpoint] = []
    try:
        with open_file(subject.path or Path()) as file:
            for checkpoint in _parse_checkpoints(file.read(FILE_MAX + 1), subject.name, parts=True):
                tally.count_done("schema")
                found.append(checkpoint)
    except BadInput as error:
        tally.add(Finding("schema", "failed", unreadable_code(error), error.message, Place(source=subject.name)))
    tally.records = len(found)
    for checkpoint in found:
        tally.count_done(CHECK)
        check_signatures(checkpoint, options.ring, tally)
    check_missing_links(found, tally)
    _check_consistency(found, tally)
    noun = "checkpoint" if len(found) == 1 else f"{len(found)} checkpoints"
    return conclude(f"{noun} in {subject.name}", tally, level=options.level, expected=("schema", CHECK))


def _check_consistency(checkpoints: Sequence[Checkpoint], tally: Tally) -> None:
    """Report checkpoints that contradict each other: a chain that shrinks, or two records at one place.

    Files may have been concatenated in any order, and clocks may go back. So a chain counts as shrunk only if the
    shorter head comes later both in the file and by its time.
    """
    longest: dict[tuple[str, str, str], tuple[Head, str]] = {}
    by_place: dict[tuple[str, str, str, int], Head] = {}
    for checkpoint in checkpoints:
        for head in checkpoint.heads:
            chain = (head.ledger, head.tenant, head.chain)
            before, before_at = longest.get(chain, (head, checkpoint.at))
            same_place = by_place.setdefault((*chain, head.count), head)
            if same_place != head:
                _add_contradiction(checkpoint, head, same_place, "ROLLBACK", tally)
            elif head.count < before.count and checkpoint.at > before_at:
                _add_contradiction(checkpoint, head, before, "TRUNCATED", tally)
            if head.count >= before.count:
                longest[chain] = head, checkpoint.at


def _add_contradiction(checkpoint: Checkpoint, head: Head, before: Head, code: str, tally: Tally) -> None:
    words = f"the checkpoint of {checkpoint.at} contradicts an earlier one"
    proof = {"remembered": before.to_dict(), "actual": head.to_dict()}
    place = Place(head.chain, max(head.count - 1, 0), checkpoint.where)
    tally.add(Finding(CHECK, "failed", code, words, place, proof))


KnownChains = Mapping[str, VerifiedChains] | Literal["last"] | None
"""Where to go on from: by tenant the chains verified before, or those verified last on this machine."""


def examine_tenants(
    url: str | Path | None,
    terms: VerifyOptions,
    *,
    keys: Sequence[KeyLike] = (),
    known: KnownChains = None,
    checkpoints: Sequence[Path] = (),
) -> dict[str, LedgerExamination]:
    """The examination of every tenant by its name, or only of the tenant in `terms`.

    A ledger that cannot be opened, because its header or its tables were changed, has one failed verdict.
    """
    try:
        return _examine_each_tenant(url, terms, keys=keys, known=known, checkpoints=checkpoints)
    except (NotALedger, IntegrityError) as error:
        name = "ledger" if url is None else f"ledger {hide_password(str(url))}"
        verdict = failed_verdict(name, error, terms.level)
        before = known if isinstance(known, Mapping) else {}
        tenants = [terms.tenant] if terms.tenant is not None else [*before] or ["default"]
        return {one: LedgerExamination(verdict, before.get(one, VerifiedChains())) for one in tenants}


def _examine_each_tenant(
    url: str | Path | None,
    terms: VerifyOptions,
    *,
    keys: Sequence[KeyLike],
    known: KnownChains,
    checkpoints: Sequence[Path],
) -> dict[str, LedgerExamination]:
    by_tenant = known if isinstance(known, Mapping) else {}
    with open_ledger(url, tenant=terms.tenant, create=False, home=terms.home) as ledger:
        found = [one for source in checkpoints for one in read_checkpoints(source, ledger.id)]
        tenants = [ledger.tenant]
        if terms.tenant is None:
            remembered = {
                *(checkpoint.tenant for checkpoint in found if checkpoint.ledger == ledger.id),
                *seen_tenants(ledger),
                *verified_tenants(ledger.config.home, ledger.id),
                *by_tenant,
            }
            listed = list_tenants(url, home=terms.home)
            tenants = [*dict.fromkeys([*listed, *sorted(remembered)])] or tenants
    examined: dict[str, LedgerExamination] = {}
    for tenant in tenants:
        failed = sum(one.verdict.status == "failed" for one in examined.values())
        if failed > FAILED_TENANTS_MAX:
            words = f"more than {FAILED_TENANTS_MAX} tenants failed; the rest was not read"
            verdict = failed_verdict("ledger", IntegrityError("NOT_READ", words), terms.level)
            examined[tenant] = LedgerExamination(verdict, by_tenant.get(tenant, VerifiedChains()))
            break
        since: Since | None = "last" if known == "last" else by_tenant.get(tenant)
        with open_ledger(url, tenant=tenant, create=False, home=terms.home) as ledger:
            one = examine_ledger(
                ledger,
                None,
                level=terms.level,
                since=since,
                ring=ledger.ring(keys),
                require_pq=terms.require_pq,
                progress=terms.progress,
                examiners=terms.examiners,
                store_checked_with=next(iter(examined), None),
            )
            is_chosen = terms.tenant is not None
            verdict = apply_checkpoints(one.verdict, ledger, found, keys, is_only_tenant=is_chosen)
            examined[tenant] = one._replace(verdict=verdict)
    return examined


def apply_checkpoints(
    verdict: Verdict,
    ledger: Ledger,
    checkpoints: Sequence[Checkpoint],
    keys: Iterable[KeyLike],
    *,
    is_only_tenant: bool,
) -> Verdict:
    """The verdict on a tenant, extended by a comparison with its checkpoints."""
    own = select_checkpoints(checkpoints, ledger.id, ledger.tenant)
    others_only = all(one.ledger == ledger.id and one.tenant != ledger.tenant for one in own)
    if not own or (others_only and not is_only_tenant):
        return verdict
    return extend_with_checkpoints(verdict, ledger, own, ledger.ring(keys))

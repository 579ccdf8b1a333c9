"""The only registry of Aver: which room recognises, judges and examines what. And the `verify` that `aver` exports.

`verify` takes a ledger (the default one, if none is named), the name of something in a ledger, a file or directory,
JSON, or records in memory. It decides in this order what a string is:

1. JSON, if it begins like JSON;
2. the URL of a ledger;
3. a file or directory, if one exists at that path; no ledger is opened for it;
4. the name of something in the ledger.

With `ledger=`, step 4 comes before step 3 for strings without a `/`: the caller has named where to look. Verifying
creates nothing.

Keys: if keys are given, exactly those count. Otherwise the ring and the known keys of this machine count. Any other
signer is unknown, never wrong: knowing more keys makes no verdict worse. A key inside the verified thing proves
nothing.

Modules are named by strings here, and imported only when a thing needs them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache, partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from aver.capsule.sealed import Sealed
from aver.config import home_dir, load_config
from aver.errors import BadInput, IntegrityError, NotFound
from aver.fast_dataclass import dataclass
from aver.keys import KeyLike, KeyStore, PublicKey, Ring
from aver.ledger import ledger as ledger_room
from aver.ledger.head import Head
from aver.ledger.ledger import Ledger
from aver.ledger.lookup import LedgerLike, LedgerSource, locate, locate_name
from aver.ledger.stores.protocol import NotALedger
from aver.verdict import (
    LEVELS,
    Examination,
    Examiner,
    Level,
    Rules,
    Subject,
    Tally,
    Verdict,
    VerifyOptions,
    merge_verdicts,
)
from aver.verdict.examiner import ACT_CHECKS, RUN_CHECKS, TRACE_CHECKS, ChainFollower

if TYPE_CHECKING:
    from aver.actions.runtime import AgentRuntime as AgentRuntime
    from aver.gateway.gateway import Gateway
    from aver.ledger.append import AnySigner
    from aver.ledger.async_ledger import AsyncLedger
    from aver.ledger.checkpoint_files import KnownChains
    from aver.ledger.read_only import ReadOnlyLedger
    from aver.ledger.verify import LedgerExamination, Since
    from aver.protocol.session import ProtocolSession as ProtocolSession

# --- the registry


class Format(NamedTuple):
    """One sort of thing that can be verified, and its functions as `module:name`.

    `recognise` looks at a `Subject`'s first bytes, or at names in a directory; it reads nothing whole and raises
    nothing. `judge` takes the subject and `VerifyOptions`, and returns the verdict. `records` gives the capsules in it
    one after the other, for showing; None where there is no one chain to show. `directory` tells whether a directory
    can be one; for a directory, no other format is tried.
    """

    name: str
    recognise: str
    judge: str
    records: str | None = None
    directory: bool = False
    open: str | None = None
    """Opens it to read as a ledger; None where that is not possible."""


LEDGER = Format("a ledger", "ledger.formats:is_ledger", "ledger.formats:ledger_path", directory=True)
BUNDLE = Format(
    "a bundle",
    "ledger.formats:is_bundle",
    "ledger.bundle.verify:judge_bundle",
    directory=True,
    open="ledger.bundle.read_only:open_bundle",
)
CAP = Format(
    "a .cap file", "actions.run_files:is_archive", "actions.verify:judge_archive", open="actions.read_only:open_cap"
)

FORMATS = (
    LEDGER,
    BUNDLE,
    Format(
        "one chain of a bundle",
        "ledger.formats:is_chain_file",
        "ledger.bundle.verify:judge_chain_file",
        "ledger.formats:read_chain_records",
    ),
    Format("checkpoints", "ledger.checkpoint_files:is_checkpoint_file", "ledger.checkpoint_files:judge_checkpoints"),
    Format(
        "an agent-capsule directory",
        "ledger.foreign.databases:is_agent_capsule_directory",
        "ledger.foreign.databases:judge_agent_capsule_directory",
        directory=True,
    ),
    Format(
        "a database of agent-capsule or qp-capsule",
        "ledger.foreign.databases:is_foreign_database_file",
        "ledger.foreign.databases:judge_foreign_database",
        "ledger.foreign.databases:read_single_chain",
    ),
    Format("a run", "actions.run_files:is_run", "actions.verify:judge_run", directory=True),
    CAP,
    Format(
        "the file of an act",
        "gateway.judgement.act_file_verdict:is_act_file",
        "gateway.judgement.act_file_verdict:judge_act_file",
        "gateway.judgement.act_file_verdict:read_act_records",
    ),
    Format("a report", "sessions.report_verdict:is_report", "sessions.report_verdict:judge_report"),
    Format("a proof", "actions.run_files:is_proof", "actions.verify:judge_proof"),
    Format("actions", "actions.run_files:is_actions_file", "actions.verify:judge_actions"),
    # The last two take all JSON that is left, so that a damaged file of capsules fails instead of being unknown.
    Format(
        "capsules in memory",
        "ledger.foreign.capsule_files:is_value",
        "ledger.foreign.capsule_files:judge_capsules",
        "ledger.foreign.capsule_files:read_capsules",
    ),
    Format(
        "capsules",
        "ledger.foreign.capsule_files:is_text",
        "ledger.foreign.capsule_files:judge_capsules",
        "ledger.foreign.capsule_files:read_capsules",
    ),
)
"""Every format, in the order in which they are tried."""


@cache
def _load(function: str) -> Callable[..., Any]:
    """Import the function that a table names as `module:name`."""
    module, _, name = function.partition(":")
    found: Callable[..., Any] = getattr(import_module(f"aver.{module}"), name)
    return found


def _examine_later(function: str, examination: Examination) -> Tally:
    tally: Tally = _load(function)(examination)
    return tally


def _follow_later(function: str, rules: Rules, ledger: str, tenant: str, chain: str) -> ChainFollower:
    follower: ChainFollower = _load(function)(rules, ledger, tenant, chain)
    return follower


def _examine_decisions(examination: Examination) -> Tally:
    """Make decisions again by the names of agents' tools and files that this Aver knows."""
    known = _load("agents.registry:load_known_agents")()
    tally: Tally = _load("gate.examiners:examine_decisions")(examination, known)
    return tally


EXAMINERS = (
    Examiner(("approvals", "approvers"), ("approvals",), partial(_examine_later, "gate.examiners:examine_approvals")),
    Examiner(("gate",), ("decisions",), _examine_decisions),
    Examiner(("gate",), ("changes",), partial(_examine_later, "gate.examiners:examine_changes")),
    Examiner(("actions",), RUN_CHECKS, partial(_examine_later, "actions.verify:examine_runs")),
    Examiner(
        ("gateway", "delegations"), ACT_CHECKS, partial(_examine_later, "gateway.judgement.examiners:examine_acts")
    ),
    Examiner(
        ("protocol",),
        TRACE_CHECKS,
        partial(_examine_later, "protocol.judgement.examiners:examine_traces"),
        partial(_follow_later, "protocol.judgement.trace_follower:TraceFollower"),
    ),
)
"""Every room's examiner of its own records: see `aver.verdict.examiner`."""


def open_ledger(
    url: str | Path | None = None,
    *,
    tenant: str | None = None,
    signer: AnySigner | None = None,
    create: bool = True,
    home: Path | None = None,
) -> Ledger:
    """Open the ledger at `url` (default: `AVER_LEDGER`, the settings, or `AVER_HOME/ledger.db`).

    A missing ledger is created, unless `create` is False. Records are signed by `signer`, or by the key of the identity
    `ledger` in `AVER_HOME`, which is created at the first append. `verify` makes the checks of all rooms.

    `url` may also be a bundle or a `.cap` file. Aver verifies it and opens it to read: see `aver.ledger.read_only`.
    """
    opened = open_read_only(url, tenant=tenant, home=home)
    if opened is not None:
        return opened
    return ledger_room.open_ledger(url, tenant=tenant, signer=signer, create=create, home=home, examiners=EXAMINERS)


def open_read_only(
    url: str | Path | None, *, tenant: str | None = None, home: Path | None = None
) -> ReadOnlyLedger | None:
    """Verify and open the bundle or `.cap` file at `url` (default: `AVER_LEDGER`); None if it is something else."""
    named = os.environ.get("AVER_LEDGER") if url is None else str(url)
    found = _find_readable(named) if named else None
    if not named or found is None:
        return None
    config = load_config(home=home)
    options = VerifyOptions(KeyStore(config.home).ring(), config.home, tenant=tenant, examiners=EXAMINERS)
    opened: ReadOnlyLedger = _load(str(found.open))(Path(named).expanduser(), options, config)
    return opened


def _find_readable(name: str) -> Format | None:
    """The format of a bundle or `.cap` file at a path; None for anything else. It opens no file of a ledger."""
    path = Path(name).expanduser()
    try:
        if path.is_dir():
            return BUNDLE if (path / "index.json").is_file() else None
        if path.name == "index.json" and path.is_file():
            return BUNDLE
        return CAP if path.suffix == ".cap" and path.is_file() else None
    except (OSError, ValueError):
        return None


def open_ledger_async(*args: Any, **options: Any) -> AsyncLedger:
    """The arguments of `open_ledger`; use the result with `async with`."""
    from aver.ledger.async_ledger import AsyncLedger

    return AsyncLedger(partial(open_ledger, *args, **options))


def open_gateway(
    ledger: LedgerLike = None, *, workspace: str | Path | None = None, session: str = "", home: Path | None = None
) -> Gateway:
    """Open the gateway, for acts in one session and one workspace. Use it as a context.

    `ledger` is an open ledger, or the URL of one that is closed with the gateway; by default that of `home`, or of
    `AVER_HOME`. `workspace` is the directory that acts on files are about; by default the current one. Without
    `session`, a new one begins. The settings say whether policy servers and executor run in this process or apart.
    Raises `BadInput` for wrong settings, and for a thing that can only be read.
    """
    from aver.gateway.parts.entrance import open_gateway_of
    from aver.ledger.read_only import ReadOnlyLedger

    def keep_open() -> None:
        """Leave a ledger open that the caller has opened."""

    opened = ledger if isinstance(ledger, Ledger) else open_ledger(ledger, home=home)
    close = keep_open if opened is ledger else opened.close
    try:
        if isinstance(opened, ReadOnlyLedger):
            raise BadInput("a gateway needs a ledger that it can write to", advice="leave ledger= out, or name another")
        place = os.fspath(workspace) if workspace is not None else os.getcwd()
        return open_gateway_of(opened, workspace=place, session=session, close=close)
    except BaseException:
        close()
        raise


def run_protocol(task: Mapping[str, Any] | str | None, roles: Mapping[str, Any], **options: Any) -> ProtocolSession:
    """Run a trace of the protocol: ask each role for its next event until the trace ends. Returns the open session.

    `roles` maps agents to functions that take an `aver.View` and return an `aver.Said` or None. `options` are those of
    `aver.ProtocolSession`. Without `tools`, the executor has commands and files of the workspace.
    """
    from aver.protocol.roles.protocol_run import run_protocol as run

    return run(_make_protocol_session, task, roles, **options)


def _make_protocol_session(*given: Any, **options: Any) -> ProtocolSession:
    found: ProtocolSession = __getattr__("ProtocolSession")(*given, **options)
    return found


def __getattr__(name: str) -> Any:
    """Make `AgentRuntime` and `ProtocolSession` when they are first used: opening a ledger need not wait for them."""
    if name == "ProtocolSession":
        from aver.protocol import session

        class ExaminedSession(session.ProtocolSession):
            __doc__ = session.ProtocolSession.__doc__
            examiners = EXAMINERS

        globals()[name] = ExaminedSession
        return ExaminedSession
    if name != "AgentRuntime":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from aver.actions import runtime

    class ExaminedRuntime(runtime.AgentRuntime):
        __doc__ = runtime.AgentRuntime.__doc__
        examiners = EXAMINERS

    globals()[name] = ExaminedRuntime
    return ExaminedRuntime


# --- verifying

Progress = Callable[[int, int], None]

_LEDGER_URL = re.compile(r"(?!capsule:)[a-z][a-z0-9+]*://").match
_COUNT_AND_HASH = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})", re.ASCII).fullmatch


def verify(
    thing: Any = None,
    *,
    keys: Iterable[KeyLike] = (),
    level: Level = "signature",
    require_pq: bool = False,
    tenant: str | None = None,
    home: Path | None = None,
    ledger: LedgerLike = None,
    since: Head | str | None = None,
    checkpoints: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> Verdict:
    """The verdict on anything: the module's text says what `thing` may be.

    A ledger is verified with all its tenants, unless `tenant` names one; the verdict on each is in `tenants`. Names are
    looked up in `ledger`, or in the default ledger. `since` verifies only what came after a trusted head of the chain
    (a `Head`, or `"<count>:<hash>"`) or after the last verification on this machine (`"last"`). A ledger or bundle is
    compared with the `checkpoints` in these files or git repositories. `progress` is called with the number of records
    judged and their total.

    Raises `NotFound` if there is no such thing, `BadInput` if Aver does not know it. A damaged or hostile thing is no
    error: its verdict is `failed`.
    """
    if level not in LEVELS:
        raise BadInput(f"{level!r} is not a level of verification", advice=f"choose one of {', '.join(LEVELS)}")
    if isinstance(thing, Ledger):
        thing, ledger = None, thing
    elif thing is None and not isinstance(ledger, Ledger):
        named = str(ledger or os.environ.get("AVER_LEDGER") or "")
        if named and _find_readable(named) is not None:
            thing, ledger = Path(named).expanduser(), None  # A bundle or `.cap` file in the place of a ledger.
    home = ledger.config.home if isinstance(ledger, Ledger) else home or home_dir()
    pinned = tuple(keys)
    ring = Ring.pin(pinned) if pinned else KeyStore(home).ring()
    source = LedgerSource(tenant, home, ledger, open_ledger)
    url = ledger.store.url if isinstance(ledger, Ledger) else ledger
    options = VerifyOptions(ring, home, level, require_pq, tenant, str(url) if url else None, EXAMINERS, progress)
    request = _Request(options, source, pinned, since, tuple(map(Path, checkpoints)))
    subject, found = _identify(thing, source)
    if found is LEDGER:
        return _verify_ledger(_ledger_url(thing, subject), request)
    if found is None or subject is None:
        return _verify_named(str(thing), request)
    if since is not None:
        raise BadInput(_SINCE_WORDS, advice="aver verify CHAIN --since COUNT:HASH, or aver verify --since last")
    if checkpoints and found is not BUNDLE:
        raise BadInput("--checkpoint compares a ledger or a bundle with its heads", advice="leave out X, or name one")
    verdict: Verdict = _load(found.judge)(subject, options)
    if not checkpoints:
        return verdict
    from aver.ledger.bundle.import_ import check_bundle_checkpoints

    return check_bundle_checkpoints(subject.path or Path(), request.checkpoints, ring, verdict)


_SINCE_WORDS = "--since takes a head of one chain, or 'last' for the last verification on this machine"


class _OneKey(Ring):
    """The ring of one key, which must have signed, whatever the record calls its signer."""

    def lookup(self, signed_by: str) -> tuple[PublicKey, ...]:
        return tuple(self.known.values())


def verify_with_key(
    sealed: Sealed | Mapping[str, Any] | str | bytes, key: PublicKey | str, *, require_pq: bool = False
) -> Verdict:
    """The verdict on one capsule (a `Sealed`, a sealed dict, or its JSON). It fails unless this key has signed it."""
    from aver.ledger.formats import open_subject

    if not isinstance(sealed, str | bytes | Sealed | Mapping):
        raise BadInput(f"{type(sealed).__name__} is not a sealed capsule")
    # As bytes, a text is never taken for a path.
    subject = open_subject(sealed.encode("utf-8", "surrogatepass") if isinstance(sealed, str) else sealed)
    ring = _OneKey.pin([key if isinstance(key, PublicKey) else PublicKey(key)])
    for found in FORMATS[-2:]:
        if _load(found.recognise)(subject):
            verdict: Verdict = _load(found.judge)(subject, VerifyOptions(ring, home_dir(), require_pq=require_pq))
            return verdict
    raise BadInput("this is not the JSON of a capsule")


@dataclass(frozen=True, slots=True)
class _Request:
    """The arguments of one call of `verify`."""

    options: VerifyOptions
    source: LedgerSource
    keys: tuple[KeyLike, ...]
    since: Head | str | None
    checkpoints: tuple[Path, ...]


# --- what is it?


def _identify(thing: Any, source: LedgerSource) -> tuple[Subject | None, Format | None]:
    """Return the subject that a thing is, and its format; no format for the name of something in the ledger.

    Raises `BadInput` for a thing of no known format, and for a directory of two formats.
    """
    from aver.ledger.formats import open_subject

    if thing is None or (isinstance(thing, str) and _LEDGER_URL(thing)):
        return None, LEDGER
    subject = open_subject(thing)
    if subject is None:
        return None, None
    # A caller who names a ledger and a plain word means the chain, even if a file of that name happens to lie here.
    if source.ledger is not None and isinstance(thing, str) and subject.path is not None and os.sep not in thing:
        try:
            with source.open() as ledger:
                locate(ledger, thing)
            return subject, None
        except NotFound:
            pass  # Then it is the path.
    found: list[Format] = []
    for known in FORMATS:
        if (known.directory or not subject.is_directory) and _load(known.recognise)(subject):
            found.append(known)
            if not subject.is_directory:
                break  # The first format counts. Recognisers after it may open the file, which it forbids.
    if not found:
        raise BadInput(
            f"{subject.name} is nothing that Aver can verify",
            advice="it takes ledgers, bundles, runs and .cap files, capsules and actions as JSON, and databases of "
            "agent-capsule and qp-capsule; for something of that name in a ledger, name the ledger too: --ledger",
        )
    if found[0] is FORMATS[-1] and (other := _load("ledger.formats:describe_other_file")(subject)):
        raise BadInput(f"{subject.name} is {other[0]}: it holds no records to verify", advice=other[1])
    if subject.is_directory and len(found) > 1:  # A good bundle could hide a bad run in the same directory.
        words = f"{subject.name} is {found[0].name} and also {found[1].name}"
        raise BadInput(words, advice="name the file in it that you mean")
    return subject, found[0]


def _ledger_url(thing: Any, subject: Subject | None) -> str | Path | None:
    """Return the URL or path of the ledger that `_identify` found; None for the default one."""
    if subject is None:
        return None if thing is None else str(thing)
    path: Path = _load(LEDGER.judge)(subject)
    return path


# --- ledgers, and names in them


def find_ledger(
    thing: str | Path | None, *, tenant: str | None = None, home: Path | None = None, ledger: str | Path | None = None
) -> str | Path | None:
    """The URL or path of the ledger that `thing` is; `ledger` itself if `thing` is None. None is the default ledger.

    Raises `BadInput` if it is something else.
    """
    subject, found = _identify(thing, LedgerSource(tenant, home or home_dir(), ledger, open_ledger))
    if found is not LEDGER:
        raise BadInput(f"{thing} is not a ledger")
    return ledger if thing is None else _ledger_url(thing, subject)


def examine_tenants(
    url: str | Path | None,
    *,
    keys: Sequence[KeyLike] = (),
    level: Level = "signature",
    require_pq: bool = False,
    tenant: str | None = None,
    home: Path | None = None,
    known: KnownChains = None,
    checkpoints: Sequence[str | Path] = (),
    progress: Progress | None = None,
) -> dict[str, LedgerExamination]:
    """Verify a ledger as `verify` does, and return by tenant what a later verification can go on from (`known`)."""
    from aver.ledger import checkpoint_files

    home = home or home_dir()
    ring = Ring.pin(keys) if keys else KeyStore(home).ring()
    options = VerifyOptions(ring, home, level, require_pq, tenant, None, EXAMINERS, progress)
    return checkpoint_files.examine_tenants(
        url, options, keys=keys, known=known, checkpoints=tuple(map(Path, checkpoints))
    )


def _verify_ledger(url: str | Path | None, request: _Request) -> Verdict:
    """The verdict on a whole ledger, with every tenant."""
    options, source = request.options, request.source
    known: Literal["last"] | None = None
    if request.since is not None:
        if request.since != "last":
            raise BadInput(_SINCE_WORDS, advice="aver verify CHAIN --since COUNT:HASH, or aver verify --since last")
        known = "last"
    if url is None and isinstance(source.ledger, Ledger):
        with source.open() as ledger:
            return _verify_in_ledger(ledger, None, request)
    from aver.ledger.checkpoint_files import examine_tenants as examine

    url = source.ledger if url is None and not isinstance(source.ledger, Ledger) else url
    found = examine(url, options, keys=request.keys, known=known, checkpoints=request.checkpoints)
    verdicts = {tenant: one.verdict for tenant, one in found.items()}
    only = next(iter(verdicts.values()))
    if len(verdicts) == 1:
        return only
    merged = merge_verdicts(only.subject, {f"tenant {tenant}": verdict for tenant, verdict in verdicts.items()})
    return replace(merged, tenants=verdicts)


def _verify_in_ledger(ledger: Ledger, chain: str | None, request: _Request) -> Verdict:
    """The verdict on one chain of a ledger, or on all of its tenant's."""
    from aver.ledger.checkpoint_files import apply_checkpoints, read_checkpoints
    from aver.ledger.verify import verify_ledger

    options = request.options
    from aver.ledger.read_only import ReadOnlyLedger

    if isinstance(ledger, ReadOnlyLedger):
        if request.since is not None or request.checkpoints:
            raise BadInput("--since and --checkpoint need a ledger", advice="aver verify BUNDLE --checkpoint FILE")
        return ledger.verify(chain, level=options.level, keys=request.keys, require_pq=options.require_pq)
    since: Since | None
    if request.since is None or isinstance(request.since, Head):
        since = request.since
    elif request.since == "last":
        since = "last"
    else:
        match = _COUNT_AND_HASH(request.since)
        if match is None or chain is None:
            advice = "give COUNT:HASH (64 lower-case hex digits), or a file"
            raise BadInput(f"--since {request.since}: not a head", advice=advice)
        count = int(match[1])
        # The head of an empty chain has no hash.
        since = Head(ledger.id, ledger.tenant, chain, count, match[2] if count else None)
    verdict = verify_ledger(
        ledger,
        chain,
        level=options.level,
        since=since,
        ring=options.ring,
        require_pq=options.require_pq,
        progress=options.progress,
        examiners=EXAMINERS,
    )
    found = [one for path in request.checkpoints for one in read_checkpoints(path, ledger.id)]
    return apply_checkpoints(verdict, ledger, found, request.keys, is_only_tenant=options.tenant is not None)


def _verify_named(name: str, request: _Request) -> Verdict:
    """The verdict on the chain or record that has this name in the ledger."""
    from aver.ledger.verify import failed_verdict

    try:
        return _verify_located(name, request)
    except (NotALedger, IntegrityError) as error:
        return failed_verdict(name, error, request.options.level)


def _verify_located(name: str, request: _Request) -> Verdict:
    from aver.ledger.seen_heads import META_CHAIN
    from aver.ledger.verify import verify_record

    options = request.options
    with locate_name(name, request.source) as (ledger, place):
        if request.checkpoints and place.chain != META_CHAIN:
            raise BadInput("--checkpoint compares a ledger or a bundle with its heads", advice="leave out X")
        if place.sequence is None:
            return _verify_in_ledger(ledger, place.chain, request)
        if request.since is not None:
            raise BadInput(f"{name} is one record; --since verifies a chain from a head on")
        return verify_record(
            ledger, place.chain, place.sequence, level=options.level, ring=options.ring, require_pq=options.require_pq
        )


# --- showing


@dataclass(frozen=True, slots=True)
class ResolvedTarget:
    """The one record (then `record` is set) or the chain that a reference names.

    `chain` is set for a chain, or a record, of a ledger; `fragment` where a URI pointed into the record.
    """

    name: str
    read: Callable[[], Iterator[Sealed]]
    """Its records in order, read afresh at each call. They were not verified."""
    record: Sealed | None = None
    chain: str | None = None
    fragment: str | None = None


def resolve(
    thing: Any, *, tenant: str | None = None, home: Path | None = None, ledger: LedgerLike = None
) -> ResolvedTarget:
    """The one record or chain that `thing` names, for showing. It takes what `verify` takes, but for whole ledgers."""
    home = ledger.config.home if isinstance(ledger, Ledger) else home or home_dir()
    source = LedgerSource(tenant, home, ledger, open_ledger)
    subject, found = (None, LEDGER) if isinstance(thing, Ledger) else _identify(thing, source)
    if found is None:
        return _resolve_name(str(thing), source)
    if subject is None:
        raise BadInput("a ledger holds many chains", advice="name one of them, or verify it")
    if found.records is None:
        advice = f"aver verify {subject.path}"
        if found.open is not None:
            advice = f"aver log --ledger {subject.path} lists them; aver show CHAIN --ledger {subject.path} shows one"
        raise BadInput(f"{subject.name} is {found.name}: it holds many chains", advice=advice)
    read = partial(_load(found.records), subject)
    records = read()
    first = next(records, None)
    if first is None:
        raise NotFound(f"there is no capsule in {subject.name}")
    # Two records show that it is a chain; the rest need not be read for that.
    return ResolvedTarget(subject.name, read, first if next(records, None) is None else None)


def _resolve_name(name: str, source: LedgerSource) -> ResolvedTarget:
    """The record or chain that has this name in the ledger."""
    with locate_name(name, source) as (ledger, place):
        chain, sequence = place.chain, place.sequence
        if sequence is None:
            stop = ledger.head(chain).count  # Records that are appended while a person reads are left out.

            def read() -> Iterator[Sealed]:
                with source.open() as ledger:
                    yield from ledger.read(chain, 0, stop)

            return ResolvedTarget(chain, read, chain=chain)
        record = next(ledger.read(chain, sequence, sequence + 1), None)
    if record is None:
        raise NotFound(f"record {sequence} of chain {chain} is missing", advice="run: aver verify")
    return ResolvedTarget(f"capsule://{chain}/{sequence}", lambda: iter((record,)), record, chain, place.fragment)

"""What a command line of `aver verify` asks for, and the verdicts on it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aver.cli.files import read_document
from aver.cli.options import Usage
from aver.cli.output import Progress
from aver.errors import BadInput, Unavailable
from aver.values import dataclass

if TYPE_CHECKING:
    from aver.keys import PublicKey
    from aver.ledger import Head, Ledger
    from aver.ledger.checkpoint import Checkpoint
    from aver.ledger.verified import Verified
    from aver.ledger.verify import Examined, Since
    from aver.verdict import Verdict

__all__ = ["LAST", "Answer", "answers", "described", "examine_tenants", "keys_given", "ledger_asked_for"]

LAST: Literal["last"] = "last"
"""`--since last`: from what was verified on this machine before."""

META = "meta"


@dataclass(frozen=True, slots=True)
class Answer:
    """The verdict on one thing; on one tenant of it, where it is a whole ledger."""

    verdict: Verdict
    tenant: str | None = None
    thing: str | None = None

    @property
    def about(self) -> str:
        """What the verdict's subject does not say."""
        return "" if self.tenant is None else f", tenant {self.tenant}"


def answers(given: argparse.Namespace) -> list[Answer]:
    """The verdicts on all that was asked for, in that order."""
    if len(given.things) < 2:
        return _answers_on(given.things[0] if given.things else None, given)
    if given.since is not None or given.checkpoint or given.deep:
        raise Usage("--since, --checkpoint and --deep go with one thing at a time", advice="verify them one by one")
    found = []
    for thing in given.things:
        found += [Answer(one.verdict, one.tenant, thing) for one in _answers_on(thing, given)]
    return found


def _answers_on(thing: str | None, given: argparse.Namespace) -> list[Answer]:
    keys = keys_given(given)
    from_a_head = given.since not in (None, LAST)
    if thing == META and not from_a_head:
        return [Answer(_verify_meta(given, keys))]
    if given.deep:
        raise Usage(
            "--deep goes with meta", advice="aver verify meta --deep; whatever else there is, is verified whole"
        )
    is_ledger, url = ledger_asked_for(thing, given)
    if is_ledger and not from_a_head:
        examined = examine_tenants(url, given, keys, given.since)
        several = len(examined) > 1
        return [Answer(one.verdict, tenant if several else None) for tenant, one in examined.items()]
    if given.since is not None:
        return [Answer(_verify_since(None if is_ledger else thing, given, keys))]
    return [Answer(_verify_file_or_name(str(thing), given, keys))]


def keys_given(given: argparse.Namespace) -> list[PublicKey]:
    """The keys to accept and no others; none where your own and those you know are meant."""
    from aver.keys import read_keys

    return [key for source in given.key for key in read_keys(source)]


# --- files, bundles, names


def _verify_file_or_name(thing: str, given: argparse.Namespace, keys: list[PublicKey]) -> Verdict:
    from aver.check import is_name, verify

    held = [Path(source) for source in given.checkpoint]
    if held and (not _is_bundle(Path(thing)) or is_name(thing, tenant=given.tenant, ledger=given.ledger)):
        raise Usage("--checkpoint holds a ledger or a bundle to its heads", advice="leave out X, or name one of these")
    options = {"level": given.level, "require_pq": given.require_pq, "tenant": given.tenant, "ledger": given.ledger}
    verdict = verify(thing, keys=keys, **options)
    if not held:
        return verdict
    from aver.home import home_dir
    from aver.keys import KeyStore, Ring
    from aver.ledger.bundle.holding import bundle_held_to

    ring = Ring.pinned(keys) if keys else KeyStore(home_dir()).ring()
    return bundle_held_to(Path(thing).expanduser(), held, ring, verdict)


def _is_bundle(path: Path) -> bool:
    from aver.ledger.bundle.layout import bundle_directory

    try:
        bundle_directory(path.expanduser())
    except (BadInput, OSError, ValueError):
        return False
    return True


# --- whole ledgers

_SQLITE = b"SQLite format 3\0"


def ledger_asked_for(thing: str | None, given: argparse.Namespace) -> tuple[bool, str | None]:
    """Whether a whole ledger is meant, and which: one that X is, or the one that `--ledger` or the settings name."""
    if thing is None:
        return True, given.ledger
    from aver.check import is_name

    named = _ledger_named(thing)
    if named is None or is_name(thing, tenant=given.tenant, ledger=given.ledger):
        return False, None
    return True, named


def _ledger_named(thing: str) -> str | None:
    """The ledger that X itself is; None if it is something else. A ledger is verified with all its tenants."""
    from aver.ledger import tenants_of
    from aver.ledger.outside import open_file

    if "://" in thing:
        return None if thing.startswith("capsule://") else thing
    path = Path(thing).expanduser()
    if path.is_dir():
        if (path / "index.json").exists():
            return None  # Whether it is a ledger or a bundle, `check` has to say.
        path = path / "ledger.db"
    try:
        with open_file(path) as file:
            if file.read(len(_SQLITE)) != _SQLITE:
                return None
        tenants_of(path)
    except (BadInput, Unavailable, ValueError):
        return None  # Not there, or another program's: `check` knows what it is.
    return str(path)


def examine_tenants(
    url: str | None,
    given: argparse.Namespace,
    keys: list[PublicKey],
    known: Mapping[str, Verified] | Literal["last"] | None,
) -> dict[str, Examined]:
    """Every tenant's verdict, by its name. `known`: what to go on from, if anything."""
    from aver.ledger import open_ledger, tenants_of

    by_tenant = known if isinstance(known, Mapping) else {}
    with open_ledger(url, tenant=given.tenant, create=False) as ledger:
        checkpoints = _checkpoints(given.checkpoint, ledger.id)
        tenants = [ledger.tenant]
        if given.tenant is None:
            told = (one.tenant for one in checkpoints if one.ledger == ledger.id)
            tenants = [*_union(tenants_of(url), told, _remembered(ledger), by_tenant)] or tenants
    examined: dict[str, Examined] = {}
    for tenant in tenants:
        since = by_tenant.get(tenant) if known != LAST else LAST
        with open_ledger(url, tenant=tenant, create=False) as ledger:
            one = _examine(ledger, None, given, keys, since)
            examined[tenant] = one._replace(verdict=_held(one.verdict, ledger, checkpoints, given, keys))
    return examined


def _union(*names: Iterable[str]) -> list[str]:
    """A tenant that was deleted altogether is listed nowhere but where somebody remembers it."""
    first, *others = names
    return [*dict.fromkeys([*first, *sorted({name for listed in others for name in listed})])]


def _remembered(ledger: Ledger) -> list[str]:
    from aver.ledger.memory import seen_tenants
    from aver.ledger.verified import verified_tenants

    return [*seen_tenants(ledger), *verified_tenants(ledger.config.home, ledger.id)]


def _verify_meta(given: argparse.Namespace, keys: list[PublicKey]) -> Verdict:
    """The meta chain with all that it records; with `--deep` every record of every chain, too."""
    from aver.check import is_name
    from aver.ledger import open_ledger

    is_name(META, tenant=given.tenant, ledger=given.ledger)  # `BadInput` where there is a file so called.
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        since: Since | None = LAST if given.since == LAST else None
        verdict = _examine(ledger, None if given.deep else META, given, keys, since).verdict
        return _held(verdict, ledger, _checkpoints(given.checkpoint, ledger.id), given, keys)


def _examine(
    ledger: Ledger, chain: str | None, given: argparse.Namespace, keys: list[PublicKey], since: Since | None
) -> Examined:
    from aver.ledger.verify import examine

    with Progress("verifying") as progress:
        return examine(
            ledger,
            chain,
            level=given.level,
            since=since,
            ring=ledger.ring(keys),
            require_pq=given.require_pq,
            progress=progress,
        )


# --- since a trusted head

_COUNT_AND_HASH = re.compile(r"([0-9]{1,18}):([0-9a-f]{64})", re.ASCII)


def _verify_since(thing: str | None, given: argparse.Namespace, keys: list[PublicKey]) -> Verdict:
    from aver.ledger import open_ledger
    from aver.ledger.lookup import locate

    if thing is None or given.checkpoint:
        words = "--since goes on from a head of one chain, or with 'last' from what was verified here before"
        raise Usage(words, advice="aver verify CHAIN --since COUNT:HASH, or aver verify --since last")
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        place = locate(ledger, thing)
        if place.sequence is not None:
            raise Usage(f"{thing} is one record; --since verifies a chain from a head on")
        since: Since = LAST if given.since == LAST else _read_head(given.since, ledger, place.chain)
        return _examine(ledger, place.chain, given, keys, since).verdict


def _read_head(text: str, ledger: Ledger, chain: str) -> Head:
    from aver.ledger import Head

    if match := _COUNT_AND_HASH.fullmatch(text):
        count = int(match[1])
        return Head(ledger.id, ledger.tenant, chain, count, match[2] if count else None)
    if ":" in text and not Path(text).exists():
        raise Usage(f"--since {text}: not a head", advice="give COUNT:HASH (64 lower-case hex digits), or a file")
    try:
        return Head.from_dict(read_document(Path(text)))
    except BadInput as error:
        raise BadInput(f"--since {text}: {error.message}", advice=error.advice) from error


# --- held to checkpoints


def _checkpoints(sources: Sequence[str], ledger: str) -> list[Checkpoint]:
    from aver.ledger.history import read_checkpoints

    return [one for source in sources for one in read_checkpoints(Path(source), ledger)]


def _held(
    verdict: Verdict,
    ledger: Ledger,
    checkpoints: Sequence[Checkpoint],
    given: argparse.Namespace,
    keys: list[PublicKey],
) -> Verdict:
    from aver.ledger.checkpoint import relevant, with_checkpoints

    own = relevant(checkpoints, ledger.id, ledger.tenant)
    others_only = all(one.ledger == ledger.id and one.tenant != ledger.tenant for one in own)
    if not own or (others_only and given.tenant is None):
        return verdict
    return with_checkpoints(verdict, ledger, own, ledger.ring(keys))


# --- as JSON


def described(found: Sequence[Answer]) -> dict[str, Any]:
    """One verdict as it is; several with their sum in front and themselves under `tenants` or `things`."""
    if len(found) == 1:
        return found[0].verdict.to_dict()
    from aver.verdict import worst

    verdicts = [answer.verdict for answer in found]
    bad = next((verdict.first_bad for verdict in verdicts if verdict.first_bad is not None), None)
    of_one_ledger = all(answer.thing is None for answer in found)
    listed = [
        {**({} if of_one_ledger else {"thing": answer.thing}), "tenant": answer.tenant, **answer.verdict.to_dict()}
        for answer in found
    ]
    return {
        "status": worst(verdict.status for verdict in verdicts),
        "records": sum(verdict.records for verdict in verdicts),
        "earlier": sum(verdict.earlier for verdict in verdicts),
        "chains": sum(verdict.chains for verdict in verdicts),
        "first_bad": None if bad is None else bad.to_dict(),
        "tenants" if of_one_ledger else "things": listed,
    }

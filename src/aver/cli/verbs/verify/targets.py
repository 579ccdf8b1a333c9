"""What a command line of `aver verify` asks for, and the verdicts on it."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aver.cli.files import read_json_file
from aver.cli.options import Usage
from aver.cli.terminal import Progress
from aver.errors import BadInput, Unavailable
from aver.fast_dataclass import dataclass

if TYPE_CHECKING:
    from aver.keys import PublicKey
    from aver.ledger import Head, Ledger
    from aver.ledger.checkpoint import Checkpoint
    from aver.ledger.verified_heads import VerifiedChains
    from aver.ledger.verify import LedgerExamination, Since
    from aver.verdict import Verdict

__all__ = [
    "LAST",
    "TargetVerdict",
    "examine_tenants",
    "read_key_options",
    "resolve_ledger",
    "verdicts_to_dict",
    "verify_targets",
]

LAST: Literal["last"] = "last"
"""`--since last`: from what was verified on this machine before."""

META = "meta"


@dataclass(frozen=True, slots=True)
class TargetVerdict:
    """The verdict on one thing; on one tenant of it, where it is a whole ledger."""

    verdict: Verdict
    tenant: str | None = None
    thing: str | None = None

    @property
    def about(self) -> str:
        """What the verdict's subject does not say."""
        return "" if self.tenant is None else f", tenant {self.tenant}"


def verify_targets(given: argparse.Namespace) -> list[TargetVerdict]:
    """The verdicts on all that was asked for, in that order."""
    if len(given.things) < 2:
        return _verify_target(given.things[0] if given.things else None, given)
    if given.since is not None or given.checkpoint or given.deep:
        raise Usage("--since, --checkpoint and --deep go with one thing at a time", advice="verify them one by one")
    found = []
    for thing in given.things:
        found += [TargetVerdict(one.verdict, one.tenant, thing) for one in _verify_target(thing, given)]
    return found


def _verify_target(thing: str | None, given: argparse.Namespace) -> list[TargetVerdict]:
    keys = read_key_options(given)
    from_a_head = given.since not in (None, LAST)
    if thing == META and not from_a_head:
        return [TargetVerdict(_verify_meta(given, keys))]
    if given.deep:
        raise Usage(
            "--deep goes with meta", advice="aver verify meta --deep; whatever else there is, is verified whole"
        )
    is_ledger, url = resolve_ledger(thing, given)
    if is_ledger and not from_a_head:
        examined = examine_tenants(url, given, keys, given.since)
        several = len(examined) > 1
        return [TargetVerdict(one.verdict, tenant if several else None) for tenant, one in examined.items()]
    if given.since is not None:
        return [TargetVerdict(_verify_since(None if is_ledger else thing, given, keys))]
    return [TargetVerdict(_verify_file_or_name(str(thing), given, keys))]


def read_key_options(given: argparse.Namespace) -> list[PublicKey]:
    """The keys to accept and no others; none where your own and those you know are meant."""
    from aver.keys import read_public_keys

    return [key for source in given.key for key in read_public_keys(source)]


# --- files, bundles, names


def _verify_file_or_name(thing: str, given: argparse.Namespace, keys: list[PublicKey]) -> Verdict:
    from aver.check import is_ledger_name, verify

    held = [Path(source) for source in given.checkpoint]
    if held and (not _is_bundle(Path(thing)) or is_ledger_name(thing, tenant=given.tenant, ledger=given.ledger)):
        raise Usage("--checkpoint holds a ledger or a bundle to its heads", advice="leave out X, or name one of these")
    options = {"level": given.level, "require_pq": given.require_pq, "tenant": given.tenant, "ledger": given.ledger}
    verdict = verify(thing, keys=keys, **options)
    if not held:
        return verdict
    from aver.config import home_dir
    from aver.keys import KeyStore, Ring
    from aver.ledger.bundle.check_checkpoints import check_bundle_checkpoints

    ring = Ring.pin(keys) if keys else KeyStore(home_dir()).ring()
    return check_bundle_checkpoints(Path(thing).expanduser(), held, ring, verdict)


def _is_bundle(path: Path) -> bool:
    from aver.ledger.bundle.layout import bundle_directory

    try:
        bundle_directory(path.expanduser())
    except (BadInput, OSError, ValueError):
        return False
    return True


# --- whole ledgers

_SQLITE_HEADER = b"SQLite format 3\0"


def resolve_ledger(thing: str | None, given: argparse.Namespace) -> tuple[bool, str | None]:
    """Whether a whole ledger is meant, and which: one that X is, or the one that `--ledger` or the settings name."""
    if thing is None:
        return True, given.ledger
    from aver.check import is_ledger_name

    named = _find_ledger_url(thing)
    if named is None or is_ledger_name(thing, tenant=given.tenant, ledger=given.ledger):
        return False, None
    return True, named


def _find_ledger_url(thing: str) -> str | None:
    """The ledger that X itself is; None if it is something else. A ledger is verified with all its tenants."""
    from aver.files.regular import open_file
    from aver.ledger import list_tenants

    if "://" in thing:
        return None if thing.startswith("capsule://") else thing
    path = Path(thing).expanduser()
    if path.is_dir():
        if (path / "index.json").exists():
            return None  # Whether it is a ledger or a bundle, `check` has to say.
        path = path / "ledger.db"
    try:
        with open_file(path) as file:
            if file.read(len(_SQLITE_HEADER)) != _SQLITE_HEADER:
                return None
        list_tenants(path)
    except (BadInput, Unavailable, ValueError):
        return None  # Not there, or another program's: `check` knows what it is.
    return str(path)


def examine_tenants(
    url: str | None,
    given: argparse.Namespace,
    keys: list[PublicKey],
    known: Mapping[str, VerifiedChains] | Literal["last"] | None,
) -> dict[str, LedgerExamination]:
    """Every tenant's verdict, by its name. `known`: what to go on from, if anything."""
    from aver.ledger import list_tenants, open_ledger

    by_tenant = known if isinstance(known, Mapping) else {}
    with open_ledger(url, tenant=given.tenant, create=False) as ledger:
        checkpoints = _read_checkpoints(given.checkpoint, ledger.id)
        tenants = [ledger.tenant]
        if given.tenant is None:
            told = (one.tenant for one in checkpoints if one.ledger == ledger.id)
            tenants = [*_merge_tenant_names(list_tenants(url), told, _remembered_tenants(ledger), by_tenant)] or tenants
    examined: dict[str, LedgerExamination] = {}
    for tenant in tenants:
        since = by_tenant.get(tenant) if known != LAST else LAST
        with open_ledger(url, tenant=tenant, create=False) as ledger:
            one = _examine_ledger(ledger, None, given, keys, since)
            examined[tenant] = one._replace(verdict=_apply_checkpoints(one.verdict, ledger, checkpoints, given, keys))
    return examined


def _merge_tenant_names(*names: Iterable[str]) -> list[str]:
    """A tenant that was deleted altogether is listed nowhere but where somebody remembers it."""
    first, *others = names
    return [*dict.fromkeys([*first, *sorted({name for listed in others for name in listed})])]


def _remembered_tenants(ledger: Ledger) -> list[str]:
    from aver.ledger.seen_heads import seen_tenants
    from aver.ledger.verified_heads import verified_tenants

    return [*seen_tenants(ledger), *verified_tenants(ledger.config.home, ledger.id)]


def _verify_meta(given: argparse.Namespace, keys: list[PublicKey]) -> Verdict:
    """The meta chain with all that it records; with `--deep` every record of every chain, too."""
    from aver.check import is_ledger_name
    from aver.ledger import open_ledger

    is_ledger_name(META, tenant=given.tenant, ledger=given.ledger)  # `BadInput` where there is a file so called.
    with open_ledger(given.ledger, tenant=given.tenant, create=False) as ledger:
        since: Since | None = LAST if given.since == LAST else None
        verdict = _examine_ledger(ledger, None if given.deep else META, given, keys, since).verdict
        return _apply_checkpoints(verdict, ledger, _read_checkpoints(given.checkpoint, ledger.id), given, keys)


def _examine_ledger(
    ledger: Ledger, chain: str | None, given: argparse.Namespace, keys: list[PublicKey], since: Since | None
) -> LedgerExamination:
    from aver.ledger.verify import examine_ledger

    with Progress("verifying") as progress:
        return examine_ledger(
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
        return _examine_ledger(ledger, place.chain, given, keys, since).verdict


def _read_head(text: str, ledger: Ledger, chain: str) -> Head:
    from aver.ledger import Head

    if match := _COUNT_AND_HASH.fullmatch(text):
        count = int(match[1])
        return Head(ledger.id, ledger.tenant, chain, count, match[2] if count else None)
    if ":" in text and not Path(text).exists():
        raise Usage(f"--since {text}: not a head", advice="give COUNT:HASH (64 lower-case hex digits), or a file")
    try:
        return Head.from_dict(read_json_file(Path(text)))
    except BadInput as error:
        raise BadInput(f"--since {text}: {error.message}", advice=error.advice) from error


# --- held to checkpoints


def _read_checkpoints(sources: Sequence[str], ledger: str) -> list[Checkpoint]:
    from aver.ledger.checkpoint_files import read_checkpoints

    return [one for source in sources for one in read_checkpoints(Path(source), ledger)]


def _apply_checkpoints(
    verdict: Verdict,
    ledger: Ledger,
    checkpoints: Sequence[Checkpoint],
    given: argparse.Namespace,
    keys: list[PublicKey],
) -> Verdict:
    from aver.ledger.checkpoint import extend_with_checkpoints, select_checkpoints

    own = select_checkpoints(checkpoints, ledger.id, ledger.tenant)
    others_only = all(one.ledger == ledger.id and one.tenant != ledger.tenant for one in own)
    if not own or (others_only and given.tenant is None):
        return verdict
    return extend_with_checkpoints(verdict, ledger, own, ledger.ring(keys))


# --- as JSON


def verdicts_to_dict(found: Sequence[TargetVerdict]) -> dict[str, Any]:
    """One verdict as it is; several with their sum in front and themselves under `tenants` or `things`."""
    if len(found) == 1:
        return found[0].verdict.to_dict()
    from aver.verdict import worst_status

    verdicts = [answer.verdict for answer in found]
    bad = next((verdict.first_bad for verdict in verdicts if verdict.first_bad is not None), None)
    of_one_ledger = all(answer.thing is None for answer in found)
    listed = [
        {**({} if of_one_ledger else {"thing": answer.thing}), "tenant": answer.tenant, **answer.verdict.to_dict()}
        for answer in found
    ]
    return {
        "status": worst_status(verdict.status for verdict in verdicts),
        "records": sum(verdict.records for verdict in verdicts),
        "earlier": sum(verdict.earlier for verdict in verdicts),
        "chains": sum(verdict.chains for verdict in verdicts),
        "first_bad": None if bad is None else bad.to_dict(),
        "tenants" if of_one_ledger else "things": listed,
    }

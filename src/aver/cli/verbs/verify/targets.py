"""The verdicts that a command line of `aver verify` asks for. `aver.check` makes them."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from aver.cli.files import read_json_file
from aver.cli.options import Usage
from aver.cli.terminal import Progress
from aver.errors import BadInput
from aver.fast_dataclass import dataclass

if TYPE_CHECKING:
    from aver.keys import PublicKey
    from aver.ledger import Head
    from aver.verdict import Verdict

__all__ = ["LAST", "TargetVerdict", "read_key_options", "verdicts_to_dict", "verify_targets"]

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
    from aver.check import verify
    from aver.config import load_config

    tenant = given.tenant
    if given.deep:
        if thing != META:
            raise Usage("--deep goes with meta", advice="aver verify meta --deep; everything else is verified whole")
        # Every record of the tenant whose meta chain it is.
        thing, tenant = None, tenant or load_config().tenant
    with Progress("verifying") as progress:
        verdict = verify(
            thing,
            keys=read_key_options(given),
            level=given.level,
            require_pq=given.require_pq,
            tenant=tenant,
            ledger=given.ledger,
            since=_read_since(given.since),
            checkpoints=given.checkpoint,
            progress=progress,
        )
    if verdict.tenants:
        return [TargetVerdict(one, name) for name, one in verdict.tenants.items()]
    return [TargetVerdict(verdict)]


def read_key_options(given: argparse.Namespace) -> list[PublicKey]:
    """The keys to accept and no others; none where your own and those you know are meant."""
    from aver.keys import read_public_keys

    return [key for source in given.key for key in read_public_keys(source)]


def _read_since(text: str | None) -> Head | str | None:
    """`last` and COUNT:HASH as they are; the head in a file."""
    from aver.ledger import Head

    if text is None or text == LAST or (":" in text and not Path(text).exists()):
        return text
    try:
        return Head.from_dict(read_json_file(Path(text)))
    except BadInput as error:
        raise BadInput(f"--since {text}: {error.message}", advice=error.advice) from error


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

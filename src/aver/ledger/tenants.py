"""Verifying a whole ledger: every tenant, and every checkpoint that was given.

Each tenant has a verdict of its own. A tenant whose rows were all deleted is in no table any more; so the tenants that
checkpoints, or this machine's own notes, remember are verified as well.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from aver.keys import PublicKey
from aver.ledger.checkpoint import Checkpoint, extend_with_checkpoints, select_checkpoints
from aver.ledger.checkpoint_files import read_checkpoints
from aver.ledger.ledger import Ledger, list_tenants, open_ledger
from aver.ledger.seen_heads import seen_tenants
from aver.ledger.verified_heads import VerifiedChains, verified_tenants
from aver.ledger.verify import LedgerExamination, Since, examine_ledger
from aver.verdict import Verdict, VerifyOptions

__all__ = ["KnownChains", "apply_checkpoints", "examine_tenants"]

KnownChains = Mapping[str, VerifiedChains] | Literal["last"] | None
"""Where to go on from: by tenant the chains verified before, or those verified last on this machine."""


def examine_tenants(
    url: str | Path | None,
    terms: VerifyOptions,
    *,
    keys: Sequence[PublicKey] = (),
    known: KnownChains = None,
    checkpoints: Sequence[Path] = (),
) -> dict[str, LedgerExamination]:
    """The examination of every tenant by its name, or only of the tenant in `terms`."""
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
    examined = {}
    for tenant in tenants:
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
            )
            is_chosen = terms.tenant is not None
            verdict = apply_checkpoints(one.verdict, ledger, found, keys, is_only_tenant=is_chosen)
            examined[tenant] = one._replace(verdict=verdict)
    return examined


def apply_checkpoints(
    verdict: Verdict,
    ledger: Ledger,
    checkpoints: Sequence[Checkpoint],
    keys: Iterable[PublicKey],
    *,
    is_only_tenant: bool,
) -> Verdict:
    """The verdict on a tenant, extended by a comparison with its checkpoints."""
    own = select_checkpoints(checkpoints, ledger.id, ledger.tenant)
    others_only = all(one.ledger == ledger.id and one.tenant != ledger.tenant for one in own)
    if not own or (others_only and not is_only_tenant):
        return verdict
    return extend_with_checkpoints(verdict, ledger, own, ledger.ring(keys))

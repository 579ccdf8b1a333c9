"""A deed that a hook tells of goes into the ledger, by itself and at once.

It has the key that a follower of the transcript gives it. Whoever comes second adds to what is there: nothing that a
hook saw is left out because somebody else was faster, and nothing is sealed twice.
"""

from __future__ import annotations

from aver.capsule.sealed import Sealed
from aver.errors import BadInput, Exists
from aver.ingest.deed import Deed
from aver.ingest.drafting import Draft, chain_of, drafted, key_of
from aver.ingest.later import bare, child_of, following, hook_key, records_under, tells_the_same
from aver.ledger import Ledger

__all__ = ["seal_deed"]


def seal_deed(ledger: Ledger, tool: str, session: str, deed: Deed) -> Sealed:
    """Seal what a hook told of. If it is sealed already, what the hook saw is added to that; of what another hook told,
    only where that is something else."""
    key, chain = key_of(tool, session, deed.key), chain_of(tool, session, deed.agent)
    draft = drafted(tool, session, deed)
    try:
        return _appended(ledger, chain, key, draft)
    except BadInput as error:  # No capsule can hold it. As much of it as one can is more than nothing.
        return _appended(ledger, chain, key, bare(draft, error))


def _appended(ledger: Ledger, chain: str, key: str, draft: Draft) -> Sealed:
    for name in (key, f"{key}@{chain}"):  # The second where another agent has a call of the same name.
        try:
            return ledger.append(chain, draft.capsule, key=name, blobs=draft.blobs)
        except Exists as exists:
            first: Sealed = exists.record
            if first.chain == chain:
                break
    if draft.capsule.type == "tool" and records_under(first.to_dict()) is not None:
        more = child_of(first, draft, "hook")
    elif tells_the_same(first, draft):
        return first
    else:
        more = following(draft, first)
    return ledger.append_many(chain, [more.capsule], keys=[hook_key(name, draft)], blobs=more.blobs)[0]

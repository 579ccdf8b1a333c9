"""Whose keys take part in a trace, as far as the verifier knows.

A trace binds each agent to the key by which it joined. The operator seals that join. So a join shows which key speaks
for an agent in this trace. It does not show who holds the key: an operator can make up an auditor "elsewhere", with a
key of its own. Only the keys that the verifier knows tell the owner. So the verdict names each participant

* whose key the verifier does not know: `UNKNOWN_SIGNER`, not checked;
* under whose name the verifier knows another key, or whose key it knows under another name: a warning.

A key that the verifier knows without a name (`aver keys trust HEX`, `--key HEX`) counts for any name: the verifier has
chosen it. The operator's key is not judged here. Without it, nothing of the trace is judged at all.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from aver.fast_dataclass import dataclass
from aver.keys.ring import Ring
from aver.protocol.events import OPERATOR
from aver.protocol.standings import Participant
from aver.verdict.verdict import CheckStatus


@dataclass(frozen=True, slots=True)
class OwnerProblem:
    """A participant whose key does not tell the verifier who it is."""

    participant: Participant
    status: CheckStatus
    words: str


def find_owner_problems(bound: Mapping[str, Participant], ring: Ring) -> Iterator[OwnerProblem]:
    """Yield the participants whose keys the verifier does not know by their name: first those with a wrong one."""
    problems = [problem for each in bound.values() if (problem := _find_problem(each, ring)) is not None]
    yield from (each for each in problems if each.status == "warning")
    yield from (each for each in problems if each.status != "warning")


def _find_problem(participant: Participant, ring: Ring) -> OwnerProblem | None:
    if participant.role == OPERATOR:
        return None
    key, agent = participant.key, participant.agent
    who = f"{agent} ({participant.role})"
    if any(known.ed25519 == key.ed25519 for known in ring.lookup(key.fingerprint)):
        entry = ring.entry_of(key)
        if entry is None or entry.identity == agent:
            return None
        words = f"{who} acts by the key {key.fingerprint}, which is known here as the key of {entry.identity}"
        return OwnerProblem(participant, "warning", words)
    option = f"--key {key.ed25519}" if ring.closed else f"aver keys trust {key.ed25519}"
    advice = f"if its owner confirms all digits of it: {option}"
    others = [entry.fingerprint for entry in (*ring.entries, *ring.published) if entry.identity == agent]
    if others:
        words = f"{who} acts by the key {key.fingerprint}, and the key known here under this name is {others[-1]}"
        return OwnerProblem(participant, "warning", f"{words}. It may be somebody else; {advice}")
    words = f"the key {key.fingerprint} of {who} is not known here, so nobody vouches for whose it is"
    return OwnerProblem(participant, "not_checked", f"{words}; {advice}")

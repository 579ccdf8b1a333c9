"""The state that a decision leaves to the session's next one: pure functions.

    labels          what the session may have seen; `secret` once that may have been one
    changed         what it has changed since a person last approved one of its changes, counted as `risk.features` does
    changed_files   the source files of those changes
    unseen          the files that it changed, as absolute paths, and that nobody has looked at since
    asked           the calls that were left to the person at the client, while nobody has said what came of them:
                    [{gate_id, call_id, labels, unseen}]
    git             what git keeps of this session: {fetched, stored}

**Only what may have happened counts.** A decision is followed by one of three things:

    yes      it passed, a person approved it, nothing was held back (`observe`), or nobody says what the caller did
    asked    the hook answered `ask`: the client asks its person. The call may happen
    no       it was refused, or the caller held it back (`answer: deny`)

A call of the second kind counts as made, and `asked` notes what only it has added to `labels` and `unseen`. If the
client's own record says later that the call was refused, `state_after_refusal` takes that back
(`gate.outcomes.refusals`). If another call adds the same, it is not taken back any more.

A call that passed can show a secret, too: `grep -r KEY .` prints a line of `.env`. The record of its result says that a
secret was masked in it, and `state_after_secret` adds the label (`gate.outcomes.shown_secrets`).

**Seen and unseen.** A change is *seen* if a person approved it, in Aver or by a click in the client, or if Aver looked
at all its added lines and they reach nowhere (`effects.code_scan`). The content that a command writes is not known, so
it is unseen. Before code runs, Aver looks into the unseen files as they are then. Those that reach nowhere are seen
from then on, the others are asked about. The person who allows the run was told their names, so they are seen, too. The
list is bounded (`effects.workspace_code.UNSEEN_MAX`): beyond it, all files count as unseen.

**Code that git brings.** git may replace a file that was looked into by another version. `stored` are the files that
were unseen when a command put files into git's store; each has the digest of the content that a person last let run,
or an empty text. A command that takes files out of the store makes them unseen again. `fetched` says that commits came
from elsewhere: then such a command brings code that nobody has seen (`workspace_code.ARRIVED`), also if a person
allowed the command, which does not show the code.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal

from aver.fast_dataclass import NamedTuple
from aver.gate.action import Facts
from aver.gate.decision import Decision
from aver.gate.decision_record import OBSERVE, REFUSING_DECISIONS
from aver.gate.effects.code_scan.language import find_language
from aver.gate.effects.findings import Effect
from aver.gate.effects.workspace_code import (
    ALL_FILES,
    ARRIVED,
    ARRIVED_REASON,
    MANY_REASON,
    UNSEEN_MAX,
    is_clean,
    runs_code,
)
from aver.gate.risk.features import Features, MeasuredChange

SECRET_LABEL = "secret"  # noqa: S105 - a label, not one
"""The label of a session that may have seen a secret."""

FILES_MAX = 1000
"""Source files of a session that are kept by name. A session that changes more counts as unclear."""

ASKED_MAX = 50
"""Calls that are kept in `asked`. What an older one added stays, whatever came of it."""

EMPTY_SESSION: Mapping[str, Any] = {
    "labels": [],
    "changed": {},
    "changed_files": [],
    "unseen": [],
    "asked": [],
    "git": {},
}
"""The state of a session that has done nothing."""

REQUIRED_STATE = frozenset({"labels", "changed", "changed_files"})
"""The parts of a state that every version of Aver has sealed."""

Happening = Literal["yes", "asked", "no"]


def may_happen(decision: str, mode: str, answer: str) -> Happening:
    """Return whether a call may happen after a decision. `answer` is the caller's; empty where nobody says."""
    if mode == OBSERVE:
        return "yes"
    if decision in REFUSING_DECISIONS:
        return "no"
    if decision == "human_review":
        return "no" if answer == "deny" else "asked" if answer == "ask" else "yes"
    return "yes"


def next_session_state(
    facts: Facts, decision: Decision, *, mode: str = "enforce", answer: str = "", call_id: str = ""
) -> dict[str, Any] | None:
    """Return what the session's next decision must know, given this one. Effects to come count as done.

    `mode` and `answer` are those of the decision's record. None where the action was refused without being judged:
    then the state before it holds.
    """
    if decision.policy is None:
        return None
    happens = may_happen(decision.decision, mode, answer)
    marks_secret = happens != "no" and decision.effects is not None and SECRET_LABEL in decision.effects.classes
    labels = [SECRET_LABEL] if marks_secret else []
    changed = MeasuredChange(Features.from_dict(facts.changed), facts.changed_files)
    own = None if decision.estimate is None else decision.estimate.change
    if own is not None and decision.decision == "human_approved":  # A person has looked: counting begins anew.
        changed = MeasuredChange(Features(), ())
    elif own is not None and decision.decision == "pass":
        changed = own.plus(changed)
        if len(changed.sources) > FILES_MAX:
            changed = MeasuredChange(changed.features.plus(Features(unclear=1)), changed.sources[:FILES_MAX])
    unseen = _next_unseen(facts, decision, happens)
    asked = _next_asked(facts, decision.gate_id, call_id, happens, labels, unseen)
    return {
        "labels": sorted({*facts.labels, *labels}),
        "changed": changed.features.to_dict() if changed.features != Features() else {},
        "changed_files": list(changed.sources),
        "unseen": unseen.after,
        "asked": asked,
        "git": _next_git(facts, decision, happens, unseen.may_store),
    }


# --- calls that the client asks about


def _next_asked(
    facts: Facts, gate_id: str, call_id: str, happens: Happening, labels: list[str], unseen: _UnseenChange
) -> list[dict[str, Any]]:
    """Return the calls whose end is open. Of each it has the labels and files that no other call has added."""
    entries = [dict(entry) for entry in facts.asked]
    if happens == "yes":
        # These are there whatever came of the calls before.
        entries = [_without(entry, labels, unseen.marked) for entry in entries]
    elif happens == "asked":
        open_labels = {label for entry in entries for label in entry["labels"]}
        open_files = {path for entry in entries for path in entry["unseen"]}
        entry = {
            "gate_id": gate_id,
            "call_id": call_id,
            "labels": [label for label in labels if label not in facts.labels or label in open_labels],
            "unseen": [path for path in unseen.marked if path not in facts.unseen or path in open_files],
        }
        entries.append(entry)
    left = frozenset(unseen.after)
    entries = [{**entry, "unseen": [path for path in entry["unseen"] if path in left]} for entry in entries]
    entries = [entry for entry in entries if entry["labels"] or entry["unseen"]]
    return _settle(entries[1:], entries[0]) if len(entries) > ASKED_MAX else entries


def _settle(entries: Iterable[Mapping[str, Any]], made: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the calls with an open end, after one more call counts as made for good."""
    left = [_without(entry, made["labels"], made["unseen"]) for entry in entries]
    return [entry for entry in left if entry["labels"] or entry["unseen"]]


def _without(entry: Mapping[str, Any], labels: Collection[str], unseen: Collection[str]) -> dict[str, Any]:
    return {
        **entry,
        "labels": [label for label in entry["labels"] if label not in labels],
        "unseen": [path for path in entry["unseen"] if path not in unseen],
    }


def state_after_refusal(state: Mapping[str, Any], gate_id: str) -> dict[str, Any]:
    """Return the session's state after the client refused a call that the decision `gate_id` had asked about."""
    known = [dict(entry) for entry in state.get("asked") or ()]
    refused = [entry for entry in known if entry["gate_id"] == gate_id]
    kept = [entry for entry in known if entry["gate_id"] != gate_id]

    def drop(name: str) -> list[str]:
        added = {one for entry in refused for one in entry[name]}
        still = {one for entry in kept for one in entry[name]}
        return [one for one in state.get(name) or () if one not in added or one in still]

    return {
        "labels": drop("labels"),
        "changed": dict(state["changed"]),
        "changed_files": list(state["changed_files"]),
        "unseen": drop("unseen"),
        "asked": kept,
        "git": dict(state.get("git") or {}),
    }


def state_after_secret(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session's state after the result of a call showed a secret, whatever comes of the open calls."""
    asked = [_without(entry, (SECRET_LABEL,), ()) for entry in state.get("asked") or ()]
    return {
        "labels": sorted({*state["labels"], SECRET_LABEL}),
        "changed": dict(state["changed"]),
        "changed_files": list(state["changed_files"]),
        "unseen": list(state.get("unseen") or ()),
        "asked": [entry for entry in asked if entry["labels"] or entry["unseen"]],
        "git": dict(state.get("git") or {}),
    }


def state_after_click(state: Mapping[str, Any], decided: Mapping[str, Any]) -> dict[str, Any]:
    """Return the session's state after the person at the client let a call through that `decided` asked about.

    `decided` is `outcome.result` of the decision. A click counts as an approval does: the counting of changes begins
    anew after a change, and the files that the person was asked about are seen.
    """
    facts, after = decided.get("facts") or {}, decided.get("session") or {}
    basis = decided.get("basis") or {}
    # A person saw the diff of an edit, and the text that a command shows while it writes it.
    is_change = basis.get("diff") is not None or basis.get("written") is not None
    before, code = facts.get("unseen") or [], facts.get("code") or {}
    shown = {path for path in before if path not in (ALL_FILES, ARRIVED)} if code else set()
    reasons = decided.get("reasons") or ()
    shown |= {ARRIVED} if ARRIVED_REASON in reasons else set()
    shown |= {ALL_FILES} if MANY_REASON in reasons else set()
    # The files that this decision added to the list. Content that a command writes and does not show was not seen.
    added = [path for path in after.get("unseen") or [] if path not in before]
    shown |= {path for path in added if path not in (ALL_FILES, ARRIVED) and (is_change or not _is_code(path))}
    git = dict(state.get("git") or {})
    if "restore" in decided.get("git_moves", ()):
        shown -= {ARRIVED, *(git.get("stored") or ())}  # The person saw the command, and not what git brought.
    if code and git.get("stored"):
        git["stored"] = _note_digests(git["stored"], code)
    known = [_without(entry, (), shown) for entry in state.get("asked") or ()]
    asked = [entry for entry in known if entry["gate_id"] != decided.get("gate_id")]
    for made in known:
        if made["gate_id"] == decided.get("gate_id"):
            asked = _settle(asked, made)
    return {
        "labels": list(state["labels"]),
        "changed": {} if is_change else dict(state["changed"]),
        "changed_files": [] if is_change else list(state["changed_files"]),
        "unseen": [path for path in state.get("unseen") or [] if path not in shown],
        "asked": [entry for entry in asked if entry["labels"] or entry["unseen"]],
        "git": git,
    }


# --- files that nobody has looked at


class _UnseenChange(NamedTuple):
    """The unseen files after a decision, and those that its action makes unseen."""

    after: list[str]
    marked: list[str]
    may_store: tuple[str, ...] = ()
    """Those that git may put into its store: the files that were unseen before, and that other programs write."""


def _next_unseen(facts: Facts, decision: Decision, happens: Happening) -> _UnseenChange:
    """Return the files that are unseen after a decision. A change that may still happen counts as made."""
    unseen = dict.fromkeys(facts.unseen)
    if happens == "no" or decision.effects is None:
        return _UnseenChange(list(unseen), [])
    # 1. The run of code: files that were looked into and reach nowhere are seen; with an approval, all of them are.
    is_approved = decision.decision == "human_approved"
    if is_approved and runs_code(decision.effects):
        unseen = {}
    elif facts.code and decision.decision == "pass":
        unseen = {path: None for path in unseen if not _is_seen(facts.code.get(path))}
    # 2. The files that this action changes, but those whose added lines reach nowhere.
    own = None if decision.estimate is None else decision.estimate.change
    seen = set() if own is None else set(own.clean)
    if own is not None and is_approved:
        # A person saw these lines. Of a file that was unseen before, he saw the whole only if this creates it.
        seen |= {path for path in own.reaching if path not in facts.unseen or path in own.created}
        unseen = {path: None for path in unseen if path not in own.created}
    marked: dict[str, None] = {}
    for effect in decision.effects.effects:
        is_seen = effect.target in seen or (is_approved and own is None and not _is_code(effect.target))
        writes = effect.name in _WRITING_EFFECTS or (effect.name == "scratch" and effect.where == "temporary")
        # A copy, or a file under a new name, was not looked at there. A mode changes no content.
        writes = writes or (effect.name == "file-state" and effect.words[:1] != ("chmod",))
        if writes and effect.where and not is_seen and _may_run(effect):
            marked[effect.target or ALL_FILES] = None
    # 3. The files that git brings back, or brings from elsewhere.
    if "restore" in decision.effects.git_moves:
        marked.update(dict.fromkeys(facts.git.get("stored") or ()))
        if facts.git.get("fetched") or "fetch" in decision.effects.git_moves:
            marked[ARRIVED] = None
    unseen.update(marked)
    if ALL_FILES in unseen or len(unseen) > UNSEEN_MAX:
        return _UnseenChange([ALL_FILES], [ALL_FILES], (ALL_FILES,))
    by_git = {effect.target for effect in decision.effects.effects if effect.words[:1] and _is_git(effect.words[0])}
    return _UnseenChange(list(unseen), list(marked), (*facts.unseen, *(path for path in marked if path not in by_git)))


def _is_git(word: str) -> bool:
    """Whether this first word of an effect names git: its target is a directory, whose files git has already."""
    return word.rpartition("/")[2].partition(" ")[0] == "git"


_WRITING_EFFECTS = frozenset({"write", "unknown"})


def _is_seen(fact: Mapping[str, Any] | None) -> bool:
    """Whether a file was looked into and reaches nowhere. One that is gone may come back, as `git stash pop` does."""
    return fact is not None and bool(fact.get("sha256")) and is_clean(fact)


def _may_run(effect: Effect) -> bool:
    """Whether something may run a file without being told its name. Nothing looks for code in temporary directories."""
    language = find_language(effect.target)
    return language != "data" and (effect.where != "temporary" or language != "unknown")


def _is_code(path: str) -> bool:
    """Whether a path is by its name a file of code. Other targets of commands are mostly directories."""
    return find_language(path) not in ("unknown", "prose", "data")


# --- files that git keeps


def _next_git(facts: Facts, decision: Decision, happens: Happening, may_store: Collection[str]) -> dict[str, Any]:
    """Return what git keeps of the session after a decision. `may_store` are the unseen files that it may get."""
    before = dict(facts.git)
    if happens == "no" or decision.effects is None:
        return before
    stored = dict(before.get("stored") or {})
    if decision.decision == "human_approved" and facts.code:
        stored = _note_digests(stored, facts.code)
    moves = decision.effects.git_moves
    if "store" in moves:
        stored.update({path: stored.get(path, "") for path in may_store if path != ARRIVED})
        if len(stored) > UNSEEN_MAX:
            stored = {ALL_FILES: ""}
    found = {"fetched": bool(before.get("fetched")) or "fetch" in moves, "stored": stored}
    return {name: value for name, value in found.items() if value}


def _note_digests(stored: Mapping[str, str], code: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """Return the stored files, each with the digest of its content if a person has now let that run."""
    return {path: str((code.get(path) or {}).get("sha256") or digest) for path, digest in stored.items()}

"""Holds an approval to what a person was shown. Pure.

The digest names the action, and the signed statement covers the whole request. Aver compares three more things:

    find_request_problem    what the request says of risk, rules and reasons is what the gate decided when it asked
    find_worse              the action is judged no worse now: no other rule, effect or label, and no higher risk
    find_other_words        the action that used the approval has the description that was shown, where that counts

The records that are compared are those of decisions, as `outcome.result` has them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from typing import Any, get_args

from aver.errors import AverError, NotFound
from aver.gate.action import FIRST_DIGEST_VERSION, is_description_needed
from aver.gate.approvals.request import ApprovalRequest
from aver.gate.decision import RiskWord, Thresholds, find_risk_word

NO_WORDS = hashlib.sha256(b"").hexdigest()


def find_request_problem(request: ApprovalRequest, asked: Mapping[str, Any]) -> str | None:
    """Return in what a request differs from the decision by which the gate asked; None where it does not."""
    content, policy = request.content, asked["policy"] or {"rules": [], "bundle": None}
    low, high = asked["interval"] or (None, None)
    risk = {"score": asked["score"], "low": low, "high": high, "observations": asked["observations"]}
    found = {"risk": None if low is None else risk, "rules": policy["rules"], "bundle": policy["bundle"]}
    other = [name for name, value in found.items() if content[name] != value]
    # A record's reasons are masked, the request's are not.
    reasons = asked["reasons"]
    if not asked["masked"]["count"] and content["reasons"][: len(reasons)] != reasons:
        other.append("reasons")
    return f"it shows another {' and another '.join(other)} than the gate's decision has" if other else None


def find_worse(asked: Mapping[str, Any], now: Mapping[str, Any]) -> str | None:
    """Return what is worse about an action now than when a person was asked; None where nothing is.

    `now` needs no more of a decision's record than its policy, effects, facts, interval and thresholds.
    """
    # The call that was asked about may have marked the session itself.
    known = [label for name in ("facts", "session") for label in (asked.get(name) or {}).get("labels") or ()]
    for name, before, after in (
        ("rule", *((one["policy"] or {}).get("rules") or () for one in (asked, now))),
        ("effect", *(one["effects"] or () for one in (asked, now))),
        ("label", known, now["facts"].get("labels") or ()),
    ):
        if more := sorted(set(after) - set(before)):
            return f"a person was not asked about the {name} {', '.join(more)}"
    before, after = (find_risk_word(one["interval"], Thresholds(**one["thresholds"])) for one in (asked, now))
    words = get_args(RiskWord)
    is_worse = words.index(after) > words.index(before)
    return f"the risk is {after} now, and was {before} when a person was asked" if is_worse else None


def find_other_words(request: ApprovalRequest, used: Mapping[str, Any], fetch: Callable[[str], bytes]) -> str | None:
    """Return why the words of an action are not those that were shown; None where they are, or do not count.

    An earlier version of the digest left out words that say what would happen. `fetch` returns the bytes of a blob, or
    raises `NotFound`.
    """
    if request.digest_version == FIRST_DIGEST_VERSION or not is_description_needed(used["action"]):
        return None
    try:
        words = request.read_beside(fetch)["description"].encode()
    except NotFound:
        raise
    except (AverError, AttributeError, KeyError, TypeError, ValueError):
        return "the words that the person was shown cannot be read"
    # The decision's own words may be masked. Their hash is that of the words that were judged.
    if (used["instruction_sha256"] or NO_WORDS) != hashlib.sha256(words).hexdigest():
        return "its words are not those that the person was shown"
    return None

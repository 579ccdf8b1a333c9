"""Aver's own corpus (`corpus/*.json`): edge and negative cases that any implementation can run."""

from __future__ import annotations

import copy
import datetime
import decimal
import enum
import hashlib
import itertools
import json
import math
import sys
import types
import uuid
from collections import namedtuple
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import orjson
import pytest
from nacl.signing import SigningKey

from aver import (
    BadInput,
    Capsule,
    InvalidCapsule,
    NotCanonical,
    PublicKey,
    Ring,
    Sealed,
    Verdict,
    canonical_bytes,
    parse_uri,
    validate,
)
from aver.capsule.json_reader import DuplicateKey, Unreadable, read_json
from aver.capsule.validate import is_plainly_valid, normalise_values
from aver.keys import statement_bytes
from aver.keys.algorithms import verify_ed25519
from aver.keys.passkey import Passkey, PasskeySignature, passkey_problem, statement_challenge
from aver.verdict import ChainJudge, Rules, conclude
from aver.verdict.record import read_record
from support.many_cases import for_each

CORPUS = Path(__file__).parent / "corpus"


def load(name: str) -> Any:
    return json.loads((CORPUS / name).read_text("utf-8"))


def name_of(case: dict[str, Any]) -> str:
    return str(case.get("name", case.get("uri")))


def test_negative_cases_outnumber_positive_ones() -> None:
    positive = len(load("canonical.json")["cases"]) + len(load("reading.json")["readable"])
    positive += len(load("validation.json")["valid"]) + len(load("uri.json")["valid"])
    positive += sum(case["status"] != "failed" for case in load("seals.json")["cases"])
    negative = len(load("not-canonical.json")["cases"]) + len(load("reading.json")["unreadable"])
    negative += len(load("validation.json")["invalid"]) + len(load("uri.json")["invalid"])
    negative += sum(case["status"] == "failed" for case in load("seals.json")["cases"])
    assert negative > 2 * positive > 200


@pytest.mark.parametrize("name", sorted(path.name for path in CORPUS.glob("*.json")))
def test_every_case_has_a_name_of_its_own(name: str) -> None:
    for cases in load(name).values():
        if isinstance(cases, list):
            names = [case.get("name", case.get("uri")) for case in cases if "ed25519" not in case]
            assert len(names) == len(set(names))


@for_each(load("canonical.json")["cases"], name_of)
def test_canonical_form(case: dict[str, Any]) -> None:
    canonical = canonical_bytes(read_json(case["input"]))
    assert canonical.decode() == case["canonical"]
    assert hashlib.sha3_256(canonical).hexdigest() == case["sha3_256"]
    assert canonical_bytes(read_json(canonical)) == canonical


class StrColour(enum.StrEnum):
    RED = "red"


class IntColour(enum.IntEnum):
    RED = 1


class Colour(enum.Enum):
    RED = 1


class Text(str):
    __slots__ = ()


@dataclass
class Data:
    x: int = 1


def deep(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return value


def circular() -> Any:
    value: dict[str, Any] = {}
    value["self"] = [value]
    return value


BUILDERS: dict[str, Any] = {
    "nan": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "minus-infinity": lambda: float("-inf"),
    "lone-high-surrogate": lambda: "\ud800",
    "lone-low-surrogate": lambda: "\udfff",
    "reversed-surrogates": lambda: "\udc00\ud800",
    "surrogate-in-key": lambda: {"\ud800": 1},
    "integer-key": lambda: {10: 1, 9: 2},
    "float-key": lambda: {1.5: 1},
    "boolean-key": lambda: {True: 1},
    "null-key": lambda: {None: 1},
    "bytes-key": lambda: {b"k": 1},
    "tuple-key": lambda: {(1, 2): 1},
    "str-enum-key": lambda: {StrColour.RED: 1},
    "bytes": lambda: b"x",
    "bytearray": lambda: bytearray(b"x"),
    "set": lambda: {1},
    "frozenset": lambda: frozenset({1}),
    "datetime": lambda: datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC),
    "date": lambda: datetime.date(2026, 1, 1),
    "time": lambda: datetime.time(1),
    "uuid": lambda: uuid.UUID(int=1),
    "enum": lambda: Colour.RED,
    "str-enum": lambda: StrColour.RED,
    "int-enum": lambda: IntColour.RED,
    "dataclass": lambda: Data(),
    "namedtuple": lambda: namedtuple("Pair", "a b")(1, 2),
    "str-subclass": lambda: Text("x"),
    "fragment": lambda: orjson.Fragment(b'{"a":1,"a":2}'),
    "decimal": lambda: decimal.Decimal(1),
    "complex": lambda: 1j,
    "generator": lambda: (x for x in ()),
    "mapping-proxy": lambda: types.MappingProxyType({}),
    "function": lambda: len,
    "circular": circular,
    "depth-201": lambda: deep(201),
    "depth-100000": lambda: deep(100_000),
    "integer-with-5000-digits": lambda: 10**5000,
}


@for_each(load("not-canonical.json")["cases"], name_of)
def test_values_without_canonical_form(case: dict[str, Any]) -> None:
    if case["build"] == "confidence-beyond-float":
        with pytest.raises(NotCanonical) as caught:
            canonical_bytes({"reasoning": {"confidence": 2**1024}})
        assert caught.value.path == "reasoning.confidence"
        return
    value = BUILDERS[case["build"]]()
    for beside in (0, 1e-9):
        with pytest.raises(NotCanonical) as caught:
            canonical_bytes({"outcome": {"metrics": {"beside": beside, "x": value}}})
        if not case["build"].startswith(("depth", "circular")):
            assert caught.value.path == "outcome.metrics.x"
    while isinstance(value, list):  # freeing a deep list all at once would overflow the stack
        value = value[0]


def raw(case: dict[str, Any]) -> bytes:
    if "hex" in case:
        return bytes.fromhex(case["hex"])
    return "".join(text * times for text, times in case["parts"]).encode()


@for_each(load("reading.json")["unreadable"], name_of)
def test_unreadable_bytes(case: dict[str, Any]) -> None:
    with pytest.raises(Unreadable) as caught:
        read_record(raw(case))
    assert isinstance(caught.value, DuplicateKey) == (case["code"] == "DUPLICATE_KEY")
    judge = ChainJudge(Rules(Ring.pin(())), start=None)
    judge.judge(Sealed(raw(case), "0" * 64, ""))
    assert [finding.code for finding in judge.finish().findings] == [case["code"]]


@for_each(load("reading.json")["readable"], name_of)
def test_readable_bytes(case: dict[str, Any]) -> None:
    content, canonical, _ = read_record(raw(case))
    assert content == read_json(raw(case))
    assert canonical == case["canonical"]


SPECIAL = {"nan": float("nan"), "infinity": float("inf"), "minus-infinity": float("-inf")}


def changed(case: dict[str, Any]) -> dict[str, Any]:
    content = copy.deepcopy(load("validation.json")["base"])
    for path, value in {**case.get("set", {}), **{p: SPECIAL[v] for p, v in case.get("special", {}).items()}}.items():
        place, key = at(content, path)
        place[key] = value
    for path in case.get("delete", ()):
        place, key = at(content, path)
        del place[key]
    return content


def at(content: Any, path: str) -> tuple[Any, Any]:
    *outer, last = path.split(".")
    for part in outer:
        content = content[int(part)] if isinstance(content, list) else content[part]
    return content, last


@for_each(load("validation.json")["valid"], name_of)
def test_valid_capsules(case: dict[str, Any]) -> None:
    content = changed(case)
    validate(content)
    validate(Capsule.from_dict(content))


@for_each(load("validation.json")["invalid"], name_of)
def test_invalid_capsules(case: dict[str, Any]) -> None:
    with pytest.raises(InvalidCapsule) as caught:
        validate(changed(case))
    assert (caught.value.category, caught.value.field) == (case["category"], case["field"])
    assert str(caught.value)


def verdict_on(content: dict[str, Any]) -> Verdict:
    """The verdict on a capsule that a trusted key sealed just as it is."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
    digest = hashlib.sha3_256(text).hexdigest()
    key = SigningKey(bytes(32))
    trusted = PublicKey(key.verify_key.encode().hex())
    judge = ChainJudge(Rules(Ring.pin([trusted])), start=None)
    signature = key.sign(digest.encode()).signature.hex()
    judge.judge(Sealed(text, digest, signature, signed_by=trusted.fingerprint))
    return conclude("capsule", judge.finish())


@for_each(load("validation.json")["valid"], name_of)
def test_a_valid_capsule_is_verified(case: dict[str, Any]) -> None:
    verdict = verdict_on(normalise_values(changed(case)))
    assert (verdict.status, [finding.words for finding in verdict.findings]) == ("verified", [])


STRICTER_THAN_CPS = {
    # CPS does not forbid further keys.
    *("trigger-unknown-key", "context-unknown-key", "reasoning-unknown-key", "authority-unknown-key"),
    *("execution-unknown-key", "outcome-unknown-key", "unknown-top-level-key", "option-unknown-key"),
    *("tool-call-unknown-key", "seal-key-hash", "seal-key-signature", "seal-key-signed_at"),
    # JavaScript writes milliseconds.
    *("timestamp-milliseconds", "timestamp-zero-fraction"),
    # Scores that languages write differently, though they lie between 0 and 1.
    *("confidence-tiny", "confidence-smallest", "option-feasibility-1e-09"),
    # The published vectors have rejected options without a reason, and CPS calls `options_considered` a shorthand.
    *("rejected-without-reason", "rejected-with-blank-reason", "considered-not-the-descriptions"),
    *("considered-in-another-order", "considered-without-options", "options-without-considered"),
}
"""Cases that Aver does not write, and reads without a remark."""


@pytest.mark.more
@for_each(load("validation.json")["invalid"], name_of)
def test_an_invalid_capsule_is_never_verified(case: dict[str, Any]) -> None:
    verdict = verdict_on(changed(case))
    if case["name"] == "missing-spec_version":  # Older records have none. The report says so.
        assert "cps without spec_version: 1" in str(verdict.to_dict())
        return
    if case["name"] in STRICTER_THAN_CPS:
        assert verdict.status == "verified"
        return
    assert verdict.status in {"failed", "qualified"}
    if verdict.status == "qualified":
        assert [(finding.check, finding.code) for finding in verdict.findings if finding.check == "profile"] == [
            ("profile", "NOT_VALID_CPS")
        ]
        assert case["field"].split(".")[-1] in str(verdict.findings)


@pytest.mark.more
def test_the_quick_check_knows_nothing_better_than_the_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each value of a capsule is replaced by each odd value. What the quick check accepts, the tables accept."""
    accepted = 0
    monkeypatch.setattr(sys.modules["aver.capsule.validate"], "is_plainly_valid", lambda _: False)
    odd = [None, "", "x", "policy", "tool", 0, -1, 1, 2**70, 0.0, -0.0, 0.00001, 0.5, 1.5, math.nan, math.inf, True]
    odd += [
        [],
        [1],
        ["x"],
        [{}],
        [None],
        {},
        {"a": 1},
        (),
        "0" * 64,
        str(uuid.UUID(int=4)),
        "2026-01-01T00:00:00+00:00",
    ]
    base = load("validation.json")["base"]
    call = {"tool": "t", "arguments": {}, "result": None, "success": True, "duration_ms": 0, "error": None}
    starts = [base, {**base, "execution": {**base["execution"], "tool_calls": [call, call]}}]
    for chosen, selected in itertools.product(((True, False), (False, False), (True, True)), ("", "a", "first", "z")):
        options = [
            {
                "id": name,
                "description": said,
                "pros": ["x"],
                "cons": [],
                "estimated_impact": {},
                "feasibility": 0.5,
                "risks": [],
                "selected": is_chosen,
                "rejection_reason": "too slow",
            }
            for name, said, is_chosen in zip("ab", ("first", "second"), chosen, strict=True)
        ]
        considered = [option["description"] for option in options]
        more = {"options": options, "options_considered": considered, "selected_option": selected}
        starts.append({**base, "reasoning": {**base["reasoning"], **more}})
    assert sum(map(is_plainly_valid, starts)) == 2 + 6
    for start in starts:
        for path in [*paths_of(start), ("extra",), ("outcome", "extra")]:
            for value in [*odd, DELETED]:
                content = copy.deepcopy(start)
                place(content, path, value)
                if is_plainly_valid(content):
                    accepted += 1
                    validate(content)
    assert accepted > 100


DELETED = object()


def paths_of(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    inner = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path for key, each in inner for path in ((*above, key), *paths_of(each, (*above, key)))]


def place(content: Any, path: tuple[Any, ...], value: Any) -> None:
    for key in path[:-1]:
        content = content[key]
    if value is not DELETED:
        content[path[-1]] = value
    elif isinstance(content, list) or path[-1] in content:
        del content[path[-1]]


@for_each(load("uri.json")["valid"], name_of)
def test_valid_uris(case: dict[str, Any]) -> None:
    assert parse_uri(case["uri"]).to_dict() == case["expected"]
    assert str(parse_uri(case["uri"])) == case["uri"]


@for_each(load("uri.json")["invalid"], name_of)
def test_invalid_uris(case: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        parse_uri(case["uri"])


def judged(case: dict[str, Any]) -> Verdict:
    keys = [PublicKey(**key) for key in case.get("keys", load("seals.json")["keys"])]
    judge = ChainJudge(Rules(Ring.pin(keys), require_pq=case.get("require_pq", False)), start=None)
    try:
        judge.judge(Sealed.from_sealed_json(case["sealed"]))
    except DuplicateKey as error:
        judge.unreadable(error.message, code="DUPLICATE_KEY")
    except BadInput as error:
        judge.unreadable(error.message)
    return conclude("case", judge.finish())


@for_each(load("seals.json")["cases"], name_of)
def test_seals(case: dict[str, Any]) -> None:
    verdict = judged(case)
    assert verdict.status == case["status"]
    assert [finding.code for finding in verdict.findings] == ([] if case["code"] is None else [case["code"]])


@for_each(load("ed25519.json")["cases"], name_of)
def test_ed25519_by_the_one_rule(case: dict[str, Any]) -> None:
    key = bytes.fromhex(case["public"]) if case["public"] == case["public"].lower() else b""
    assert verify_ed25519(key, case["message"].encode(), case["signature"]) is case["valid"]


PASSKEYS = load("passkeys.json")


@for_each(PASSKEYS["cases"], name_of)
def test_passkeys(case: dict[str, Any]) -> None:
    message = statement_bytes(PASSKEYS["purpose"], PASSKEYS["content"])
    assert statement_challenge(message) == PASSKEYS["challenge"]
    passkey, signed = Passkey.read(case["passkey"], "case"), PasskeySignature(**case["signature"])
    assert (passkey_problem(passkey, message, signed) is None) is case["valid"]

"""Audited functions and methods: an intent before, an outcome after, typed, nested, and the function unchanged."""

from __future__ import annotations

import functools
import inspect
import re
from dataclasses import dataclass
from typing import Any

import pytest

import aver
from aver import Authority, BadInput, InvalidCapsule, Ledger, Reasoning, Refused

CHAIN = "demo.audit"


def test_a_call_is_an_intent_and_an_outcome(ledger: Ledger, records: Any) -> None:
    seen: list[list[dict[str, Any]]] = []

    @aver.audit(chain=CHAIN, ledger=ledger)
    def refund(order: str, amount: int = 5, *notes: str, fast: bool = False, **more: Any) -> dict[str, Any]:
        """Give it back."""
        seen.append(records())
        return {"order": order, "n": amount, "ok": True}

    assert refund("A-1", 7, "x", more_of_it=[1.5, None]) == {"order": "A-1", "n": 7, "ok": True}
    intent, outcome = records()
    assert seen == [[intent]], "the intent was there before the body ran, and nothing else"
    assert intent["context"]["environment"]["audit"] == {
        "function": f"{__name__}.test_a_call_is_an_intent_and_an_outcome.<locals>.refund",
        "form": "function",
        "arguments": {"order": "A-1", "amount": 7, "notes": ["x"], "fast": False, "more": {"more_of_it": [1.5, None]}},
    }
    assert intent["outcome"]["status"] == "pending"
    assert intent["trigger"]["request"].endswith(
        'refund(order="A-1", amount=7, notes=["x"], fast=false, more={"more_of_it":[1.5,null]})'
    )
    assert outcome["parent_id"] == intent["id"]
    assert outcome["context"]["environment"]["aver"]["refs"] == {"intent": intent["id"]}
    assert outcome["outcome"]["result"] == {"order": "A-1", "n": 7, "ok": True}
    assert (outcome["outcome"]["status"], outcome["outcome"]["error"]) == ("success", None)
    assert outcome["trigger"]["correlation_id"] == intent["trigger"]["correlation_id"]
    assert re.fullmatch(r"[0-9a-f-]{36}", intent["trigger"]["correlation_id"])
    for record in (intent, outcome):
        assert record["context"]["environment"]["masked"] == {"rules": 4, "count": 0, "by_rule": {}}
    assert ledger.verify().status == "verified"


def test_a_keyword_call_is_recorded_as_fully_as_a_positional_one(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def work(task: str, size: int = 1) -> None: ...

    work("sweep", 2)
    work(size=2, task="sweep")
    first, _, second, _ = records()
    assert first["context"]["environment"]["audit"] == second["context"]["environment"]["audit"]
    assert first["trigger"]["request"] == second["trigger"]["request"] != ""


def test_the_function_stays_what_it_was(ledger: Ledger) -> None:
    def plain(a: int, *, b: str = "x") -> bool:
        """What it does."""
        return True

    audited = aver.audit(chain=CHAIN, ledger=ledger)(plain)
    assert inspect.signature(audited) == inspect.signature(plain)
    assert (audited.__name__, audited.__doc__, audited.__wrapped__) == ("plain", "What it does.", plain)  # type: ignore[attr-defined]
    assert not inspect.iscoroutinefunction(audited)
    with pytest.raises(TypeError, match=r"plain\(\): too many positional"):
        audited(1, 2)  # type: ignore[call-arg]
    assert ledger.chains() == [], "a call that could not be made leaves nothing"


class Till:
    def __init__(self) -> None:
        self.secret = "hunter2"

    @aver.audit(chain=CHAIN)
    def method(self, amount: int) -> int:
        return amount + 1

    @aver.audit(chain=CHAIN)
    @classmethod
    def outer_class_method(cls, amount: int) -> int:
        return amount + 2

    @classmethod
    @aver.audit(chain=CHAIN)
    def inner_class_method(cls, amount: int) -> int:
        return amount + 3

    @aver.audit(chain=CHAIN)
    @staticmethod
    def outer_static(amount: int) -> int:
        return amount + 4

    @staticmethod
    @aver.audit(chain=CHAIN)
    def inner_static(amount: int) -> int:
        return amount + 5

    @property
    @aver.audit(chain=CHAIN)
    def value(self) -> int:
        return 6

    def __repr__(self) -> str:
        raise RuntimeError("nobody asked")


def test_methods_of_every_sort(ledger: Ledger, records: Any) -> None:
    till = Till()
    with aver.audit_scope(ledger=ledger):
        results = [till.method(0), Till.outer_class_method(0), till.inner_class_method(0)]
        results += [till.outer_static(0), Till.inner_static(0), till.value]
    assert results == [1, 2, 3, 4, 5, 6]
    intents = records("audit.intent")
    described = [record["context"]["environment"]["audit"] for record in intents]
    assert [facts["function"].rpartition(".Till.")[2] for facts in described] == [
        *("method", "outer_class_method", "inner_class_method", "outer_static", "inner_static", "value")
    ]
    itself = {"$type": f"{__name__}.Till"}
    assert described[0]["arguments"] == {"self": itself, "amount": 0}
    assert described[1]["arguments"] == {"cls": {"$type": "type", "name": f"{__name__}.Till"}, "amount": 0}
    assert described[3]["arguments"] == {"amount": 0}
    assert described[5]["arguments"] == {"self": itself}
    assert "hunter2" not in str(intents)


def test_other_things_that_can_be_called(ledger: Ledger, records: Any) -> None:
    class Adder:
        def __call__(self, a: int) -> int:
            return a + 1

    def power(base: int, exponent: int) -> int:
        return int(base**exponent)

    how = aver.audit(chain=CHAIN, ledger=ledger)
    assert how(Adder())(1) == 2
    assert how(functools.partial(power, 2))(3) == 8
    assert how(len)([1, 2]) == 2
    arguments = [record["context"]["environment"]["audit"]["arguments"] for record in records("audit.intent")]
    assert arguments == [{"a": 1}, {"base": 2, "exponent": 3}, {"obj": [1, 2]}]


@pytest.mark.parametrize("thing", [Till, property(lambda self: 1), 5], ids=["class", "property", "number"])
def test_what_cannot_be_audited_is_refused(thing: Any) -> None:
    with pytest.raises(BadInput, match="decorates functions and methods"):
        aver.audit(chain=CHAIN)(thing)


def test_nested_calls_hang_together(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger, agent_id="helper")
    def inner(n: int) -> int:
        return n

    @aver.audit(chain=CHAIN, ledger=ledger, agent_id="boss", session_id="s1", source="cron", trigger="scheduled")
    def outer() -> int:
        return inner(1) + inner(2)

    assert outer() == 3
    assert inner(3) == 3
    intents = records("audit.intent")
    outer_intent, first, second, alone = intents
    assert [record["parent_id"] for record in intents] == [None, outer_intent["id"], outer_intent["id"], None]
    correlations = [record["trigger"]["correlation_id"] for record in intents]
    assert len(set(correlations[:3])) == 1
    assert correlations[3] not in correlations[:3]
    assert [record["context"]["agent_id"] for record in intents] == ["boss", "helper", "helper", "helper"]
    for record in (first, second):
        assert record["context"]["session_id"] == "s1"
        assert (record["trigger"]["type"], record["trigger"]["source"]) == ("scheduled", "cron")
    assert (alone["context"]["session_id"], alone["trigger"]["type"]) == (None, "system")
    kinds = [record["context"]["environment"]["aver"]["kind"] for record in records()]
    assert kinds[:6] == [
        "audit.intent",
        "audit.intent",
        "audit.outcome",
        "audit.intent",
        "audit.outcome",
        "audit.outcome",
    ]


def test_a_scope_says_who_acts(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, user_id="own")
    def work() -> None: ...

    parent = "0b7e4f3c-7f5d-4d39-9a53-0a4a5f0b8a1e"
    approved = Authority(type="human_approved", approver="person:ann")
    with aver.audit_scope(ledger=ledger, correlation_id="req-7", parent_id=parent, session_id="s", user_id="scope"):
        with aver.audit_scope(authority=approved, source="queue"):
            work()
        work()
    inner, _, outer, _ = records()
    assert inner["trigger"]["correlation_id"] == outer["trigger"]["correlation_id"] == "req-7"
    assert inner["parent_id"] == outer["parent_id"] == parent
    assert inner["trigger"]["user_id"] == "own", "what the function says itself goes before"
    assert (inner["trigger"]["source"], outer["trigger"]["source"]) == ("queue", "")
    assert (inner["authority"]["type"], inner["authority"]["approver"]) == ("human_approved", "person:ann")
    assert outer["authority"]["type"] == "autonomous"


def test_a_chain_and_reasoning_made_of_the_arguments(ledger: Ledger, records: Any) -> None:
    @aver.audit(
        chain=lambda arguments: aver.chain_name("session", arguments["session"]),
        ledger=ledger,
        reasoning=lambda arguments: Reasoning(analysis=f"asked for {arguments['what']}", confidence=0.5),
        type="agent",
        domain="billing",
        request="do it",
        environment={"region": "eu"},
    )
    def work(session: str, what: str) -> None: ...

    work("s-1", "tea")
    intent, outcome = records(chain="session.s-1")
    assert intent["reasoning"]["analysis"] == "asked for tea", "sealed before the effect"
    assert outcome["reasoning"]["analysis"] == ""
    assert (intent["type"], intent["domain"], intent["trigger"]["request"]) == ("agent", "billing", "do it")
    assert intent["context"]["environment"]["region"] == outcome["context"]["environment"]["region"] == "eu"


def test_a_program_that_lives_across_a_rotation_signs_with_the_new_key(ledger: Ledger, records: Any) -> None:
    """The reference went on with the old key and stamped the new one's name on it."""

    @aver.audit(chain=CHAIN, ledger=ledger)
    def work() -> None: ...

    work()
    aver.KeyStore(ledger.config.home).rotate("ledger")
    work()
    signers = [record.signed_by for record in ledger.read(CHAIN)]
    assert signers[0] == signers[1] != signers[2] == signers[3]
    assert ledger.verify().status == "verified"


class NoWords(Exception):
    pass


class Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "status", "words"),
    [
        (ValueError("bad amount"), "failure", "ValueError: bad amount"),
        (NoWords(), "failure", f"{__name__}.NoWords"),
        (Unspeakable(), "failure", f"{__name__}.Unspeakable: (its text could not be read: RuntimeError)"),
        (PermissionError(13, "no"), "blocked", "PermissionError: [Errno 13] no"),
        (Refused("NO", "not allowed"), "blocked", "aver.errors.Refused: not allowed"),
        (KeyboardInterrupt(), "failure", "KeyboardInterrupt"),
        (SystemExit(3), "failure", "SystemExit: 3"),
        (StopIteration(5), "failure", "StopIteration: 5"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_an_exception_goes_on_and_is_recorded(
    ledger: Ledger, records: Any, error: BaseException, status: str, words: str
) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def work() -> None:
        raise error

    with pytest.raises(type(error)) as caught:
        work()
    assert caught.value is error
    assert error.__cause__ is None
    assert not hasattr(error, "__notes__")
    _, outcome = records()
    assert (outcome["outcome"]["status"], outcome["outcome"]["error"]) == (status, words)
    assert outcome["outcome"]["result"]["exception"] == words.partition(": ")[0]
    assert outcome["outcome"]["summary"].endswith(f"work raised {words}")


def test_the_causes_of_an_exception_are_named(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def work() -> None:
        try:
            raise KeyError("k")
        except KeyError as error:
            raise ValueError("v") from error

    with pytest.raises(ValueError, match="v"):
        work()
    result = records()[1]["outcome"]["result"]
    assert result == {"exception": "ValueError", "text": "v", "causes": [{"exception": "KeyError", "text": "'k'"}]}


@dataclass
class Login:
    user: str
    password: str


def test_secrets_in_arguments_results_and_errors_are_masked(ledger: Ledger, records: Any) -> None:
    token = "ghp_" + "Ab1" * 12

    @aver.audit(chain=CHAIN, ledger=ledger)
    def work(login: Login, api_key: str, note: str) -> str:
        if note == "fail":
            raise ValueError(f"could not use {token}")
        return f"used {token}"

    work(Login("ann", "hunter2"), "abc123", f"take {token}")
    with pytest.raises(ValueError, match="ghp_"):
        work(Login("ann", "hunter2"), "abc123", "fail")
    first, second, _, failed = records()
    everything = str(records())
    assert "hunter2" not in everything
    assert "abc123" not in everything
    assert token not in everything
    login = first["context"]["environment"]["audit"]["arguments"]["login"]
    assert login == {"$type": f"{__name__}.Login", "fields": {"user": "ann", "password": "[masked:named]"}}
    assert first["context"]["environment"]["masked"] == {
        "rules": 4,
        "count": 3,
        "by_rule": {"github-token": 1, "named": 2},
    }
    assert second["outcome"]["result"] == "used [masked:github-token]"
    assert failed["outcome"]["error"] == "ValueError: could not use [masked:github-token]"


def test_parameters_can_be_left_out_or_masked(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger, leave_out=["body"], mask=["who", "return"])
    def work(who: str, body: bytes, n: int) -> str:
        return "private"

    assert work("ann", b"private", 1) == "private"
    intent, outcome = records()
    facts = intent["context"]["environment"]["audit"]
    assert facts["arguments"] == {"who": "[masked:parameter]", "n": 1}
    assert facts["left_out"] == ["body"]
    assert outcome["outcome"]["result"] == "[masked:parameter]"
    for record in (intent, outcome):
        assert record["context"]["environment"]["masked"] == {"rules": 4, "count": 1, "by_rule": {"parameter": 1}}
    assert "private" not in str(records())

    @aver.audit(chain=CHAIN, ledger=ledger, leave_out=["return"])
    def other() -> str:
        return "private"

    other()
    assert records()[-1]["outcome"]["result"] is None


def test_large_values_become_blobs(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def work(text: str, many: list[int], small: int) -> dict[str, str]:
        return {f"key{number}": "v" * 100 for number in range(1000)}

    text = "long " * 20_000
    result = work(text, list(range(10_000)), 1)
    intent, outcome = records()
    arguments = intent["context"]["environment"]["audit"]["arguments"]
    assert arguments["small"] == 1
    assert ledger.blob(arguments["text"]["blob"]["digest"]).decode() == text
    assert ledger.blob(arguments["many"]["blob"]["digest"]) == aver.canonical_bytes(list(range(10_000)))
    assert arguments["many"]["blob"]["media"] == "application/json"
    assert ledger.blob(outcome["outcome"]["result"]["blob"]["digest"]) == aver.canonical_bytes(result)
    assert ledger.verify().status == "verified"


def test_many_arguments_that_are_large_together(ledger: Ledger, records: Any) -> None:
    @aver.audit(chain=CHAIN, ledger=ledger)
    def work(**given: str) -> None: ...

    work(**{f"a{number}": "x" * 16_000 for number in range(40)})
    facts = records()[0]["context"]["environment"]["audit"]
    stored = ledger.blob(facts["arguments"]["given"]["blob"]["digest"])
    assert stored.count(b"x" * 16_000) == 40


def test_time_is_measured_by_a_clock_that_only_goes_forward(
    ledger: Ledger, records: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import time

    @aver.audit(chain=CHAIN, ledger=ledger)
    def work() -> None:
        began = time.monotonic()
        while time.monotonic() - began < 0.02:
            pass
        monkeypatch.setattr(time, "time", lambda: 0.0)

    work()
    duration = records()[1]["execution"]["duration_ms"]
    assert type(duration) is int
    assert duration >= 20


@pytest.mark.parametrize(
    "settings",
    [
        {"chain": "no chain"},
        {"chain": "meta"},
        {"chain": CHAIN, "type": "banana"},
        {"chain": CHAIN, "trigger": "banana"},
        {"chain": CHAIN, "session_id": 5},
        {"chain": CHAIN, "authority": Authority(type="banana")},
        {"chain": CHAIN, "environment": {"aver": {}}},
        {"chain": CHAIN, "environment": {"masked": 1}},
        {"chain": CHAIN, "reasoning": Reasoning(confidence=5)},
        {"chain": CHAIN, "on_failure": "ignore"},
        {"chain": CHAIN, "leave_out": ["no_such"]},
        {"chain": CHAIN, "mask": ["no_such"]},
    ],
    ids=lambda settings: "-".join(settings),
)
def test_a_wrong_setting_is_refused_where_it_is_made(settings: dict[str, Any]) -> None:
    with pytest.raises(BadInput):

        @aver.audit(**settings)
        def work(a: int) -> None: ...


def test_a_wrong_scope_is_refused_where_it_is_made() -> None:
    with pytest.raises(BadInput, match="knows no 'banana'"), aver.audit_scope(banana=1):
        pass
    with pytest.raises(InvalidCapsule, match=r"trigger\.type"), aver.audit_scope(trigger="banana"):
        pass
    with pytest.raises(BadInput, match="surrogate"), aver.audit_scope(session_id="\ud800"):
        pass


def test_a_chain_that_is_made_wrong_stops_the_call(ledger: Ledger) -> None:
    ran = []

    @aver.audit(chain=lambda arguments: "no chain", ledger=ledger, on_failure="log")
    def work() -> None:
        ran.append(1)

    with pytest.raises(BadInput, match="not a chain name"):
        work()
    assert ran == []

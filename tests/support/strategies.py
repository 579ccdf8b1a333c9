"""Hypothesis strategies for JSON values, capsules and URIs."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from aver import Authority, Capsule, Context, Execution, Option, Outcome, Reasoning, ToolCall, Trigger
from aver.capsule.model import TOP_LEVEL_KEYS
from aver.capsule.validate import AUTHORITY_TYPES, STATUSES, TRIGGER_TYPES, TYPES

AWKWARD = '\x00\x08\x1f"\\/\x7f\x80\u2028\u2029\ufeff\uffff\U0001f600\uff5e\u00e9e\u0301<>&'
"""Characters at which writers of JSON differ: escapes, DEL, separators, beyond the BMP, composed and not."""

texts = st.text(max_size=12) | st.text(alphabet=AWKWARD, max_size=6)
short_texts = st.text(max_size=8)
integers = st.integers(-(2**70), 2**70) | st.sampled_from(
    [0, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, 2**64, -(2**63) - 1]
)
floats = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [0.0, -0.0, 1.0, 2e-05, 1e-4, 9.99e-5, 1e15, 1e16, 1e22, 1e-7, 5e-324, 1.7976931348623157e308, 0.1, -1e-5]
)
scalars = st.none() | st.booleans() | integers | floats | texts
json_values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
json_objects = st.dictionaries(texts, json_values, max_size=4)

uuids = st.uuids(version=4).map(str)
hex64 = st.text("0123456789abcdef", min_size=64, max_size=64)
timestamps = st.datetimes().map(lambda moment: f"{moment.isoformat()}+00:00")
scores = st.sampled_from([0, 1, 0.0, -0.0, 1.0, 1e-4, 0.5]) | st.floats(1e-4, 1.0)


@st.composite
def _options(draw: st.DrawFn) -> tuple[list[Option], str]:
    """Options of which at most one is selected, and what `selected_option` may say about them."""
    count = draw(st.integers(0, 3))
    chosen = draw(st.integers(-1, count - 1))
    options = [
        Option(
            id=f"opt_{index}",
            description=f"{index} {draw(texts)}",
            pros=draw(st.lists(texts, max_size=2)),
            cons=draw(st.lists(texts, max_size=2)),
            estimated_impact=draw(json_objects),
            feasibility=draw(scores),
            risks=draw(st.lists(texts, max_size=2)),
            selected=index == chosen,
            rejection_reason="" if index == chosen else f"no: {draw(texts)}",
        )
        for index in range(count)
    ]
    names = [""] if chosen < 0 else ["", options[chosen].id, options[chosen].description]
    return options, draw(st.sampled_from(names))


@st.composite
def capsules(draw: st.DrawFn, values: st.SearchStrategy[dict[str, Any]] = json_objects) -> Capsule:
    """Capsules that may be written, without a place in a chain."""
    options, selected = draw(_options())
    return Capsule(
        id=draw(uuids),
        type=draw(st.sampled_from(sorted(TYPES))),
        domain=draw(texts),
        parent_id=draw(st.none() | uuids),
        trigger=Trigger(
            type=draw(st.sampled_from(sorted(TRIGGER_TYPES))),
            source=draw(texts),
            timestamp=draw(timestamps),
            request=draw(texts),
            correlation_id=draw(st.none() | texts),
            user_id=draw(st.none() | texts),
        ),
        context=Context(
            agent_id=draw(texts),
            session_id=draw(st.none() | texts),
            environment={key: value for key, value in draw(values).items() if key != "aver"},
        ),
        reasoning=Reasoning(
            analysis=draw(texts),
            options=options,
            selected_option=selected,
            reasoning=draw(texts),
            confidence=draw(scores),
            model=draw(st.none() | texts),
            prompt_hash=draw(st.none() | hex64),
        ),
        authority=Authority(
            type=draw(st.sampled_from(sorted(AUTHORITY_TYPES))),
            approver=draw(st.none() | texts),
            policy_reference=draw(st.none() | texts),
            chain=draw(st.lists(values, max_size=2)),
            escalation_reason=draw(st.none() | texts),
        ),
        execution=Execution(
            tool_calls=draw(
                st.lists(
                    st.builds(
                        ToolCall,
                        tool=texts,
                        arguments=values,
                        result=json_values,
                        success=st.booleans(),
                        duration_ms=st.integers(0, 2**40),
                        error=st.none() | texts,
                        extra=st.just({}),
                    ),
                    max_size=2,
                )
            ),
            duration_ms=draw(st.integers(0, 2**40)),
            resources_used=draw(values),
        ),
        outcome=Outcome(
            status=draw(st.sampled_from(sorted(STATUSES))),
            result=draw(json_values),
            summary=draw(texts),
            error=draw(st.none() | texts),
            side_effects=draw(st.lists(texts, max_size=2)),
            metrics=draw(values),
        ),
    )


@st.composite
def foreign_contents(draw: st.DrawFn) -> dict[str, Any]:
    """Documents of other software: the twelve keys and objects for sections, and otherwise anything."""
    content: dict[str, Any] = {
        "id": draw(texts),
        "type": draw(texts),
        "domain": draw(texts),
        "parent_id": draw(st.none() | texts),
        "sequence": draw(st.integers(0, 2**62)),
        "previous_hash": draw(st.none() | texts),
    }
    for section in ("trigger", "context", "authority", "outcome"):
        content[section] = draw(json_objects)
    content["reasoning"] = {
        **draw(json_objects),
        **draw(st.sampled_from([{}, {"confidence": 1}, {"confidence": 0.25}])),
    }
    content["execution"] = draw(json_objects)
    if draw(st.booleans()):
        content["spec_version"] = draw(texts)
    return {**content, **{k: v for k, v in draw(json_objects).items() if k not in content and k not in SEAL}}


SEAL = ("hash", "signature", "signature_pq", "signed_at", "signed_by")

_segments = st.sampled_from(TOP_LEVEL_KEYS)
_chains = st.from_regex(r"[A-Za-z0-9._-]{1,20}", fullmatch=True)
fragments = st.none() | st.builds(
    lambda first, rest: (first, *rest), _segments, st.lists(texts.filter(bool), max_size=3)
)


def chunked(data: bytes, cuts: list[int]) -> list[bytes]:
    """The bytes in pieces, cut at the given places."""
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    return [data[begin:end] for begin, end in zip([0, *places], [*places, len(data)], strict=True)]


chain_references = _chains

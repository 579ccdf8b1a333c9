"""The shortcuts of masking: a rule is not tried where it cannot apply. That must mask what trying every rule masks."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import orjson
import pytest
from capsule.masking.test_mask import GIVEN, SECRETS, STANDS_BEFORE, shortest
from capsule.masking.test_rules import AROUND, BENIGN, PUBLISHED, SECRET
from hypothesis import given
from hypothesis import strategies as st

from aver import Capsule
from aver.capsule.masking import command_options, named_values, rules_table, token_patterns
from aver.capsule.masking import mask as masking
from aver.capsule.masking.mask import mask, mask_draft
from support.bench_modules import masking_rules
from support.strategies import capsules, json_values

SECTIONS = ["trigger", "context", "reasoning", "execution", "outcome"]
COMMANDS = Path(__file__).parents[4] / "shared" / "data" / "commands"


@contextmanager
def every_rule() -> Iterator[None]:
    """Try every rule on every text, as if there were no shortcuts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masking, "possible_patterns", lambda _: token_patterns.ALL_PATTERNS)
        patch.setattr(masking, "may_name_secret", lambda _: True)
        patch.setattr(masking, "may_give_password", lambda _: True)
        patch.setattr(masking, "_may_hold_url_or_key", lambda _: True)
        yield


def assert_same(work: Callable[[Any], Any], value: Any) -> None:
    with every_rule():
        plain = work(value)
    assert work(value) == plain


PIECES = [
    *(secret for _, secret in SECRETS),
    *(f"{before}{secret}{after}" for before, secret, after in GIVEN),
    *(*AROUND, *PUBLISHED, *BENIGN),
    *(
        "git_branch",
        "confidence",
        "escalation_reason",
        "tests passed",
        "tokens_in",
        "access_tokens",
        "seed.words",
        "x_jwt",
    ),
    *(
        "sshpass",
        "-p",
        "-hp" + SECRET,
        "7z",
        "-s",
        "ldapadd",
        "http",
        "--auth",
        "nmcli",
        "wifi.psk",
        "curl",
        "--cookie",
    ),
]


@pytest.mark.parametrize("piece", PIECES, ids=lambda piece: piece[:24])
def test_every_piece_is_masked_as_by_all_rules(piece: str) -> None:
    for value in (
        piece,
        {"a": piece},
        {piece: SECRET},
        {"a": {piece: {"b": SECRET}}},
        ["x", piece, SECRET],
        piece.split(),
    ):
        assert_same(mask, value)
    assert_same(mask, piece.split())


@given(
    st.recursive(
        st.lists(st.sampled_from([*PIECES, *STANDS_BEFORE]), max_size=4).map("".join)
        | st.lists(st.sampled_from([*PIECES, *STANDS_BEFORE]), max_size=4).map(" ".join)
        | json_values,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(PIECES), inner, max_size=3),
        max_leaves=8,
    )
)
def test_any_value_is_masked_as_by_all_rules(value: Any) -> None:
    assert_same(mask, value)


@given(
    capsules(), st.sampled_from(PIECES), st.sampled_from(["trigger", "context", "reasoning", "execution", "outcome"])
)
def test_any_draft_is_masked_as_by_all_rules(draft: Capsule, piece: str, section: str) -> None:
    content = draft.to_dict()
    text, key = {
        "trigger": ("request", None),
        "context": ("agent_id", "environment"),
        "reasoning": ("analysis", None),
        "execution": (None, "resources_used"),
        "outcome": ("summary", "metrics"),
    }[section]
    if text is not None:
        content[section][text] += f" {piece}"
    if key is not None:
        content[section][key] = {**content[section][key], "said": piece, piece: SECRET}
    assert_same(lambda given: mask_draft(given).to_dict(), Capsule.from_dict(content))


@pytest.mark.skipif(not COMMANDS.is_dir(), reason="the published commands are not here")
def test_real_commands_are_masked_as_by_all_rules() -> None:
    commands = [json.loads(line)["command"] for file in sorted(COMMANDS.glob("*.jsonl")) for line in file.open()]
    for command in random.Random(1).sample(commands, min(len(commands), 300)):
        assert_same(mask, {"tool": "Bash", "command": command})


@pytest.mark.sample(4)
@pytest.mark.parametrize("number", range(len(rules_table.COMMANDS)))
def test_every_command_that_is_given_a_password_is_seen_as_possible(number: int) -> None:
    """What `may_give_password` rests on: the needles of `rules.toml`."""
    programs, _, pattern, _, words = rules_table.COMMANDS[number]
    chance, tree, tried = random.Random(number), _parser.parse(pattern), 0
    for program in programs:
        for draw in range(12):
            option = " ".join([*words, shortest(tree, chance).replace("\t", " ")])
            for text in (
                f"{program} {option}",
                f"{program} x\t{option}",
                f"{program} \\\n{option} y",
                f"{option} | {program}",
            ):
                if not list(command_options.find_command_spans(text)):
                    continue
                tried += 1
                before = STANDS_BEFORE[draw % len(STANDS_BEFORE)]
                for whole in (text, f"({text})", f"cd x\n{text}", f"{before}{text}"):
                    if list(command_options.find_command_spans(whole)):
                        assert command_options.may_give_password(whole), whole
                        assert command_options.may_give_password(orjson.dumps({"a": [whole]}).decode()), whole
                        words = orjson.dumps(whole.split(" ")).decode()
                        if list(command_options.find_command_spans(" ".join(whole.split(" ")))):
                            assert command_options.may_give_password(words), words
    assert tried, "no command was made that this pattern matches"


def test_every_secret_name_is_seen_as_possible() -> None:
    after = ["", *(f"_{word}" for word in rules_table.AFTER), "2"]
    names = [*rules_table.SECRET, *(f"{word}_key" for word in rules_table.KEY)]
    names += [f"{word}_pass" for word in rules_table.PASS_AFTER] + [
        f"{word}_tokens" for word in rules_table.TOKENS_AFTER
    ]
    names += ["cookie", "set_cookie", "otp", "cvv", "cvc", "_auth"]
    for name in names:
        for joined in (name, *(name.replace("_", mark) for mark in ("", "-", ".", " ", "/", ":", "[", '"'))):
            for end in after:
                if named_values.is_sensitive_name(joined + end):
                    written = orjson.dumps({joined + end: 1}).decode()
                    assert named_values.may_name_secret(written.lower()), joined + end


def test_every_needle_is_looked_for() -> None:
    """Each needle of each pattern is in one of the tables, and contains its guard."""
    sorted_ones = [*rules_table.INNER_NEEDLES, *rules_table.LEADING_NEEDLES]
    for beginning, needles in rules_table.BEGINNING_NEEDLES.items():
        assert all(needle.startswith(beginning) for needle, _ in needles)
        sorted_ones += needles
    for guard, needles in (*rules_table.TEXT_NEEDLES, *rules_table.WORD_NEEDLES):
        assert all(guard in needle for needle, _ in needles)
        sorted_ones += needles
    every = [(needle, number) for number, row in enumerate(rules_table.TOKENS) for needle in row[1]]
    assert sorted(sorted_ones) == sorted(every)
    last = {needle.rstrip("".join(masking_rules.RUN_CHARACTERS))[-1] for needle, _ in rules_table.LEADING_NEEDLES}
    assert {end.encode() for end in last} == token_patterns._BEFORE_LEADING_RUN

"""Rules and tables are about language, and know nothing of the benchmark that they are measured by."""

from __future__ import annotations

import re
from pathlib import Path

import aver.gate.origins
from aver.gate.policy.bundle import read_starter_files

NAMES = (
    # suites, templates, people, places and targets of AgentDojo
    *("agentdojo", "important message from me", "<information>", "before you can solve", "emma", "johnson"),
    *("mark.black", "jay@google", "janelong", "us133000000", "secure-systems", "my-website-234", "true-informations"),
    *("fred9246", "riverside view", "bluesparrow", "dora", "informations.com", "spotify", "landlord", "external_0"),
    # tools with a name of their own
    *("get_most_recent", "get_scheduled", "get_unread", "search_contacts", "reserve_hotel", "invite_user_to_slack"),
    *("post_webpage", "get_webpage", "append_to_file", "update_scheduled", "read_inbox", "send_money", "get_iban"),
)


def test_rules_and_tables_name_nothing_of_the_benchmark() -> None:
    files = {path.name: path.read_text() for path in Path(aver.gate.origins.__file__).parent.glob("*.py")}
    rules = read_starter_files()
    assert files
    assert "40-origins.cedar" in rules
    for name, text in {**files, **rules}.items():
        for word in NAMES:
            assert not re.search(rf"(?<!\w){re.escape(word)}", text, re.IGNORECASE), (name, word)

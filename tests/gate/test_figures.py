"""The gate's records hold figures as every language writes them, so that a record can be parsed and written again."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from aver.capsule.canonical import canonical_json
from aver.gate.action import Action
from aver.gate.ask import ask
from aver.gate.decision_record import read_figure, write_figure
from aver.ledger import Ledger, open_ledger
from support.page_verdicts import find_node
from support.shop_ledger import write_shop_ledger

FIGURES = [None, 0.0, 1.0, 0.5, 0.25, 0.1 + 0.2, 0.0001, 9.999e-05, 2e-05, 1e-07, 5e-324, 0.9999999999999999, 3, 0]

DIFF = "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a = 1\n+a = 2\n"
ACTIONS = (
    ("shell_exec", "Bash", {"command": "pytest -q"}, None),
    ("shell_exec", "Bash", {"command": "rm -rf /"}, None),
    ("code_edit", "Edit", {"file_path": "a.py"}, DIFF),
    ("api_request", "Post", {"url": "https://x.example"}, None),
    ("file_read", "Read", {"file_path": "x"}, None),
)

FIND_ODD = """
const odd = [];
const floats = ["confidence", "feasibility"]; // The Capsule Protocol wants floats there, and its reference writes them.
for (const text of JSON.parse(require("fs").readFileSync(0, "utf8"))) {
  JSON.parse(text, (key, value, { source }) => {
    const isOdd = typeof value === "number" && source !== JSON.stringify(value);
    if (isOdd && !floats.includes(key)) odd.push(`${key}: ${source}`);
    return value;
  });
}
console.log(JSON.stringify(odd));
"""


@pytest.mark.parametrize("value", FIGURES)
def test_a_figure_keeps_its_value_and_has_one_text(value: float | None) -> None:
    written = write_figure(value)
    assert read_figure(written) == value
    assert read_figure(value) == value  # As older records have it.
    text = canonical_json(written).decode()
    assert isinstance(written, str) or "e" not in text
    assert not text.endswith(".0")


def _decide(ledger: Ledger, workspace: Path) -> None:
    for kind, tool, arguments, diff in ACTIONS:
        files = ("a.py",) if diff else ()
        action = Action(
            type=kind, tool=tool, arguments=arguments, diff=diff, files=files, session="run_1", workspace=str(workspace)
        )
        ask(ledger, action)


def test_decisions_have_no_number_that_javascript_writes_otherwise(ledger: Ledger, tmp_path: Path) -> None:
    _decide(ledger, tmp_path)
    texts = [record.canonical.decode() for chain in ledger.chains() for record in ledger.read(chain)]
    assert sum('"features":{' in text for text in texts) == len(ACTIONS)
    plain = re.compile(r"-?(?:0|[1-9][0-9]{0,15})(?:\.[0-9]*[1-9])?")
    for text in texts:
        document = json.loads(text, parse_float=lambda digits: digits, parse_int=lambda digits: digits)
        document["reasoning"].pop("confidence")
        document["reasoning"].pop("options")
        for token in re.findall(r"(?<=[:\[,])-?[0-9][0-9.eE+-]*(?=[,\]}])", _without_strings(text)):
            assert plain.fullmatch(token) or token == "0.0", (token, text)
        assert not re.search(r'"(?:features|interval|score|thresholds)":[^"]*[0-9]\.0[,\]}]', text)


def _without_strings(text: str) -> str:
    return re.sub(r'"(?:[^"\\]|\\.)*"', '""', text)


@pytest.mark.more
def test_no_record_of_a_rich_ledger_has_such_a_number(tmp_path: Path) -> None:
    with write_shop_ledger(tmp_path) as ledger:
        _decide(ledger, tmp_path)
        texts = [record.canonical.decode() for chain in ledger.chains() for record in ledger.read(chain)]
    with open_ledger(tmp_path / "home" / "ledger.db", home=tmp_path / "home") as ledger:
        assert ledger.verify(examiners=()).status != "failed"
    command = [find_node(), "-e", FIND_ODD]
    done = subprocess.run(command, input=json.dumps(texts), capture_output=True, text=True, check=True)
    assert (len(texts) > 100, json.loads(done.stdout)) == (True, [])

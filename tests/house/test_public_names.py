"""The public interface: exactly these names, each documented, and every code that is used is explained."""

from __future__ import annotations

import ast
import inspect
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import aver
from aver.verdict import load_codes
from support.pending import hold_for_each

SOURCE = Path(aver.__file__).parent

PUBLIC = """
Action Adapter AgentAction AgentCall AgentEvent AgentRuntime Answer AsyncLedger AuditMiddleware AuditedCall Authority
AverError BadInput Blob Capsule CapsuleURI Check Context Decision Entry Execution Exists Finding FunctionTools Gateway
Head HeadMoved IntegrityError InvalidCapsule KeyStore Ledger LedgerHandler LineReader Masked NotCanonical NotFound
NotRecorded Option Outcome OutcomeUnknown Permission Place Prompt ProtocolSession PublicKey RawRecord Reasoning
RecordReader Refused Ring Said Sealed SeedSigner Signature Signer Tokens ToolCall TranscriptFollower TranscriptParser
TranscriptSource Trigger Unavailable UserEnvironment Verdict View
__version__ ascii_json ask audit audit_scope build_unknown_event canonical_bytes carry chain_name current
dropped_count export_bundle line_key mask of_kind open_gateway open_ledger open_ledger_async parse_json parse_uri
protocol_tools resolve_fragment run_protocol seal tool unfinished_intents validate verify verify_with_key
"""


def test_the_public_names_are_exactly_these() -> None:
    """A name that leaves breaks programs; one that slips in must be kept for ever. Change this list on purpose."""
    assert set(aver.__all__) == set(PUBLIC.split())
    assert len(aver.__all__) == len(set(aver.__all__))


@hold_for_each("public names", sorted(set(PUBLIC.split()) - {"__version__"}), str)
def test_each_is_there_and_says_what_it_is(name: str) -> None:
    value = getattr(aver, name)
    doc = inspect.getdoc(value)
    assert doc, f"aver.{name} has no docstring"
    assert not doc.startswith(f"{name}("), f"aver.{name} has no docstring of its own"


def test_dir_lists_them_and_nothing_else_is_there() -> None:
    assert set(aver.__all__) <= set(dir(aver))
    with pytest.raises(AttributeError):
        _ = aver.no_such_name


def test_the_type_checkers_see_the_same_names() -> None:
    """The names under TYPE_CHECKING are written out by hand; they must be those of `__all__`."""
    tree = ast.parse((SOURCE / "__init__.py").read_text("utf-8"))
    seen = set()
    for node in tree.body:
        if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
            for inner in node.body:
                assert isinstance(inner, ast.ImportFrom)
                seen |= {alias.name for alias in inner.names}
    assert seen == set(aver.__all__) - {"__version__"}


@hold_for_each("public names", [n for n in PUBLIC.split() if n[0].isupper()], str)
def test_public_methods_are_documented_or_self_evident(name: str) -> None:
    value = getattr(aver, name)
    if not inspect.isclass(value) or issubclass(value, BaseException):
        return
    for method, function in vars(value).items():
        if not method.startswith("_") and inspect.isfunction(function) and method not in SELF_EVIDENT:
            assert inspect.getdoc(function), f"aver.{name}.{method} has no docstring"


SELF_EVIDENT = {
    *(
        "to_dict",
        "from_dict",
        "to_sealed_dict",
        "close",
        "fingerprint",
        "chains",
        "heads",
        "public",
        "check",
        "entries_of",
    ),
    *(
        "with_entry",
        "without_known",
        "append",
        "append_many",
        "close_chain",
        "head",
        "get",
        "blob",
        "verify",
        "read",
        "find",
    ),
    *("sign_statement", "after_fork_in_parent", "after_fork_in_child"),
}
"""Names that say it all, and those of `AsyncLedger` that are `Ledger`'s."""


# --- codes


CODE = re.compile(r"[A-Z]{2,}(_[A-Z]+)+")


def finding_codes() -> Iterator[tuple[str, str]]:
    """Every code that a finding or an integrity error is given, with its place in the source."""
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text("utf-8"))
        for node in ast.walk(tree):
            found: list[ast.expr] = []
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
                if name in ("Finding", "_add_failure", "_add_finding", "report_unreadable"):
                    found = [*node.args, *(keyword.value for keyword in node.keywords)]
                elif name == "IntegrityError":
                    found = node.args[:1]
            elif isinstance(node, ast.Return) and isinstance(node.value, ast.Tuple) and len(node.value.elts) == 3:
                found = node.value.elts[1:2]
            for value in found:
                for part in ast.walk(value):
                    if isinstance(part, ast.Constant) and isinstance(part.value, str) and CODE.fullmatch(part.value):
                        yield part.value, f"{path.relative_to(SOURCE)}:{node.lineno}"


def test_every_code_in_use_is_explained() -> None:
    found = dict(finding_codes())
    assert len(found) > 12
    assert {code: place for code, place in found.items() if code not in load_codes()} == {}


def test_codes_that_are_explained_are_documented_where_people_look() -> None:
    docs = SOURCE.parent.parent / "docs"
    if not docs.is_dir():
        pytest.skip("the documentation is not part of this copy")
    text = "".join(path.read_text("utf-8") for path in docs.rglob("*.md"))
    assert [code for code in load_codes() if code not in text] == []

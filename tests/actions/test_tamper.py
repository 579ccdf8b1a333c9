"""Every change to a `.cap` that Aver wrote is found: the public tool's tamper matrix row by row, and more.

Each change is tried twice: as it is, and with a manifest that was made to fit, which is what anybody can do who has no
key. Whoever has *another* key can seal a whole run anew; then the signer is not the one that the verifier knows.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import aver
from aver.actions.encodings import METADATA_INLINE, action_line, encode_action, read_action_line
from support.runs import (
    MEMBERS,
    Members,
    SealedRun,
    codes_of,
    edited_line,
    judged,
    lines_of,
    make_sealed_run,
    packed,
    record_actions,
    unpacked,
    with_strangers_head,
    with_true_manifest,
)

Change = Callable[[Members], Members]


def edit_action(index: int, change: Callable[[dict[str, Any]], None], *, anew: bool = False) -> Change:
    """Change one line; `anew`: with a receipt that fits, as far as that goes without touching the next."""

    def changed(members: Members) -> Members:
        lines = lines_of(members)
        line = edited_line(lines[index], change)
        if anew:
            content = json.loads(line)
            del content["receipt_hash"], content["canonical_fields"]
            line = action_line(aver.AgentAction.from_dict(content)) + b"\n"
        lines[index] = line
        return {**members, "actions.jsonl": b"".join(lines)}

    return changed


def edit_lines(change: Callable[[list[bytes]], list[bytes]], name: str = "actions.jsonl") -> Change:
    return lambda members: {**members, name: b"".join(change(lines_of(members, name)))}


def edit_json(name: str, change: Callable[[Any], Any]) -> Change:
    def changed(members: Members) -> Members:
        document = json.loads(members[name])
        document = change(document) or document
        return {**members, name: json.dumps(document, indent=2, sort_keys=True).encode() + b"\n"}

    return changed


def without(*names: str) -> Change:
    return lambda members: {name: data for name, data in members.items() if name not in names}


def swapped(lines: list[bytes], one: int, other: int) -> list[bytes]:
    lines = list(lines)
    lines[one], lines[other] = lines[other], lines[one]
    return lines


def success_and_output(content: dict[str, Any]) -> None:
    content["success"] = not content["success"]
    content["output_hash"] = "0" * 64


def put(name: str, value: Any) -> Callable[[dict[str, Any]], None]:
    return lambda content: content.update({name: value})


def final_and_count(manifest: dict[str, Any]) -> None:
    manifest.update(final_receipt_hash="0" * 64, num_actions=3)


MATRIX: dict[str, Change] = {
    "success and output of action 3": edit_action(3, success_and_output),
    "the same, with a receipt that fits": edit_action(3, success_and_output, anew=True),
    "metadata.description": edit_action(3, lambda line: line["metadata"].update(description="rm -rf /")),
    "the same, written as Aver does": edit_action(
        3, lambda line: line["metadata"].update(description="rm -rf /"), anew=True
    ),
    "parent_receipt_hash of action 5": edit_action(5, put("parent_receipt_hash", "0" * 64)),
    "actions 5 to 8 deleted": edit_lines(lambda lines: lines[:5] + lines[9:]),
    "all actions deleted": edit_lines(lambda lines: []),
    "actions 10 and 11 swapped": edit_lines(lambda lines: swapped(lines, 10, 11)),
    "final hash and count in the manifest": edit_json("manifest.json", final_and_count),
    "a manifest that says nothing but that all is well": edit_json(
        "manifest.json", lambda _: {"verification": {"constraints_valid": True}}
    ),
    "a seal that says nothing but that all is well": edit_lines(
        lambda lines: [*lines[:-4], b'{"verification":{"constraints_valid":true}}\n', *lines[-3:]], "capsules.jsonl"
    ),
    "proof.json and commitments.json deleted": without("proof.json", "commitments.json"),
    "actions.jsonl deleted": without("actions.jsonl"),
    "capsules.jsonl deleted": without("capsules.jsonl"),
    "head.json deleted": without("head.json"),
    "manifest.json deleted": without("manifest.json"),
    "success of the last action": edit_action(-1, lambda line: line.update(success=False)),
    "the same, with a receipt that fits ": edit_action(-1, lambda line: line.update(success=False), anew=True),
    "the last six of twelve actions cut": edit_lines(lambda lines: lines[:6]),
    "parent of action 0": edit_action(0, put("parent_receipt_hash", "0" * 64)),
    "parent id of action 0": edit_action(0, put("parent_action_id", "act_x"), anew=True),
    "policy_verdict of an action": edit_action(3, put("policy_verdict", "POLICY_ENFORCED"), anew=True),
    "policy_verdict taken away": edit_action(2, put("policy_verdict", None), anew=True),
    "metadata 1 for true": edit_action(
        1, lambda line: line["metadata"].update({"ümlaut": [True, 0.5, None]}), anew=True
    ),
    "an action doubled": edit_lines(lambda lines: [*lines[:4], lines[3], *lines[4:]]),
    "an action added at the end": edit_lines(lambda lines: [*lines, lines[-1]]),
    "an empty line more": edit_lines(lambda lines: [*lines, b"\n"]),
    "a space more": edit_lines(lambda lines: [lines[0].replace(b":", b": ", 1), *lines[1:]]),
    "the last line feed cut": lambda members: {**members, "actions.jsonl": members["actions.jsonl"][:-1]},
    "a capsule deleted": edit_lines(lambda lines: [*lines[:3], *lines[4:]], "capsules.jsonl"),
    "two capsules swapped": edit_lines(lambda lines: swapped(lines, 3, 4), "capsules.jsonl"),
    "the seal deleted": edit_lines(lambda lines: [*lines[:13], *lines[14:]], "capsules.jsonl"),
    "a gate decision deleted": edit_lines(lambda lines: lines[:-1], "capsules.jsonl"),
    "all gate decisions deleted": edit_lines(lambda lines: lines[:-3], "capsules.jsonl"),
    "capsules and lines cut alike": lambda members: {
        **members,
        "actions.jsonl": b"".join(lines_of(members)[:6]),
        "capsules.jsonl": b"".join(lines_of(members, "capsules.jsonl")[:7]),
    },
    "a statement with another root": edit_json(
        "proof.json", lambda proof: proof["statement"].update(row_root="0" * 64)
    ),
    "a commitment to another root": edit_json("commitments.json", lambda found: found["rows"].update(root="0" * 64)),
    "proof.json says nothing": edit_json("proof.json", lambda _: {"v": 1}),
    "another run in the manifest": edit_json("manifest.json", put("run_id", "run_other")),
    "another ledger in the manifest": edit_json("manifest.json", lambda m: m["head"].update(ledger="0" * 36)),
    "a better verdict in the manifest": edit_json("manifest.json", put("policy_verdict", "FULLY_VERIFIED")),
    "another time in the manifest": edit_json("manifest.json", put("created_at", "2020-01-01T00:00:00+00:00")),
    "one key more in the manifest": edit_json("manifest.json", put("note", "all is well")),
    "a count that only equals the run's": edit_json("manifest.json", put("num_actions", 12.0)),
    "another protocol": edit_json("manifest.json", put("protocol_version", "0.5.0")),
    "the public tool's schema": edit_json("manifest.json", put("schema", "run_cap_v1")),
    "a head without signatures": edit_json("head.json", put("signatures", [])),
    "a head with another count": edit_json("head.json", lambda head: head["content"].update(num_actions=11)),
    "a head for another purpose": edit_json("head.json", put("purpose", "checkpoint")),
    "a member more": lambda members: {**members, "notes.txt": b"trust me"},
    "members in another order": lambda members: dict(reversed(members.items())),
}


@pytest.mark.parametrize("fitted", [False, True], ids=["as it is", "manifest made to fit"])
@pytest.mark.parametrize("row", MATRIX, ids=lambda row: row.strip().replace(" ", "-"))
def test_every_change_fails(sealed_run: SealedRun, row: str, fitted: bool) -> None:
    members = MATRIX[row](sealed_run.members)
    if fitted and "manifest.json" in members:
        try:
            members = with_true_manifest(members)
        except KeyError:
            pytest.skip("there is no manifest left that could be made to fit")
    if row == "members in another order" and not fitted:
        assert list(members) != list(MEMBERS)
    verdict = judged(packed(members), sealed_run)
    assert verdict.status == "failed", row
    assert verdict.first_bad is not None


def whole_capsules(members: Members) -> Members:
    """The capsules of actions in one piece each, so that no line is needed to make them whole."""
    lines = iter(lines_of(members))
    found = []
    for raw in lines_of(members, "capsules.jsonl"):
        content = json.loads(raw)
        if isinstance(content["canonical"], list):
            line = read_action_line(next(lines).rstrip(b"\n"))
            content["canonical"] = line.texts.seal_form(line.action).decode().join(content["canonical"])
        found.append(json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode() + b"\n")
    return {**members, "capsules.jsonl": b"".join(found)}


def test_a_strangers_head_is_told(sealed_run: SealedRun) -> None:
    verdict = aver.verify(packed(with_strangers_head(sealed_run.members)), home=sealed_run.home)
    assert verdict.status == "qualified"
    assert [finding.code for finding in verdict.findings] == ["UNKNOWN_SIGNER"]


@pytest.mark.parametrize("prove", [True, False])
def test_lines_that_no_capsule_takes_in_are_not_the_runs(tmp_path: Any, prove: bool) -> None:
    run = make_sealed_run(tmp_path, actions=5, gated=(2,), prove=prove)
    told = MATRIX["the same, written as Aver does"](whole_capsules(run.members))
    verdict = aver.verify(packed(with_strangers_head(told)), home=run.home)
    assert verdict.status == "failed"
    assert verdict.first_bad is not None
    assert (verdict.first_bad.check, verdict.first_bad.code) == ("sealed", "TRUNCATED")


def test_large_metadata_cannot_be_told_by_their_digest_alone(tmp_path: Any) -> None:
    with aver.open_ledger(home=tmp_path / "home") as ledger:
        run = aver.AgentRuntime(tmp_path / "run", ledger=ledger, workspace=tmp_path)
        run.record_simple("tool_call", "one", {}, "out", metadata={"description": "x" * 2 * METADATA_INLINE})
        sealed = encode_action(run.actions[0]).seal_form(run.actions[0])
        with pytest.raises(aver.BadInput, match="reference"):
            run.record_simple("tool_call", "two", {}, "out", metadata=json.loads(sealed)["metadata"])
        run.finalize(prove=False)
        run.close()
    members = unpacked((run.output_dir / "run.cap").read_bytes())
    change = edited_line(lines_of(members)[0], put("metadata", json.loads(sealed)["metadata"]))
    verdict = aver.verify(packed(with_strangers_head({**members, "actions.jsonl": change})), home=tmp_path / "home")
    assert verdict.status == "failed"


def test_a_line_cannot_hide_in_a_record_of_the_gate(tmp_path: Any) -> None:
    """A gate's record holds arguments that an agent chose, so also the text of an action that was never sealed."""
    with aver.open_ledger(home=tmp_path / "home") as ledger:
        run = aver.AgentRuntime(tmp_path / "run", ledger=ledger, workspace=tmp_path)
        run.record_simple("tool_call", "one", {}, "out", metadata={"description": "step one"})
        told = replace(run.actions[0], metadata={"description": "another story"})
        text = encode_action(told).seal_form(told).decode()
        run.gate(action_type="tool_call", tool="x", arguments=json.loads(text))
        run.finalize(prove=False)
        run.close()
    members = whole_capsules(unpacked((tmp_path / "run" / "run.cap").read_bytes()))
    opened, action, seal, gate = map(json.loads, lines_of(members, "capsules.jsonl"))
    assert text in gate["canonical"]
    gate["canonical"] = gate["canonical"].split(text)
    lines = (opened, gate, action, seal)
    members["capsules.jsonl"] = b"".join(json.dumps(line, separators=(",", ":")).encode() + b"\n" for line in lines)
    members["actions.jsonl"] = action_line(told) + b"\n"
    assert aver.verify(packed(with_strangers_head(members)), home=tmp_path / "home").status == "failed"


def test_records_that_the_run_does_not_refer_to(tmp_path: Any) -> None:
    run = make_sealed_run(tmp_path, actions=2)
    with aver.open_ledger(home=run.home, tenant="other") as ledger:
        other = aver.AgentRuntime(tmp_path / "other", ledger=ledger, workspace=tmp_path)
        record_actions(other, 2, gated=(1,))
        other.finalize()
        other.close()
    own = lines_of(run.members, "capsules.jsonl")
    for line in lines_of(whole_capsules(unpacked((other.output_dir / "run.cap").read_bytes())), "capsules.jsonl"):
        for lines in ([line, *own], [*own, line]):
            members = with_strangers_head({**run.members, "capsules.jsonl": b"".join(lines)})
            assert codes_of(aver.verify(packed(members), home=run.home)) == {"STATE_VIOLATION"}


def test_what_was_not_changed_is_verified(sealed_run: SealedRun) -> None:
    assert sealed_run.summary["verdict"] == "verified"
    verdict = judged(packed(sealed_run.members), sealed_run)
    assert verdict.status == "verified", verdict.to_dict()
    assert packed(sealed_run.members) == sealed_run.cap


@pytest.mark.parametrize(
    ("row", "check", "code", "place"),
    [
        ("success and output of action 3", "receipts", "RECEIPT_MISMATCH", "action 3 "),
        ("parent_receipt_hash of action 5", "receipts", "RECEIPT_MISMATCH", "action 5 "),
        ("parent of action 0", "receipts", "RECEIPT_MISMATCH", "action 0 "),
        ("parent id of action 0", "parents", "GENESIS_INVALID", "action 0 "),
        ("actions 5 to 8 deleted", "parents", "CHAIN_BREAK", "action 5 "),
        ("actions 10 and 11 swapped", "parents", "CHAIN_BREAK", "action 10 "),
        ("an action doubled", "parents", "DUPLICATE_RECORD", "action 4 "),
    ],
)
def test_the_first_bad_action_is_named(sealed_run: SealedRun, row: str, check: str, code: str, place: str) -> None:
    first = judged(packed(MATRIX[row](sealed_run.members)), sealed_run).first_bad
    assert first is not None
    assert (first.check, first.code) == (check, code)
    assert place in str(first.place)


def test_metadata_that_were_changed_change_the_capsule(sealed_run: SealedRun) -> None:
    members = with_true_manifest(MATRIX["the same, written as Aver does"](sealed_run.members))
    verdict = judged(packed(members), sealed_run)
    assert verdict.check("receipts").status == "passed"
    assert verdict.first_bad is not None
    assert (verdict.first_bad.check, verdict.first_bad.code) == ("content", "HASH_MISMATCH")
    assert verdict.first_bad.place.sequence == 4


# --- the container


def test_a_second_gzip_member_and_trailing_bytes(sealed_run: SealedRun) -> None:
    for tail in (gzip.compress(b"more"), sealed_run.cap, b"\0", b"\n", b"x"):
        assert judged(sealed_run.cap + tail, sealed_run).status == "failed"


def test_every_truncation(sealed_run: SealedRun) -> None:
    cap = sealed_run.cap
    for size in (*range(2, 40), *range(40, len(cap), 97), *range(len(cap) - 20, len(cap))):
        assert judged(cap[:size], sealed_run).status == "failed", size


def test_an_empty_file(sealed_run: SealedRun, tmp_path: Any) -> None:
    empty = tmp_path / "empty.cap"
    empty.write_bytes(b"")
    assert aver.verify(empty, keys=[sealed_run.key]).status == "failed"


def test_flipped_bytes(sealed_run: SealedRun) -> None:
    cap = sealed_run.cap
    for at in (*range(2, 12), *range(12, len(cap), 61), *range(len(cap) - 10, len(cap))):
        flipped = cap[:at] + bytes([cap[at] ^ 0xFF]) + cap[at + 1 :]
        verdict = judged(flipped, sealed_run)
        assert verdict.status == "failed" or unpacked(flipped) == sealed_run.members, at


@pytest.mark.long
def test_every_flipped_bit_changes_the_content_or_fails(sealed_run: SealedRun) -> None:
    """Deflate has several ways to say the same: a flip may leave all that is unpacked as it was, and nothing else."""
    cap = sealed_run.cap
    for at in (*range(0, len(cap), 5), *range(len(cap) - 12, len(cap))):
        for bit in range(8):
            flipped = cap[:at] + bytes([cap[at] ^ 1 << bit]) + cap[at + 1 :]
            if at > 1 and judged(flipped, sealed_run).status != "failed":
                assert unpacked(flipped) == sealed_run.members


def test_packed_by_another_program(sealed_run: SealedRun) -> None:
    """The same files in another container are not what Aver writes: something may hide in its headers."""
    import io
    import tarfile

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as tar:
        for name, data in sealed_run.members.items():
            info = tarfile.TarInfo(name)
            info.size, info.uname = len(data), "root"
            tar.addfile(info, io.BytesIO(data))
    assert codes_of(judged(out.getvalue(), sealed_run)) == {"NOT_CANONICAL"}


# --- other keys


def test_another_key_is_not_ours(sealed_run: SealedRun, tmp_path: Any) -> None:
    forged = make_sealed_run(tmp_path)
    assert judged(forged.cap, forged).status == "verified"
    by_ours = judged(forged.cap, sealed_run)
    assert (by_ours.status, by_ours.integrity, by_ours.held) == ("qualified", "unsigned", 0)
    unknown = aver.verify(forged.cap, home=sealed_run.home)
    assert unknown.status == "qualified"
    assert {finding.code for finding in unknown.findings} == {"UNKNOWN_SIGNER"}


def test_parts_of_two_runs_do_not_fit(sealed_run: SealedRun, tmp_path: Any) -> None:
    other = make_sealed_run(tmp_path).members
    for name in MEMBERS:
        mixed = {**sealed_run.members, name: other[name]}
        assert judged(packed(mixed), sealed_run).status == "failed", name
        assert judged(packed(with_true_manifest(mixed)), sealed_run).status == "failed", name


def test_an_action_smuggled_out_of_anothers_metadata(sealed_run: SealedRun, tmp_path: Any) -> None:
    """A capsule's text may be parted at any place; only the action that it is about counts."""
    from dataclasses import replace

    from aver.actions.encodings import action_line
    from aver.capsule.canonical import canonical_json

    home = tmp_path / "home"
    with aver.open_ledger(home=home) as ledger:
        run = aver.AgentRuntime(tmp_path / "run", ledger=ledger)
        template = sealed_action(run)
        hidden = replace(template, action_id="act_hidden", output_hash="0" * 64, policy_verdict=None)
        run.record(replace(template, metadata={"x": {"action": hidden.to_dict()}}))
        run.finalize()
        key = ledger.keys.ring().active("ledger").key
    members = unpacked((tmp_path / "run" / "run.cap").read_bytes())
    capsules = lines_of(members, "capsules.jsonl")
    line = json.loads(capsules[1])
    real = json.loads(members["actions.jsonl"])
    whole = canonical_json({name: real[name] for name in template.to_dict()}).decode().join(line["canonical"])
    before, after = whole.split(canonical_json(hidden.to_dict()).decode())
    capsules[1] = (
        json.dumps({**line, "canonical": [before, after]}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    )
    forged = {
        **members,
        "actions.jsonl": action_line(hidden) + b"\n",
        "capsules.jsonl": b"".join(capsules),
    }
    verdict = aver.verify(packed(with_true_manifest(forged)), keys=[key], home=home)
    assert verdict.status == "failed"
    found = {(finding.check, finding.code) for finding in verdict.findings}
    assert ("sealed", "RECEIPT_MISMATCH") in found
    assert ("content", "HASH_MISMATCH") not in found


def sealed_action(run: aver.AgentRuntime) -> aver.AgentAction:
    from dataclasses import replace

    from support.runs import A

    return replace(A, gate_score=None, gate_decision=None, policy_verdict=None)

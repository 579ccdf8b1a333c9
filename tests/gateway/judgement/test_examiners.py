"""Acts judged afterwards: honest ones hold everywhere, and a forgery by the ledger's own key is found at its place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import aver
from aver import SeedSigner
from aver.capsule.aver_block import BLOCK_KEY
from aver.capsule.sealed import Sealed
from aver.gateway.act_records import revocation_key
from aver.gateway.delegation import read_delegation, sign_delegation
from aver.gateway.delegation_records import (
    build_issue_draft,
    build_revocation_draft,
    delegations_chain,
    issue_key,
    read_issue,
    read_revocation,
)
from aver.gateway.executor.executor import EffectOrder
from aver.gateway.judgement.act_rules import ActTrust, find_attestation_problem
from aver.gateway.judgement.recorded_act import read_header, read_recorded_preview
from aver.gateway.proof.attestation import Attestation, PolicyKeys, sign_attestation
from aver.ledger import open_ledger as open_plain_ledger
from aver.ledger.bundle import export_bundle, import_bundle
from aver.verdict import Place, Verdict
from support.act_ledgers import (
    CLIPPED,
    PARTNER,
    Acts,
    Change,
    add_rules,
    approve_act,
    forge_commit,
    forge_outcome,
    open_acts,
    prepare_home,
    preview_act,
    reseal,
    sign_token,
)
from support.acts import open_office
from support.approvals import somebody
from support.forged_records import forge as forge_record

CHECKS = ("evidence", "effects", "delegation")


@pytest.fixture
def acts(aver_home: Path, tmp_path: Path) -> Iterator[Acts]:
    prepare_home(aver_home)
    with open_acts(aver_home, tmp_path / "work") as opened:
        yield opened


def failures(verdict: Verdict) -> set[tuple[str, str | None, int | None]]:
    return {(one.check, one.place.chain, one.place.sequence) for one in verdict.findings if one.status == "failed"}


def words_at(verdict: Verdict, record: Sealed) -> str:
    return "; ".join(one.words for one in verdict.findings if one.place.sequence == record.sequence)


# --- honest acts


@pytest.mark.more
def test_honest_acts_hold_in_ledger_bundle_and_import(acts: Acts, tmp_path: Path) -> None:
    ledger = acts.ledger
    for verdict in (ledger.verify(), aver.verify(ledger), ledger.verify("gateway.s1")):
        assert verdict.status == "verified", verdict.to_dict()
        for check in CHECKS:
            assert verdict.check(check).status == "passed"
    export_bundle(ledger, tmp_path / "bundle")
    verdict = aver.verify(tmp_path / "bundle", keys=acts.keys)
    assert verdict.status == "verified", verdict.to_dict()
    assert [verdict.check(check).status for check in CHECKS] == ["passed"] * 3
    with aver.open_ledger(home=tmp_path / "other") as other:
        for key in acts.keys:
            other.keys.trust(key)
        import_bundle(other, tmp_path / "bundle")
        verdict = other.verify()
        assert not failures(verdict), verdict.to_dict()
        assert [verdict.check(check).status for check in CHECKS] == ["passed", "passed", "not_checked"]
        # No token was ever revoked, so there is no chain of them. That cannot be told from one that was not imported.
        assert "revoked delegations are not here" in verdict.check("delegation").reason


def test_a_patched_act_holds(aver_home: Path, tmp_path: Path) -> None:
    prepare_home(aver_home)
    add_rules(aver_home)
    with aver.open_ledger() as ledger, open_office(tmp_path / "work", ledger) as office:
        assert office.write("b.txt", "one two\n", caller=CLIPPED)["reason_code"] == "ALLOW"
        assert (office.workspace / "b.txt").read_text() == "one"
        verdict = ledger.verify()
        assert verdict.status == "verified", verdict.to_dict()
        outcome = list(ledger.read("gateway.s1"))[-1]
        commit = list(ledger.read("gateway.s1"))[-2]
        # The same act without its patch, from the COMMIT on.
        acts = Acts(office, somebody("ada"), {"open": commit.to_dict()["trigger"]["correlation_id"]})
        assert acts.preview("open").patch == {"patch_id": 2, "patch_name": "CLAMP_LEN", "params": {"max_chars": 3}}
        acts.ids["open"] = office.preview("c.txt", "one two\n", caller=CLIPPED)["data"]["action_id"]
        noop = {"patch_id": 0, "patch_name": "NOOP", "params": {}}
        forged = forge_commit(acts, change=lambda content: content["outcome"]["result"].update(patch=noop))
        sent = forge_outcome(acts, "open", forged.id)
        verdict = ledger.verify()
        assert {("evidence", "gateway.s1", forged.sequence), ("effects", "gateway.s1", sent.sequence)} <= failures(
            verdict
        )
        assert "something else went out" in words_at(verdict, sent)
        assert outcome.to_dict()["execution"]["tool_calls"][0]["arguments"]["content"] == "one"


def test_a_verdict_names_what_it_did_not_check(acts: Acts, tmp_path: Path) -> None:
    ledger = acts.ledger
    assert "one process that held the keys of both" in ledger.verify().check("evidence").reason
    export_bundle(ledger, tmp_path / "bundle")
    # Without MAC keys the attestations count; the report says so.
    verdict = aver.verify(tmp_path / "bundle", keys=acts.keys)
    assert "the MACs of 4 not checked" in verdict.check("evidence").reason
    # Without the keys of the policy servers, nothing holds the evidence.
    keys = [key for key in acts.keys if getattr(key, "purpose", "") != "policy"]
    verdict = aver.verify(tmp_path / "bundle", keys=keys)
    assert (verdict.status, verdict.check("evidence").status) == ("qualified", "not_checked")
    assert "policy:0 and policy:1 are not known" in verdict.check("evidence").reason
    with open_plain_ledger(home=ledger.config.home) as plain:
        verdict = plain.verify()
    for check in CHECKS:
        assert "no examiner" in verdict.check(check).reason


def test_a_part_of_a_ledger_names_the_records_that_it_lacks(acts: Acts, tmp_path: Path) -> None:
    export_bundle(acts.ledger, tmp_path / "bundle", chains=["gateway.s1"])
    verdict = aver.verify(tmp_path / "bundle", keys=acts.keys)
    assert not failures(verdict), verdict.to_dict()
    assert verdict.status == "qualified"
    assert "not here" in verdict.check("effects").reason


def test_inputs_that_were_not_kept_are_named(aver_home: Path, tmp_path: Path) -> None:
    prepare_home(aver_home)
    with open_acts(aver_home, tmp_path / "work", inputs="digest") as acts:
        verdict = acts.ledger.verify()
        assert verdict.status == "verified", verdict.to_dict()
        assert "request hashes not computed again" in verdict.check("evidence").reason
        # What went out is compared all the same: without a patch, its digest is that of the inputs.
        assert verdict.check("effects").reason == f"{verdict.check('effects').count} checked"


def test_only_new_acts_are_judged_again(acts: Acts) -> None:
    ledger, office = acts.ledger, acts.office
    assert ledger.verify().status == "verified"
    assert office.commit(acts.preview("open").tx_id)["reason_code"] == "ALLOW"
    verdict = ledger.verify(since="last")
    assert verdict.status == "verified", verdict.to_dict()
    assert (verdict.check("evidence").count, verdict.check("effects").count) == (1, 2)
    # An outcome alone needs the COMMIT that was verified before.
    preview_act(acts, "g.txt")
    forged = forge_commit(acts)
    assert ledger.verify().status == "verified"
    other = {"sent_sha256": "0" * 64}
    outcome = forge_outcome(acts, "open", forged.id, lambda content: content["outcome"]["result"].update(other))
    verdict = ledger.verify(since="last")
    assert failures(verdict) == {("effects", "gateway.s1", outcome.sequence)}


def test_an_act_much_later_is_judged_by_records_long_before(acts: Acts, monkeypatch: pytest.MonkeyPatch) -> None:
    """The records before the first new one are read back only as far as needed."""
    monkeypatch.setattr("aver.gateway.judgement.examiners.LOOK_BACK", 1)
    monkeypatch.setattr("aver.gateway.judgement.session_decisions.LOOK_BACK", 1)
    for number in range(3):
        acts.office.preview(f"{number}.txt")
    assert acts.ledger.verify().status == "verified"
    assert acts.office.commit(acts.preview("open").tx_id)["reason_code"] == "ALLOW"
    verdict = acts.ledger.verify(since="last")
    assert verdict.status == "verified", verdict.to_dict()


# --- acts of which not all is known


class Died(BaseException):
    """Ends the executor between the mark and the outcome."""


def die(order: EffectOrder) -> Any:
    raise Died


@pytest.mark.parametrize(("ahead", "status"), [(-1000, "qualified"), (0, "verified")])
def test_an_act_without_an_outcome_is_a_warning_unless_it_is_under_way(
    tmp_path: Path, ahead: float, status: str
) -> None:
    with open_office(tmp_path / "work", causes={"WriteWorkspaceFile": die}) as office:
        office.clock.ahead = ahead
        with suppress(Died):
            office.write()
        verdict = office.ledger.verify()
        assert verdict.status == status, verdict.to_dict()
        if ahead:
            (finding,) = verdict.findings
            assert (finding.check, finding.status, finding.code) == ("effects", "warning", "OUTCOME_UNKNOWN")
            assert (finding.place.chain, finding.place.sequence) == ("gateway.s1", 1)
        else:
            assert "1 under way" in verdict.check("effects").reason


def test_an_unknown_outcome_is_a_warning(tmp_path: Path) -> None:
    with open_office(tmp_path / "work", causes={"WriteWorkspaceFile": die}) as office:
        with suppress(Died):
            office.write()
        mark = list(office.ledger.read("gateway.s1"))[-1]
        office.gateway._executor._close_act(mark)  # type: ignore[attr-defined]
        verdict = office.ledger.verify()
        assert verdict.status == "qualified"
        assert [(one.check, one.code) for one in verdict.findings] == [("effects", "OUTCOME_UNKNOWN")]


def test_insecure_mode_qualifies_every_record(tmp_path: Path) -> None:
    with open_office(tmp_path / "work", is_insecure=True) as office:
        assert office.write()["reason_code"] == "ALLOW_INSECURE"
        verdict = office.ledger.verify()
        assert verdict.status == "qualified", verdict.to_dict()
        assert [one.code for one in verdict.findings] == ["INSECURE_MODE"] * 3


def test_the_word_of_the_caller_qualifies_an_act_that_a_person_had_to_confirm(tmp_path: Path) -> None:
    with open_office(tmp_path / "work", confirm="flag") as office:
        (office.workspace / "old.txt").write_text("x")
        assert office.act("DeleteWorkspaceFile", {"relpath": "old.txt"}, user_confirm=True)["status"] == "OK"
        verdict = office.ledger.verify()
        assert verdict.status == "qualified"
        assert [(one.check, one.code) for one in verdict.findings] == [("effects", "UNCONFIRMED")]


# --- forged commits


def test_a_commit_that_the_evidence_allows_is_no_forgery(acts: Acts) -> None:
    """The tests below change one thing of this record. Without the change there is nothing to find."""
    forge_outcome(acts, "open", forge_commit(acts).id)
    approve_act(acts, "g.txt")
    forge_outcome(acts, "approved", forge_commit(acts, "approved").id)
    verdict = acts.ledger.verify()
    assert verdict.status == "verified", verdict.to_dict()


Forge = Callable[[Acts], Sealed]


def change_share(name: str, value: Any, server_id: int = 0) -> Forge:
    """One field of one share is another one."""

    def change(content: dict[str, Any]) -> None:
        content["outcome"]["result"]["commit"][f"policy{server_id}"][name] = value

    return lambda acts: forge_commit(acts, change=change)


def flip_output(name: str) -> Forge:
    def change(content: dict[str, Any]) -> None:
        content["outcome"]["result"]["commit"]["policy1"]["outputs"][name] ^= 1

    return lambda acts: forge_commit(acts, change=change)


def swap_shares(acts: Acts) -> Sealed:
    def change(content: dict[str, Any]) -> None:
        commit = content["outcome"]["result"]["commit"]
        commit["policy0"], commit["policy1"] = commit["policy1"], commit["policy0"]

    return forge_commit(acts, change=change)


def swap_attestations(acts: Acts) -> Sealed:
    return forge_commit(acts, change=lambda content: content["authority"]["chain"].reverse())


def use_evidence_of(sort: str) -> Forge:
    """The shares and attestations of another act, with the ids of this one."""

    def forge(acts: Acts) -> Sealed:
        other = acts.record(sort, "act.commit").to_dict()
        return forge_commit(
            acts,
            change=lambda content: (
                content["outcome"]["result"].update(commit=other["outcome"]["result"]["commit"]),
                content["authority"].update(chain=other["authority"]["chain"]),
            ),
        )

    return forge


def change_result(**values: Any) -> Forge:
    return lambda acts: forge_commit(acts, change=lambda content: content["outcome"]["result"].update(values))


def attest(signer: SeedSigner | None, **changes: Any) -> Forge:
    """The attestation of server 0 with other content, signed anew or with the old signature."""

    def forge(acts: Acts) -> Sealed:
        statement = acts.preview("open").attestations[0]
        attestation = replace(Attestation.parse(statement.content), **changes)
        made = sign_attestation(attestation, signer or SeedSigner.generate())
        document = made.to_dict()
        if signer is None:
            document["signatures"] = statement.to_dict()["signatures"]
        return forge_commit(acts, change=lambda content: content["authority"]["chain"].__setitem__(0, document))

    return forge


def commit_refused(acts: Acts) -> Sealed:
    """A commit of a PREVIEW that was refused, with the evidence of one that was allowed."""
    allowed = acts.preview("open")
    return forge_commit(
        acts,
        "refused",
        commit={f"policy{n}": dict(share) for n, share in enumerate(allowed.shares or ())},
        attestations=allowed.attestations,
    )


def commit_without_preview(acts: Acts) -> Sealed:
    return forge_commit(acts, change=lambda content: content.update(parent_id=None))


def commit_unknown_preview(acts: Acts) -> Sealed:
    return forge_commit(acts, change=lambda content: content.update(parent_id="00000000-0000-4000-8000-000000000000"))


def commit_much_later(acts: Acts) -> Sealed:
    acts.office.clock.ahead = acts.office.gateway.settings.mac_ttl + 5
    return forge_commit(acts)


def commit_expired(acts: Acts) -> Sealed:
    acts.office.clock.ahead = 500
    return forge_commit(acts, mac_ttl=3600)


EVIDENCE_FORGERIES: dict[str, tuple[Forge, str]] = {
    "flipped allow_pre": (flip_output("allow_pre"), "POLICY_DENY"),
    "flipped need_confirm": (flip_output("need_confirm"), "is about another share"),
    "flipped patch": (flip_output("patch0"), "POLICY_DENY"),
    "share of another time": (change_share("ts", 1_700_000_000), "expired_proof"),
    "share with another tag": (change_share("commit_tag_share_b64", "AQEBAQEBAQEBAQEBAQEBAQ=="), "another share"),
    "share with another MAC": (change_share("mac_b64", "A" * 43 + "="), "bad_mac"),
    "share of another version": (change_share("v", 2), "bad_proof_version"),
    "share of another request": (change_share("request_sha256", "0" * 64), "bad_request_sha256"),
    "share of another program": (change_share("program_id", "other"), "bad_program_id"),
    "swapped shares": (swap_shares, "server_id_mismatch"),
    "swapped attestations": (swap_attestations, "bad_attestation"),
    "evidence of another act": (use_evidence_of("committed later"), "bad_action_id"),
    "no evidence": (change_result(commit=None), "MISSING_EVIDENCE"),
    "another program": (change_result(program_id="aver-policy-v1." + "0" * 64), "bad_program_id"),
    "other facts": (attest(None, facts_sha256="0" * 64), "bad_attestation"),
    "other facts signed by another key": (attest(SeedSigner.generate(), facts_sha256="0" * 64), "bad_attestation"),
    "other rules signed by another key": (attest(SeedSigner.generate(), rules=("x",)), "bad_attestation"),
    "other reasons": (attest(None, reasons=("x",)), "bad_attestation"),
    "refused preview": (commit_refused, "no PREVIEW"),
    "no preview": (commit_without_preview, "no PREVIEW"),
    "unknown preview": (commit_unknown_preview, "no PREVIEW"),
    "old shares": (commit_much_later, "expired_proof"),
}


def change_refs(**refs: str) -> Forge:
    def change(content: dict[str, Any]) -> None:
        content["context"]["environment"][BLOCK_KEY]["refs"].update(refs)

    return lambda acts: forge_commit(acts, change=change)


def rest_on(sort: str) -> Forge:
    """A COMMIT that rests on the decision about another act."""

    def forge(acts: Acts) -> Sealed:
        return forge_commit(acts, decision_id=acts.preview(sort).decision_id)

    return forge


def commit_twice(acts: Acts) -> Sealed:
    forge_outcome(acts, "open", forge_commit(acts).id)
    return forge_commit(acts, key="act:second")


def use_approval(change: Change = lambda content: None, **basis: Any) -> Forge:
    """A COMMIT of an act that a person approved, with one thing changed."""
    return lambda acts: forge_commit(acts, "approved", change, **basis)


def use_approval_of_another_act(acts: Acts) -> Sealed:
    """The approval of one act, used for another."""
    assert acts.order is not None
    return forge_commit(acts, "open", approval_use=acts.order.approval, approver="person:ada", approvals=())


def claim_approval(acts: Acts) -> Sealed:
    """The act that a person was asked about, committed on the strength of an approval that does not exist."""
    return forge_commit(acts, "asked", approval_use="00000000-0000-4000-8000-000000000000", approver="person:ada")


WITHOUT_STATEMENT = use_approval(approvals=())
OTHER_PERSON = use_approval(approver="person:eve")
OTHER_DECISION = use_approval(decision_id="")
NEED_APPROVAL = (WITHOUT_STATEMENT, OTHER_PERSON, OTHER_DECISION, use_approval_of_another_act)

EFFECT_FORGERIES: dict[str, tuple[Forge, str]] = {
    "another key": (lambda acts: forge_commit(acts, key="act:other"), "idempotency key"),
    "another patch": (
        change_result(patch={"patch_id": 2, "patch_name": "CLAMP_LEN", "params": {"max_chars": 1}}),
        "another patch",
    ),
    "another request": (change_result(request_sha256="0" * 64), "another request"),
    "another tx": (change_result(tx_id="tx_00000000-0000-4000-8000-000000000000"), "another act"),
    "other references": (change_refs(decision="00000000-0000-4000-8000-000000000000"), "references"),
    "the decision about another act": (rest_on("allowed"), "another act"),
    "the decision that refused another act": (rest_on("refused"), "another act"),
    "no decision": (lambda acts: forge_commit(acts, decision_id=""), "not there"),
    "an unknown decision": (
        lambda acts: forge_commit(acts, decision_id="00000000-0000-4000-8000-000000000000"),
        "not there",
    ),
    "an expired preview": (commit_expired, "had expired"),
    "a second time": (commit_twice, "committed before"),
    "an approval of another act": (use_approval_of_another_act, "used for another act"),
    "an approval that does not exist": (claim_approval, "does not exist"),
    "an approval without the person's word": (WITHOUT_STATEMENT, "not those of the people"),
    "an approval of another person": (OTHER_PERSON, "others approved it"),
    "an approval without a decision": (OTHER_DECISION, "not there"),
    "a person who approved, without an approval": (
        lambda acts: forge_commit(
            acts, change=lambda content: content["authority"].update(type="human_approved", approver="person:ada")
        ),
        "names no use",
    ),
    "another session": (
        lambda acts: forge_commit(acts, change=lambda content: content["context"].update(session_id="s2")),
        "another act or session",
    ),
    "another correlation": (
        lambda acts: forge_commit(acts, change=lambda content: content["trigger"].update(correlation_id="a_x")),
        "another act or session",
    ),
}


# --- forged previews and outcomes


def change_preview(sort: str = "open", **values: Any) -> Forge:
    def forge(acts: Acts) -> Sealed:
        record = acts.record(sort, "act.preview")
        return reseal(acts.ledger, record, lambda content: content["outcome"]["result"].update(values))

    return forge


def allow_refused(acts: Acts) -> Sealed:
    return change_preview("refused", reason_code="ALLOW", allow_pre=1)(acts)


def allow_with_evidence(acts: Acts) -> Sealed:
    """The refused PREVIEW, with the shares and attestations of the one that was allowed."""
    other = acts.record("open", "act.preview").to_dict()
    values = {name: other["outcome"]["result"][name] for name in ("shares", "expires", "facts_sha256", "program_id")}

    def change(content: dict[str, Any]) -> None:
        content["outcome"]["result"].update(values, reason_code="ALLOW", allow_pre=1)
        content["authority"].update(chain=other["authority"]["chain"])

    return reseal(acts.ledger, acts.record("refused", "act.preview"), change)


def drop_attestation(acts: Acts) -> Sealed:
    record = acts.record("open", "act.preview")
    return reseal(acts.ledger, record, lambda content: content["authority"]["chain"].pop())


def other_inputs(acts: Acts) -> Sealed:
    return change_preview(inputs={"relpath": "a.txt", "content": "evil\n"})(acts)


PREVIEW_FORGERIES: dict[str, tuple[Forge, str, str]] = {
    "other inputs": (other_inputs, "evidence", "not that of its inputs"),
    "another hash": (change_preview(request_sha256="0" * 64), "evidence", "not that of its inputs"),
    "allowed without evidence": (allow_refused, "evidence", "lacks evidence"),
    "allowed with the evidence of another act": (allow_with_evidence, "evidence", "attests another"),
    "refused with evidence": (change_preview(reason_code="POLICY_DENY"), "evidence", "has evidence"),
    "asked, and no person is needed": (change_preview(reason_code="REQUIRE_CONFIRM"), "evidence", "does not"),
    "one attestation": (drop_attestation, "evidence", "lacks an attestation"),
    "other bits": (change_preview(need_confirm=1), "evidence", "attests another bits"),
    "other facts": (change_preview(facts_sha256="0" * 64), "evidence", "attests another facts_sha256"),
    "good for ever": (change_preview(expires="2099-01-01T00:00:00+00:00"), "evidence", "longer than"),
    "answered otherwise than decided": (change_preview("asked", reason_code="ALLOW"), "effects", "human_review"),
}


def outcome_of_open(**values: Any) -> Forge:
    """The outcome of a COMMIT, with other values."""

    def forge(acts: Acts) -> Sealed:
        commit = forge_commit(acts)
        return forge_outcome(acts, "open", commit.id, lambda content: content["outcome"]["result"].update(values))

    return forge


def other_call(acts: Acts) -> Sealed:
    def change(content: dict[str, Any]) -> None:
        content["execution"]["tool_calls"][0]["arguments"] = {"relpath": "f.txt", "content": "evil\n"}

    return forge_outcome(acts, "open", forge_commit(acts).id, change)


OUTCOME_FORGERIES: dict[str, tuple[Forge, str]] = {
    "success without a commit": (
        lambda acts: forge_outcome(acts, "open", acts.preview("open").record_id, key="outcome:first"),
        "no COMMIT before it",
    ),
    "failure without a commit": (
        lambda acts: forge_outcome(acts, "open", acts.preview("open").record_id, code="EFFECT_FAILED", key="x:y"),
        "no COMMIT before it",
    ),
    "a second outcome": (
        lambda acts: reseal(acts.ledger, acts.record("allowed", "act.outcome"), lambda content: None),
        "no COMMIT before it",
    ),
    "something else sent": (outcome_of_open(sent_sha256="0" * 64), "something else went out"),
    "nothing sent": (outcome_of_open(sent_sha256=None), "does not say what went out"),
    "another call": (other_call, "not what went out"),
    "insecure": (outcome_of_open(reason_code="ALLOW_INSECURE"), "another mode"),
    "unknown, with a call": (outcome_of_open(reason_code="OUTCOME_UNKNOWN"), "nobody knows it"),
    "of another act": (
        lambda acts: forge_outcome(acts, "open", forge_commit(acts).id, key="outcome:other"),
        "another act",
    ),
}

# --- forged delegations


def forge_delegated(change: Change) -> Forge:
    """The PREVIEW of a delegated act once more, with one change."""
    return lambda acts: reseal(acts.ledger, acts.record("delegated", "act.preview"), change)


def set_token(text: str) -> Change:
    statement = read_delegation(text)[-1].statement.to_dict()
    return lambda content: content["authority"]["chain"].__setitem__(2, statement)


def break_signature(content: dict[str, Any]) -> None:
    signature = content["authority"]["chain"][2]["signatures"][0]
    signature["ed25519"] = signature["ed25519"][:-1] + ("0" if signature["ed25519"][-1] != "0" else "1")


DELEGATION_FORGERIES: dict[str, tuple[Change, str]] = {
    "no token": (lambda content: content["authority"]["chain"].__delitem__(2), "DELEGATION_REQUIRED"),
    "two tokens": (
        lambda content: content["authority"]["chain"].append(content["authority"]["chain"][2]),
        "DELEGATION_REQUIRED",
    ),
    "a token that is none": (
        lambda content: content["authority"]["chain"][2]["content"].update(scope=[]),
        "DELEGATION_TOKEN_MALFORMED",
    ),
    "another signature": (break_signature, "DELEGATION_TOKEN_BAD_SIGNATURE"),
    "another jti": (set_token(sign_token(jti="dlg_2")), "EXTERNAL_PRINCIPAL_MISMATCH"),
    "another session": (set_token(sign_token(session="s2")), "DELEGATION_SESSION_MISMATCH"),
    "another caller": (set_token(sign_token(sub="agent:other")), "DELEGATION_SUBJECT_MISMATCH"),
    "another scope": (set_token(sign_token(scope=("intent:Read*",))), "DELEGATION_SCOPE_DENY"),
    "expired": (set_token(sign_token(expires="2020-01-01T00:00:00+00:00")), "DELEGATION_TOKEN_EXPIRED"),
}

ALL_FORGERIES = {
    **{f"evidence: {name}": (forge, "evidence", words) for name, (forge, words) in EVIDENCE_FORGERIES.items()},
    **{f"effects: {name}": (forge, "effects", words) for name, (forge, words) in EFFECT_FORGERIES.items()},
    **{f"preview: {name}": found for name, found in PREVIEW_FORGERIES.items()},
    **{f"outcome: {name}": (forge, "effects", words) for name, (forge, words) in OUTCOME_FORGERIES.items()},
    **{
        f"delegation: {name}": (forge_delegated(change), "delegation", words)
        for name, (change, words) in DELEGATION_FORGERIES.items()
    },
}


class Forged(NamedTuple):
    """A ledger with every forgery, its verdicts, and where each forgery is."""

    sequences: dict[str, int]
    verdicts: dict[str, tuple[Verdict, str]]
    """For the ledger, a bundle and an import: the verdict, and the name of the chain there."""


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Forged:
    """Every forgery in one ledger, each about an act of its own."""
    place = tmp_path_factory.mktemp("forged")
    prepare_home(place / "home")
    sequences = {}
    with open_acts(place / "home", place / "work") as acts:
        for number, (name, (forge, _, _)) in enumerate(ALL_FORGERIES.items()):
            acts.office.clock.ahead = 0
            preview_act(acts, f"open-{number}.txt")
            if forge in NEED_APPROVAL:
                approve_act(acts, f"approved-{number}.txt")
            sequences[name] = forge(acts).sequence
        acts.office.clock.ahead = 0
        verdicts = {"ledger": (acts.ledger.verify(), "gateway.s1")}
        export_bundle(acts.ledger, place / "bundle")
        verdicts["bundle"] = aver.verify(place / "bundle", keys=acts.keys), "gateway.s1"
        with open_plain_ledger(home=place / "other") as other:  # Its import has no examiners.
            for key in acts.keys:
                other.keys.trust(key)
            imported = {one.origin: one.name for one in import_bundle(other, place / "bundle").chains}
        verdict = aver.verify(home=place / "other", ledger=place / "other" / "ledger.db")
        verdicts["import"] = verdict, imported["gateway.s1"]
    return Forged(sequences, verdicts)


@pytest.mark.parametrize("what", ALL_FORGERIES)
def test_a_forgery_is_found_at_its_place_in_ledger_bundle_and_import(forged: Forged, what: str) -> None:
    _, check, words = ALL_FORGERIES[what]
    sequence = forged.sequences[what]
    for where, (verdict, chain) in forged.verdicts.items():
        found = [one for one in verdict.findings if one.place.chain == chain and one.place.sequence == sequence]
        assert any(one.check == check and one.status == "failed" for one in found), (where, found)
        if "bad_mac" not in words or where == "ledger":  # Only the ledger's own home has the MAC keys.
            assert words in "; ".join(one.words for one in found), where
        assert {one.code for one in found if one.status == "failed"} <= {"EVIDENCE_INVALID", "REPLAY"}


def test_nothing_else_is_found(forged: Forged) -> None:
    """The honest records between the forgeries hold."""
    for verdict, chain in forged.verdicts.values():
        found = {one.place.sequence for one in verdict.findings if one.check in CHECKS and one.status == "failed"}
        assert found == set(forged.sequences.values())
        assert {one.place.chain for one in verdict.findings if one.status == "failed"} == {chain}


def test_a_forgery_does_not_hide_the_next_one(acts: Acts) -> None:
    """Records that lack everything, or name blobs that are not here, keep no other from being judged."""
    record = acts.record("allowed", "act.preview")
    empty = reseal(acts.ledger, record, lambda content: content["outcome"].update(result={"v": 1, "action_id": "x"}))
    forged = other_inputs(acts)
    verdict = acts.ledger.verify()
    assert failures(verdict) >= {("evidence", "gateway.s1", one.sequence) for one in (empty, forged)}


def test_a_record_by_another_key_counts_for_nothing(acts: Acts) -> None:
    """Someone with write access and a key of his own, known here or not, adds a PREVIEW behind the ledger's back."""
    signer = SeedSigner.generate()
    content = acts.record("open", "act.preview").to_dict()
    content["context"]["environment"][BLOCK_KEY] = {"kind": "act.preview"}
    content.update(id="11111111-1111-4111-8111-111111111111", sequence=0, previous_hash=None)
    forged = forge_record(acts.ledger, "gateway.s1", signer, at=aver.clock.now(), draft=aver.Capsule.from_dict(content))
    verdict = acts.ledger.verify()
    assert verdict.status == "failed"
    assert ("UNKNOWN_SIGNER", forged.sequence) in {(one.code, one.place.sequence) for one in verdict.findings}


def test_a_retired_policy_key_attests_nothing_any_more(acts: Acts) -> None:
    """What a key attested while it was a server's holds after its rotation; what it attests later does not."""
    acts.ledger.keys.rotate("policy:0")
    verdict = acts.ledger.verify()
    assert verdict.status == "verified", verdict.to_dict()
    record = acts.record("open", "act.preview")
    content = record.to_dict()
    preview = read_recorded_preview(read_header(Place("gateway.s1"), content), content, acts.ledger.blob)
    statements = content["authority"]["chain"]
    keys = PolicyKeys.from_ring(acts.ledger.keys.ring())
    by, ts = statements[0]["signatures"][0]["by"], statements[0]["content"]["ts"]
    for retired, words in ((ts + 1, ""), (ts - 1000, f"by its key {by}, which was retired")):
        trust = ActTrust(policy_keys=keys, retired={by: retired})
        assert words in find_attestation_problem(preview, statements, trust)
        assert bool(words) == bool(find_attestation_problem(preview, statements, trust))


# --- delegation


def test_the_token_of_an_unknown_issuer_is_not_checked(acts: Acts, tmp_path: Path) -> None:
    export_bundle(acts.ledger, tmp_path / "bundle")
    keys = [key for key in acts.keys if key != PARTNER.public]
    verdict = aver.verify(tmp_path / "bundle", keys=keys)
    assert not failures(verdict)
    finding = next(one for one in verdict.findings if one.check == "delegation")
    assert (finding.status, finding.code) == ("not_checked", "UNKNOWN_SIGNER")
    assert verdict.status == "qualified"


def test_issue_and_revocation_are_records_that_hold(acts: Acts) -> None:
    ledger, chain = acts.ledger, delegations_chain("default")
    parent = sign_token(jti="dlg_5")
    agent = ledger.keys.signer("agent:writer")
    child = sign_delegation(
        agent,
        iss="agent:writer",
        sub="agent:helper",
        session="s1",
        scope=("intent:WriteWorkspaceFile",),
        expires="2098-01-01T00:00:00+00:00",
        jti="dlg_6",
        parent=parent,
    )
    for jti, token in (("dlg_5", parent), ("dlg_6", child)):
        record = ledger.append(chain, build_issue_draft(token), key=issue_key(jti))
        assert read_issue(record, ledger.blob)[-1].text == token
    record = ledger.append(chain, build_revocation_draft("dlg_5", "no longer needed"), key=revocation_key("dlg_5"))
    assert read_revocation(record).reason == "no longer needed"
    verdict = ledger.verify()
    assert verdict.status == "verified", verdict.to_dict()
    assert verdict.check("delegation").count == 5
    for forged, words in (
        (reseal(ledger, record, lambda content: None, key="delegation-revoked:other"), "the key of another token"),
        (
            reseal(
                ledger,
                next(ledger.read(chain)),
                lambda content: content["outcome"]["result"].update(scope=["*"]),
                key=issue_key("dlg_7"),
            ),
            "something else than its token",
        ),
    ):
        verdict = ledger.verify()
        assert ("delegation", chain, forged.sequence) in failures(verdict), verdict.to_dict()
        assert words in words_at(verdict, forged)


@pytest.mark.parametrize(("after", "status"), [(10.0, "failed"), (1.0, "warning")])
def test_an_act_by_a_revoked_token_is_found(acts: Acts, after: float, status: str) -> None:
    ledger = acts.ledger
    ledger.append(delegations_chain("default"), build_revocation_draft("dlg_1"), key=revocation_key("dlg_1"))
    assert ledger.verify().status == "verified"  # The acts so far came before.
    acts.office.clock.ahead = after
    forged = forge_delegated(lambda content: None)(acts)
    found = [one for one in ledger.verify().findings if one.check == "delegation"]
    assert [(one.status, one.place.sequence) for one in found] == [(status, forged.sequence)]
    assert "DELEGATION_REVOKED" in found[0].words
    refused = acts.office.write("x.txt", external_principal="partner", delegation_token=sign_token())
    assert refused["reason_code"] == "DELEGATION_REVOKED"


# --- ledgers from before


def test_a_ledger_without_acts_has_no_checks_of_them(ledger: aver.Ledger) -> None:
    ledger.append("notes.a", aver.Capsule(type="tool"))
    verdict = ledger.verify()
    assert verdict.status == "verified"
    assert not {check.name for check in verdict.checks} & set(CHECKS)

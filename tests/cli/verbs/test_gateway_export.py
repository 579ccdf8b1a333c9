"""`aver gateway export`, and what a stranger does with the file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.act_ledgers import PARTNER, Acts, open_acts, prepare_home
from support.aver_command import Aver


@pytest.fixture
def acts(aver_home: Path, tmp_path: Path) -> Iterator[Acts]:
    prepare_home(aver_home)
    with open_acts(aver_home, tmp_path / "work") as opened:
        yield opened


@pytest.mark.more
def test_the_command_writes_a_file_that_anyone_verifies(acts: Acts, aver: Aver, tmp_path: Path) -> None:
    path, keys = tmp_path / "act.json", tmp_path / "keys.json"
    home = {"AVER_HOME": str(acts.ledger.config.home)}
    ran = aver("gateway", "export", acts.ids["delegated"], "--out", path, **home)
    assert ran.code == 0, ran
    assert "aver keys export ledger policy:0 policy:1 --out keys.json" in ran.out
    assert f"--key keys.json --key {PARTNER.public.ed25519}" in ran.out
    assert aver("gateway", "export", acts.ids["delegated"], "--out", path, **home).code == 2
    ran = aver("gateway", "export", acts.ids["confirmed"], "--out", path, "--force", "--json", **home)
    assert ran.json["action_id"] == acts.ids["confirmed"]
    assert ran.json["keys"] == {
        "export": ["ledger", acts.person.public.ed25519, "policy:0", "policy:1"],
        "others": [],
    }
    assert aver("keys", "export", *ran.json["keys"]["export"], "--out", keys, **home).code == 0
    elsewhere = {"AVER_HOME": str(tmp_path / "elsewhere")}
    ran = aver("verify", path, "--key", keys, "--json", **elsewhere)
    assert (ran.code, ran.json["status"]) == (0, "verified"), ran.json
    assert aver("verify", path, "--key", path, **elsewhere).code == 2  # Keys that come with the act prove nothing.
    assert aver("gateway", "export", "a_nothing", "--out", tmp_path / "no.json", **home).code == 2
    assert not (tmp_path / "no.json").exists()


def test_bundle_with_acts_is_verified_by_the_printed_command(aver: Aver, tmp_path: Path) -> None:
    """The keys of the policy servers belong to it, which signed what they decided."""
    act = ("--inputs", '{"relpath": "a.txt", "content": "hello"}', "--session", "s1", "--caller", "agent:build")
    assert aver("gateway", "act", "WriteWorkspaceFile", *act, "--json").json["reason_code"] == "ALLOW"
    bundle, keys = tmp_path / "bundle", tmp_path / "bundle.keys.json"
    ran = aver("export", "--out", bundle)
    assert ran.out.endswith("aver verify bundle --key bundle.keys.json\n"), ran.out
    identities = {key["identity"] for key in json.loads(keys.read_text())["keys"]}
    assert identities == {"ledger", "policy:0", "policy:1"}
    ran = aver("verify", bundle, "--key", keys, "--json", AVER_HOME=str(tmp_path / "elsewhere"))
    assert (ran.code, ran.json["status"]) == (0, "verified"), ran.json


@pytest.mark.more
def test_a_delegated_act_is_verified_by_the_printed_command(aver: Aver, tmp_path: Path) -> None:
    """The principal's key is on the ring, under another name than the principal's."""
    aver("keys", "new", "agent:acme")
    aver("keys", "export", "agent:acme", "--out", tmp_path / "acme.json")
    key = json.loads((tmp_path / "acme.json").read_text())["keys"][0]["public_key"]
    settings = f'[gateway.principals."ext:acme"]\nkey = "{key}"\n'
    (aver.home / "config.toml").write_text(settings)
    signer = ("--principal", "ext:acme", "--identity", "agent:acme")
    issued = aver("gateway", "delegate", "agent:build", *signer, "--session", "s1", "--scope", "*", "--json").json
    constraints = json.dumps({"external_principal": "ext:acme", "delegation_token": issued["token"]})
    act = ("--inputs", '{"relpath": "a.txt", "content": "hello"}', "--session", "s1", "--caller", "agent:build")
    done = aver("gateway", "act", "WriteWorkspaceFile", *act, "--constraints", constraints, "--json").json
    assert done["reason_code"] == "ALLOW", done
    path, keys, bundle = tmp_path / "act.json", tmp_path / "keys.json", tmp_path / "bundle"
    ran = aver("gateway", "export", done["data"]["action_id"], "--out", path)
    assert f"--key keys.json --key {key}" in ran.out
    names = ran.out.partition("aver keys export ")[2].partition(" --out")[0].split()
    assert aver("keys", "export", *names, "--out", keys).code == 0
    elsewhere = {"AVER_HOME": str(tmp_path / "elsewhere")}
    ran = aver("verify", path, "--key", keys, "--key", key, "--json", **elsewhere)
    # An act file never has the records of revoked tokens. The token itself is checked.
    assert (ran.code, UNKNOWN in ran.out) == (0, False), ran.json
    # The settings of a home are its owner's word about a principal, also for a file or a bundle.
    assert aver("export", "--out", bundle).code == 0
    for thing in (path, bundle):
        assert UNKNOWN not in aver("verify", thing, "--json").out, thing
        assert UNKNOWN in aver("verify", thing, "--key", keys, "--json").out, "given keys count alone"
    (aver.home / "config.toml").write_text(settings.replace("ext:acme", "ext:other"))
    assert UNKNOWN in aver("verify", path, "--json").out


UNKNOWN = "of 'ext:acme' is not known here"


@pytest.mark.parametrize("name", ["allowed", "delegated", "confirmed"])
def test_the_evidence_of_a_real_act_is_accepted_by_the_printed_command(
    acts: Acts, aver: Aver, tmp_path: Path, name: str
) -> None:
    commit, request = tmp_path / "commit.json", tmp_path / "request.json"
    home = {"AVER_HOME": str(acts.ledger.config.home)}
    files = ("--commit", commit, "--request", request)
    ran = aver("gateway", "evidence", acts.ids[name], *files, "--json", **home)
    options = ran.json["verify_evidence"]
    judged = aver("gateway", "verify-evidence", *options, "--strict", "--json", **home)
    assert (judged.code, judged.json["decision"]) == (0, "ACCEPT"), judged.json
    assert ("--user-confirm" in options) is (name == "confirmed")
    # The RFC's spec names the program of its example: the answer says how to name another.
    at = options.index("--program-id")
    judged = aver("gateway", "verify-evidence", *options[:at], *options[at + 2 :], **home)
    assert judged.code == 2
    assert f"give --program-id {options[at + 1]}" in " ".join(judged.out.split())
    # Other inputs are another request, and nothing is overwritten.
    changed = json.loads(request.read_text())
    changed["inputs"]["extra"] = "x"
    request.write_text(json.dumps(changed))
    assert aver("gateway", "verify-evidence", *options, **home).code == 2
    assert aver("gateway", "evidence", acts.ids[name], *files, **home).code == 2


def test_an_act_without_evidence_writes_nothing(acts: Acts, aver: Aver, tmp_path: Path) -> None:
    files = ("--commit", tmp_path / "c.json", "--request", tmp_path / "r.json")
    home = {"AVER_HOME": str(acts.ledger.config.home)}
    ran = aver("gateway", "evidence", acts.ids["refused"], *files, **home)
    assert ran.code == 2
    assert "no evidence" in ran.err
    assert not list(tmp_path.glob("?.json"))

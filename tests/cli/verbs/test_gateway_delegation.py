"""`aver gateway delegate` and `revoke`, and acts by the tokens that they make and end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aver.keys import SeedSigner
from support.aver_command import Aver, Ran

SEED = b"\7" * 32
INPUTS = json.dumps({"relpath": "a.txt", "content": "hello\n"})


@pytest.fixture
def acme(aver: Aver) -> Aver:
    """The command in a home that knows the principal `ext:acme`, whose key is in the file `acme.key`."""
    aver.home.mkdir(mode=0o700)
    key = SeedSigner(SEED).public.ed25519
    (aver.home / "config.toml").write_text(f'[gateway.principals."ext:acme"]\nkey = "{key}"\n')
    (aver.directory / "work").mkdir()
    path = aver.directory / "acme.key"
    path.touch(mode=0o600)
    path.write_bytes(SEED)
    return aver


def delegate(aver: Aver, *options: str, principal: str = "ext:acme", scope: str = "intent:Write*") -> Ran:
    given = ("--principal", principal, "--session", "s1", "--scope", scope, "--json", *options)
    key = () if "--identity" in options else ("--key", str(aver.directory / "acme.key"))
    return aver("gateway", "delegate", "agent:build", *given, *key)


def act(aver: Aver, token: str, intent: str = "CheckWriteWorkspaceFile", **changes: str) -> str:
    constraints = json.dumps({"delegation_token": token, "external_principal": "ext:acme"})
    workspace = str(aver.directory / "work")
    options = {"caller": "agent:build", "session": "s1", "inputs": INPUTS, "workspace": workspace, **changes}
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    done = aver("gateway", "act", intent, "--constraints", constraints, "--json", *words)
    return str(done.json["reason_code"])


@pytest.mark.more
def test_a_token_lets_its_caller_act_until_it_is_revoked(acme: Aver) -> None:
    issued = delegate(acme).json
    assert act(acme, issued["token"]) == "ALLOW"
    assert act(acme, issued["token"], caller="agent:other") == "DELEGATION_SUBJECT_MISMATCH"
    assert act(acme, issued["token"], session="s2") == "DELEGATION_SESSION_MISMATCH"
    assert act(acme, issued["token"], "CheckReadWorkspaceFile", inputs='{"relpath": "a"}') == "DELEGATION_SCOPE_DENY"
    assert acme("gateway", "revoke", issued["jti"], "--reason", "the laptop was lost", "--json").json["new"] is True
    assert act(acme, issued["token"]) == "DELEGATION_REVOKED"
    assert acme("gateway", "revoke", issued["jti"], "--json").json["new"] is False
    assert acme("verify").code == 0


@pytest.mark.more
def test_both_are_records(acme: Aver) -> None:
    issued = delegate(acme).json
    acme("gateway", "revoke", issued["jti"])
    log = acme("log", "delegations.default", "--json").out
    assert "delegation.issue" in log
    assert "delegation.revoke" in log


def test_a_key_that_is_not_the_principals_issues_nothing(acme: Aver) -> None:
    acme("keys", "new", "agent:other")
    done = delegate(acme, "--identity", "agent:other")
    assert (done.code, done.json["error"]["message"].count("another key")) == (2, 1)
    assert delegate(acme, principal="ext:nobody").code == 2


def test_an_identity_of_the_key_store_delegates_and_a_child_only_narrows(acme: Aver, tmp_path: Path) -> None:
    acme("keys", "new", "agent:build")
    key = next(each for each in acme("keys", "show", "--json").json["keys"] if each["identity"] == "agent:build")
    with (acme.home / "config.toml").open("a") as config:
        config.write(f'[gateway.principals."agent:build"]\nkey = "{key["public_key"]}"\n')
    parent = tmp_path / "token"
    parent.write_text(delegate(acme).json["token"] + "\n")
    more = ("--identity", "agent:build", "--parent", f"@{parent}", "--for", "10m")
    child = delegate(acme, *more, principal="agent:build", scope="intent:WriteWorkspaceFile")
    assert act(acme, child.json["token"]) == "ALLOW"
    assert delegate(acme, *more, principal="agent:build", scope="*").code == 2
    acme("gateway", "revoke", json.loads(delegate(acme).out)["jti"])
    assert act(acme, child.json["token"]) == "ALLOW", "another token was revoked"


@pytest.mark.parametrize("options", [("--for", "0h"), ("--for", "soon"), ("--scope", "everything")])
def test_bad_options(acme: Aver, options: tuple[str, ...]) -> None:
    assert delegate(acme, *options).code == 2


def test_a_jti_that_is_none(acme: Aver) -> None:
    assert acme("gateway", "revoke", "not a jti").code == 2


def test_a_revoked_id_that_was_never_issued_is_told(acme: Aver) -> None:
    issued = delegate(acme).json["jti"]
    assert acme("gateway", "revoke", issued).err == ""
    assert acme("gateway", "revoke", issued, "--json").json["issued_here"] is True
    typo = acme("gateway", "revoke", "dlg_nosuch")
    assert (typo.code, "no token dlg_nosuch was issued here" in typo.err) == (0, True)
    assert acme("gateway", "revoke", "dlg_nosuch", "--json").json["issued_here"] is False


def test_a_child_ends_with_its_parent_unless_it_is_told_otherwise(acme: Aver, tmp_path: Path) -> None:
    acme("keys", "new", "agent:build")
    key = next(each for each in acme("keys", "show", "--json").json["keys"] if each["identity"] == "agent:build")
    with (acme.home / "config.toml").open("a") as config:
        config.write(f'[gateway.principals."agent:build"]\nkey = "{key["public_key"]}"\n')
    parent = delegate(acme, "--for", "30m")
    file = tmp_path / "token.json"
    file.write_text(parent.out)  # As --json prints it.
    more = ("--identity", "agent:build", "--parent", f"@{file}")
    scope = {"principal": "agent:build", "scope": "intent:WriteWorkspaceFile"}
    assert delegate(acme, *more, **scope).json["expires"] == parent.json["expires"]
    late = delegate(acme, *more, "--for", "2h", **scope)
    assert (late.code, "--for" in late.err) == (2, True)
    file.write_text('{"jti": 1}')
    none = delegate(acme, *more, **scope)
    assert (none.code, "--parent" in none.err, "@FILE" in none.err) == (2, True, True)

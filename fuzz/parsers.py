"""Targets that are parsers: JSON, URIs, keys, settings, rules, commands, diffs, statements."""

from __future__ import annotations

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature, encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

import aver
from aver import KeyStore, PublicKey, Sealed, SeedSigner
from aver.capsule.json_reader import canonical_forms, read_elements, read_json
from aver.capsule.model import Capsule
from aver.config import load_config
from aver.diffs import count_changed_lines
from aver.events.event import read_event
from aver.gate.action import Action, Facts
from aver.gate.approvals.passkey_enrolment import read_enrolment_code
from aver.gate.approvals.roster import approver_from_dict
from aver.gate.approvals.rules import read_approval_rules, read_system_file
from aver.gate.decide import Gate, decide
from aver.gate.policy.bundle import build_policy_bundle, load_policy_bundle, read_starter_files
from aver.gate.policy.cases import read_cases
from aver.gate.risk.features import measure_diff
from aver.gate.settings import read_gate_settings
from aver.hooks.run import read_hook_settings
from aver.ingest.patches import diff_from_blocks, patch_from_changes, read_patch
from aver.install import edit
from aver.keys import Statement, check_statement, load_seed_signer, read_public_keys, sign_statement, statement_bytes
from aver.keys.algorithms import ed25519_from_seed, sign_ed25519
from aver.keys.exchange import build_key_export
from aver.keys.passkey import (
    P256_ORDER,
    Passkey,
    PasskeySignature,
    encode_base64url,
    passkey_problem,
    statement_challenge,
)
from aver.ledger.head import Head
from aver.verdict import ChainJudge, Rules, conclude
from aver.verdict.record import read_record
from fuzz.honest import read_files, write_files
from fuzz.oracles import Defect, call_parser, call_verify
from fuzz.recipes import Members
from fuzz.target import RecipeTarget, Target


def text_of(data: bytes) -> str:
    """Bytes as a text that some outside program may hand over: lone surrogates stand for bytes that are no UTF-8."""
    return data.decode("utf-8", "surrogateescape")


class JsonReader(Target):
    """The reader of JSON, the reader of records, and the judge of one record."""

    name = "json"

    def prepare(self) -> None:
        self._signer = SeedSigner(bytes(32), bytes(32))
        self._sealed = aver.seal(Capsule(type="tool", outcome={"metrics": {"tiny": 1e-9, "text": "é😀"}}), self._signer)

    def seeds(self) -> list[bytes]:
        return [json.dumps(self._sealed.to_sealed_dict()).encode(), self._sealed.canonical]

    def run(self, data: bytes) -> None:
        call_parser(lambda: read_json(data))
        call_parser(lambda: read_json(text_of(data)))
        call_parser(lambda: read_record(data))
        call_parser(lambda: list(canonical_forms(data)))
        call_parser(lambda: list(read_elements([data[:7], data[7:]], key="capsules")))
        call_parser(lambda: Head.from_dict(json.loads(data)) if data[:1] == b"{" and _is_json(data) else None)
        call_parser(lambda: read_event(data))
        sealed = call_parser(lambda: Sealed.from_sealed_json(data))
        if sealed is None:
            return
        judge = ChainJudge(Rules(aver.Ring.pin([self._signer.public])), start=None)
        call_parser(lambda: judge.judge(sealed))
        verdict = call_parser(lambda: conclude("fuzz", judge.finish()))
        if verdict.status in ("verified", "qualified") and sealed.canonical != self._sealed.canonical:
            raise Defect(f"{verdict.status} with other content: {sealed.canonical[:300]!r}")


def _is_json(data: bytes) -> bool:
    try:
        json.loads(data)
    except (ValueError, RecursionError):
        return False
    return True


class Uri(Target):
    """References to records: `capsule://…`."""

    name = "uri"
    share = 4

    def seeds(self) -> list[bytes]:
        return [b"capsule://claude-code.5d2e/7#outcome/result", b"capsule://sha3_" + b"ab" * 32, b"capsule://x"]

    def run(self, data: bytes) -> None:
        found = call_parser(lambda: aver.parse_uri(text_of(data)))
        if found is not None:
            call_parser(lambda: str(found))


class KeyFiles(RecipeTarget):
    """The key files of a home: ring, known keys, private keys."""

    name = "key-files"
    share = 12

    def honest_members(self) -> Members:
        home = self.things.new_directory("key-home")
        store = KeyStore(home)
        store.create("agent:builder")
        store.rotate("agent:builder")
        store.create("ledger", post_quantum=True)
        store.trust(SeedSigner(bytes(range(1, 33))).public)
        return {name: data for name, data in read_files(home).items() if not name.endswith(".lock")}

    def judge(self, members: Members) -> None:
        home = self.things.new_path("damaged-keys")
        write_files(home, members)
        home.chmod(0o700)
        for path in home.rglob("*"):
            path.chmod(0o700 if path.is_dir() else 0o600)
        store = KeyStore(home)
        ring = call_parser(store.ring)
        if ring is not None:
            call_parser(lambda: build_key_export([*ring.entries]))
        for identity in ("ledger", "agent:builder"):
            signer = call_parser(lambda identity=identity: store.signer(identity, create=False))
            if signer is not None:
                call_parser(lambda signer=signer: signer.sign("ab" * 32))
        for name in ("keyring.json", "known_keys.json"):
            call_parser(lambda name=name: read_public_keys(home / name))
        call_parser(lambda: store.rotate("agent:builder"))
        call_parser(lambda: store.import_keys([SeedSigner(bytes(range(2, 34))).public], trust=[]))


class KeyExport(Target):
    """Public keys from outside: exports, other tools' files, hexadecimal digits, and seeds in a file."""

    name = "key-export"
    share = 6

    def prepare(self) -> None:
        self._public = SeedSigner(bytes(32), bytes(32)).public

    def seeds(self) -> list[bytes]:
        key = self._public
        epochs = [{"epoch": 0, "algorithm": "ed25519", "public_key_hex": key.ed25519, "status": "active"}]
        return [
            json.dumps(build_key_export([key])).encode(),
            json.dumps({"version": 1, "active_epoch": 0, "epochs": epochs}).encode(),
            json.dumps({"keys": {key.fingerprint: key.ed25519}, "public_key": key.ed25519}).encode(),
            key.ed25519.encode(),
            bytes(32),
        ]

    def run(self, data: bytes) -> None:
        for name in ("keys.json", "index.json", "known_keys.json", "key", "x.pub"):
            path = self.things.new_path(name)
            path.write_bytes(data)
            path.chmod(0o600)
            for key in call_parser(lambda path=path: read_public_keys(path)) or ():
                call_parser(lambda key=key: key.fingerprint)
        call_parser(lambda: load_seed_signer(path))
        call_parser(lambda: PublicKey(text_of(data)))
        call_parser(lambda: read_public_keys(text_of(data)))


class Settings(Target):
    """`config.toml`, the approvers' file of the system, and tests of rules: all TOML."""

    name = "settings"

    def seeds(self) -> list[bytes]:
        return [
            b'ledger = "sqlite:///x"\ntenant = "t"\npost_quantum = true\nlock_timeout = 1.5\n',
            b'[hooks]\non_pass = "leave"\non_failure = "closed"\n',
            b'[gate]\npolicy = "rules"\npass_below = 0.2\nmax_retries = 2\n[gate.groups]\nx = ["y"]\n',
            b'[approvals]\nexpires = "1h"\n[[approvals.level]]\napprovers = ["person:ada"]\nquorum = 1\n',
            b'[approvers."person:ada"]\npublic_key = "' + b"ab" * 32 + b'"\ncustody = "passphrase"\n',
            b'[[case]]\nname = "x"\nexpect = "pass"\n[case.action]\ncommand = "pytest -q"\n[case.facts]\nhour = 3\n',
        ]

    def run(self, data: bytes) -> None:
        home = self.things.new_directory("settings")
        path = home / "config.toml"
        path.write_bytes(data)
        config = call_parser(lambda: load_config(home=home))
        if config is not None:
            call_parser(lambda: read_gate_settings(config))
            call_parser(lambda: read_hook_settings(config, "claude-code"))
            call_parser(lambda: read_approval_rules(config.approvals, "config.toml: approvals"))
        call_parser(lambda: read_system_file(path))
        call_parser(lambda: read_cases(path))


class ClientSettings(Target):
    """Settings of coding agents, which `aver install` edits: JSON with comments, and TOML."""

    name = "client-settings"
    share = 6

    def seeds(self) -> list[bytes]:
        return [
            b'{\n  // servers\n  "mcpServers": {"o": {"command": "x"}},\n  "hooks": {"PreToolUse": [{"a": 1}]}\n}\n',
            b'model = "x"\n[mcp_servers.other]\ncommand = "x" # why\nargs = ["a", "b"]\n[tools]\nweb = true\n',
        ]

    def run(self, data: bytes) -> None:
        text = data.decode("utf-8", "replace")
        entry = {"command": "aver", "args": ["mcp"]}
        for form in ("json", "jsonc", "toml"):
            path = ("mcp_servers" if form == "toml" else "mcpServers", "aver")
            after = call_parser(lambda form=form, path=path: edit.with_entry(text, form, path, entry))
            if after is not None:
                found = call_parser(lambda form=form, path=path, after=after: edit.get_entry(after, form, path))
                if found != entry:
                    raise Defect(f"{form}: the entry that was written is read as {found!r}")
                call_parser(
                    lambda form=form, path=path, after=after: edit.without_entry(after, form, path, keep=len(path))
                )
            if form != "toml":
                call_parser(lambda form=form: edit.with_item(text, form, ("hooks", "PreToolUse"), {"hooks": []}))


class CedarRules(Target):
    """Cedar rules."""

    name = "rules"
    share = 3

    def seeds(self) -> list[bytes]:
        return [text.encode() for text in read_starter_files().values()]

    def run(self, data: bytes) -> None:
        call_parser(lambda: build_policy_bundle({"x.cedar": data.decode("utf-8", "replace")}))


class ShellCommand(Target):
    """A command that the gate decides about. An error in the gate must not hide in its refusal either."""

    name = "command"
    share = 10

    def prepare(self) -> None:
        self._gate = Gate(bundle=load_policy_bundle())
        self._facts = Facts(now="2026-11-17T00:00:00+00:00")

    def seeds(self) -> list[bytes]:
        corpus = Path(__file__).resolve().parent.parent / "tests" / "gate" / "shell" / "corpus.txt"
        lines = [line.strip() for line in corpus.read_bytes().splitlines()]
        return [line for line in lines if line and not line.startswith(b"#")][::7]

    def run(self, data: bytes) -> None:
        command, workspace = text_of(data), str(self.things.workspace)
        given = {"type": "shell_exec", "tool": "Bash", "arguments": {"command": command}, "workspace": workspace}
        action = call_parser(lambda: Action(**given))
        if action is None:
            return
        decision = call_parser(lambda: decide(action, self._facts, self._gate))
        for reason in decision.reasons:
            if "could not judge" in reason and "Error: " in reason:
                raise Defect(f"internal error in the gate: {reason}")


class Diff(Target):
    """Diffs of all forms: unified diffs, patches of Codex, blocks of Cline."""

    name = "diff"

    def seeds(self) -> list[bytes]:
        return [
            b"diff --git a/x.py b/x.py\nindex 1..2 100644\n--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@ def f\n a\n-b\n+c\n",
            b"*** Begin Patch\n*** Update File: a.py\n*** Move to: b.py\n@@ def f\n x\n-y\n+z\n*** End Patch",
            b"------- SEARCH\nx = 1\n=======\nx = 2\n+++++++ REPLACE\n",
            b'{"a.py": {"update": {"unified_diff": "@@ -1 +1 @@\\n-a\\n+b\\n", "move_path": "b.py"}}}',
        ]

    def run(self, data: bytes) -> None:
        text = text_of(data)
        call_parser(lambda: measure_diff(text))
        call_parser(lambda: count_changed_lines(text))
        call_parser(lambda: read_patch(text))
        call_parser(lambda: diff_from_blocks("a.py", text))
        if _is_json(data):
            call_parser(lambda: patch_from_changes(json.loads(data), "/work"))


class StatementTarget(Target):
    """Signed statements: approvals, enrolments, rotations."""

    name = "statement"
    share = 6

    def prepare(self) -> None:
        signer = SeedSigner(bytes(32))
        self._ring = aver.Ring.pin([signer.public])
        content = {"v": 2, "ledger": "l", "tenant": "t", "request": "r", "decision": "approve", "uses": 1}
        self._statement = sign_statement("approval", content, [signer])

    def seeds(self) -> list[bytes]:
        return [json.dumps(self._statement.to_dict()).encode()]

    def run(self, data: bytes) -> None:
        value: Any = call_parser(lambda: read_json(data))
        statement = call_parser(lambda: Statement.from_dict(value)) if value is not None else None
        if statement is None:
            return
        results = call_parser(lambda: check_statement(statement, self._ring)) or ()
        same = (statement.purpose, statement.content) == (self._statement.purpose, self._statement.content)
        if not same and any(result.outcome == "valid" for result in results):
            raise Defect(f"valid with other content: {statement.content!r}")


class PasskeyTarget(Target):
    """Passkeys and their signatures, as an enrolment or a request and a statement hold them; codes of enrolments."""

    name = "passkey"
    share = 6

    def prepare(self) -> None:
        self._message = statement_bytes("approval", {"v": 2, "decision": "approve"})
        said = {
            "type": "webauthn.get",
            "challenge": statement_challenge(self._message),
            "origin": "http://localhost:4840",
        }
        client_data = json.dumps({**said, "crossOrigin": False}).encode()
        data = hashlib.sha256(b"localhost").digest() + b"\x05\0\0\0\0"
        covered = data + hashlib.sha256(client_data).digest()
        public, secret = ed25519_from_seed(bytes(32))
        private = ec.derive_private_key(7, ec.SECP256R1())
        point = private.public_key().public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
        r, s = decode_dss_signature(private.sign(covered, ec.ECDSA(SHA256(), deterministic_signing=True)))
        signatures = {
            "EdDSA": (public, bytes.fromhex(sign_ed25519(secret, covered))),
            "ES256": (point, encode_dss_signature(r, min(s, P256_ORDER - s))),
        }
        self._honest: dict[str, dict[str, Any]] = {}
        for alg, (key, signature) in signatures.items():
            parts = {"authenticator_data": data, "client_data": client_data, "signature": signature}
            self._honest[alg] = {
                "passkey": Passkey(alg, key.hex(), "localhost", "AAAA").to_dict(),
                "signature": {name: encode_base64url(raw) for name, raw in parts.items()},
            }

    def seeds(self) -> list[bytes]:
        return [json.dumps(value).encode() for value in self._honest.values()]

    def run(self, data: bytes) -> None:
        call_parser(lambda: read_enrolment_code(text_of(data)))
        call_parser(lambda: approver_from_dict("person:x", read_json(data), "fuzz"))
        value: Any = call_parser(lambda: read_json(data))
        if not isinstance(value, dict) or value.keys() != {"passkey", "signature"}:
            return
        passkey = call_parser(lambda: Passkey.read(value["passkey"], "fuzz"))
        signed = call_parser(lambda: PasskeySignature.from_dict(value["signature"], "fuzz"))
        if passkey is None or signed is None:
            return
        call_parser(passkey.check_usable)
        problem = call_parser(lambda: passkey_problem(passkey, self._message, signed))
        # A signature has one form, so every other one is forged.
        if problem is None and signed.to_dict() != self._honest[passkey.alg]["signature"]:
            raise Defect(f"a signature that nobody made holds: {signed}")


class HomeFiles(RecipeTarget):
    """What a machine remembers about a ledger: seen heads and verified heads. The ledger itself is honest."""

    name = "home-files"
    share = 3

    def honest_members(self) -> Members:
        ledger = self.things.ledger
        home = self.things.new_directory("remembering")
        shutil.copytree(ledger.home, home, dirs_exist_ok=True)
        aver.verify(home / "ledger.db", home=home)
        files = read_files(home)
        self._kept = {name: data for name, data in files.items() if not name.endswith((".lock", "-wal", "-shm"))}
        return {name: data for name, data in files.items() if name == "seen.json" or name.startswith("verified/")}

    def judge(self, members: Members) -> None:
        home = self.things.new_path("remembered")
        write_files(home, {**self._kept, **members})
        for since in (None, "last"):
            verdict = call_verify(lambda since=since: aver.verify(home / "ledger.db", home=home, since=since))
            if verdict is not None and verdict.status == "failed" and members == self.members:
                raise Defect(f"an honest ledger fails: {verdict.first_bad}")


TARGETS: tuple[type[Target], ...] = (
    *(JsonReader, Uri, KeyFiles, KeyExport, Settings, ClientSettings, CedarRules, ShellCommand, Diff, StatementTarget),
    *(PasskeyTarget, HomeFiles),
)

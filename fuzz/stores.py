"""Targets that are stores and evidence: ledgers, bundles, runs, `.cap` files, proofs, checkpoints, other tools' files.

The verifier is an auditor: it has the honest keys and has never seen the thing before.
"""

from __future__ import annotations

import base64
import gzip
import json
import sqlite3
from io import BytesIO
from pathlib import Path
from random import Random
from typing import Any

import aver
from aver import SeedSigner
from aver.actions.archive import open_archive, pack
from aver.ledger.bundle import export_bundle, import_bundle
from aver.verdict import Verdict
from fuzz.byte_edits import mutate_bytes, parse_documents
from fuzz.honest import HonestLedger, read_files, write_files
from fuzz.oracles import (
    ACCEPTED,
    Defect,
    bundle_claims,
    bundle_records,
    call_parser,
    call_verify,
    document_contents,
    ledger_contents,
    require_same,
    statement_content,
)
from fuzz.recipes import Fit, Members
from fuzz.target import RecipeTarget, Target
from support import capseal_files
from support.peer_databases import write_peer
from support.runs import with_strangers_head, with_true_manifest


def write_database(path: Path, data: bytes) -> None:
    """Write the file of a database, and nothing beside it."""
    for beside in ("-wal", "-shm", ".lock"):
        Path(f"{path}{beside}").unlink(missing_ok=True)
    path.write_bytes(data)


class StoreTarget(RecipeTarget):
    """A target with an auditor's home."""

    def auditor(self) -> Path:
        """An empty home."""
        return self.things.new_directory("auditor")


class LedgerTarget(StoreTarget):
    """A small ledger: its file, its rows, its schema."""

    name = "ledger"
    share = 30

    def honest_ledger(self) -> HonestLedger:
        return self.things.ledger

    def honest_members(self) -> Members:
        self._ledger = self.honest_ledger()
        self._original = ledger_contents(self._ledger.path)
        return {"ledger.db": self._ledger.path.read_bytes()}

    def judge(self, members: Members) -> None:
        if "ledger.db" not in members:
            return
        path = self.things.new_path(f"{self.name}.db")
        write_database(path, members["ledger.db"])
        verdict = call_verify(lambda: aver.verify(path, keys=self._ledger.keys, home=self.auditor()))
        if verdict is None or verdict.status not in ACCEPTED:
            return
        try:
            shown = ledger_contents(path)
        except sqlite3.Error as error:
            raise Defect(f"{verdict.status}, but it cannot be read: {error}") from error
        require_same(verdict, self._original, shown)


class FullLedger(LedgerTarget):
    """A ledger with decisions, approvals and a session."""

    name = "ledger-full"
    share = 4

    def honest_ledger(self) -> HonestLedger:
        return self.things.full_ledger


class BundleTarget(StoreTarget):
    """A bundle of the small ledger."""

    name = "bundle"
    share = 30

    def honest_ledger(self) -> HonestLedger:
        return self.things.ledger

    def honest_members(self) -> Members:
        self._ledger = self.honest_ledger()
        members = read_files(self._ledger.bundle)
        self._records, self._claims = bundle_records(members), bundle_claims(members)
        return members

    def fit(self) -> Fit:
        return fit_bundle

    def judge(self, members: Members) -> None:
        verdict = self.verify(members)
        require_same(verdict, self._records, bundle_records(members))
        if verdict is not None and verdict.status == "verified":
            require_same(verdict, self._claims, bundle_claims(members))
            if missing := set(self._records) - set(bundle_records(members)):
                raise Defect(f"verified without {missing}")

    def verify(self, members: Members) -> Verdict | None:
        """Judge the bundle that these members make."""
        directory = self.things.new_path(self.name)
        write_files(directory, members)
        return call_verify(lambda: aver.verify(directory, keys=self._ledger.keys, home=self.auditor()))


class SiteTarget(BundleTarget):
    """A bundle with the Explorer's page: the twins that the page shows have the bytes of the bundle's own files."""

    name = "bundle-site"
    share = 8

    def honest_members(self) -> Members:
        self._ledger = self.honest_ledger()
        with aver.open_ledger(home=self._ledger.home) as ledger:
            out = export_bundle(ledger, self.things.new_directory("site-seed"), html=True).path
        members = read_files(out)
        self._records, self._claims = bundle_records(members), bundle_claims(members)
        return members

    def judge(self, members: Members) -> None:
        verdict = self.verify(members)
        require_same(verdict, self._records, bundle_records(members))
        if verdict is None or verdict.status not in ACCEPTED or "explorer/app.js" not in members:
            return
        shown = read_twins(members)
        if other := [name for name, data in shown.items() if members.get(name) != data]:
            raise Defect(f"{verdict.status}, and the page shows other bytes of {other}")
        listed = {name for name in self.members if not name.startswith(("explorer/", "index.html"))}
        if hidden := (listed & set(members)) - set(shown):
            raise Defect(f"{verdict.status}, and the page does not show {hidden}")


def read_twins(members: Members) -> dict[str, bytes]:
    """The files that the page of a site shows, by their names: as a browser runs its scripts."""
    listed = members["explorer/data/names.js"].strip().removeprefix(b"averNames(").removesuffix(b");")
    shown = {}
    for number, name in enumerate(json.loads(listed)):
        twin = members[f"explorer/data/{number}.js"].strip().removeprefix(b"averFile(").removesuffix(b");")
        named, packed = json.loads(b"[" + twin + b"]")
        if named == name:
            shown[name] = gzip.decompress(base64.b64decode(packed))
    return shown


class FullBundle(BundleTarget):
    """A bundle with decisions, approvals and a session."""

    name = "bundle-full"
    share = 4

    def honest_ledger(self) -> HonestLedger:
        return self.things.full_ledger


def fit_bundle(members: Members, signer: SeedSigner | None) -> Members:
    """A bundle whose index counts what is there. Its signed heads cannot be made again without the key."""
    index = json.loads(members["index.json"])
    total = 0
    for summary in [*index["chains"], index["meta"]]:
        if not isinstance(summary, dict) or f"{summary.get('id')}.json" not in members:
            continue
        capsules = json.loads(members[f"{summary['id']}.json"])["capsules"]
        summary["length"], total = len(capsules), total + len(capsules)
        summary["genesis_hash"], summary["head_hash"] = capsules[0]["hash"], capsules[-1]["hash"]
        summary["signed_by"] = sorted({record["signed_by"] for record in capsules})
    index["chains"] = [one for one in index["chains"] if f"{one['id']}.json" in members]
    index["chain_count"], index["capsule_count"] = len(index["chains"]), total
    if signer is not None:
        index["keys"] = {signer.fingerprint: signer.public.ed25519}
        index["public_key"], index["fingerprint"] = signer.public.ed25519, signer.fingerprint
    return {**members, "index.json": json.dumps(index).encode()}


class ImportTarget(BundleTarget):
    """A damaged bundle is imported: no record of it may be under a name of the importer's own."""

    name = "import"
    share = 3

    def judge(self, members: Members) -> None:
        directory, home = self.things.new_path("imported"), self.auditor()
        write_files(directory, members)

        def work() -> list[str]:
            with aver.open_ledger(home=home) as ledger:
                import_bundle(ledger, directory)
                return list(ledger.chains())

        chains = call_parser(work)
        own = [name for name in chains or () if not name.startswith(("import.", "keys", "meta"))]
        if own:
            raise Defect(f"imported under names of the importer's own: {own}")
        if (home / "ledger.db").exists():
            verdict = call_verify(lambda: aver.verify(home / "ledger.db", home=home))
            if verdict is not None and verdict.status == "failed":
                raise Defect(f"the import spoilt the ledger: {verdict.first_bad}")


class CapTarget(StoreTarget):
    """The members of a `.cap` file."""

    name = "cap"
    share = 20

    def honest_members(self) -> Members:
        self._run = self.things.run
        return self._run.members

    def fit(self) -> Fit:
        return lambda members, signer: (with_true_manifest if signer is None else with_strangers_head)(members)

    def judge(self, members: Members) -> None:
        out = BytesIO()
        pack({name: BytesIO(data) for name, data in members.items()}, out)
        verdict = call_verify(lambda: aver.verify(out.getvalue(), keys=[self._run.key], home=self.auditor()))
        require_same(verdict, self.members, members)


class PackedCap(Target):
    """The bytes of a `.cap`: gzip, tar, and what is in them."""

    name = "cap-packed"

    def prepare(self) -> None:
        self._run = self.things.run
        self._tar = gzip.decompress(self._run.cap)

    def seeds(self) -> list[bytes]:
        return [self._run.cap]

    def mutate(self, data: bytes, random: Random) -> bytes:
        if random.random() < 0.5:
            return mutate_bytes(data, random)
        try:
            inner = gzip.decompress(data)
        except (OSError, EOFError, gzip.zlib.error):
            inner = self._tar
        return gzip.compress(mutate_bytes(inner, random), compresslevel=1, mtime=0)

    def run(self, data: bytes) -> None:
        path = self.things.new_path("packed.cap")
        path.write_bytes(data)
        verdict = call_verify(lambda: aver.verify(path, keys=[self._run.key], home=self.things.new_path("auditor")))
        if verdict is None or verdict.status not in ACCEPTED:
            return

        def unpack() -> Members:
            with open_archive(BytesIO(data)) as archive:
                return {name: file.read() for name, file in archive.members.items()}

        require_same(verdict, self._run.members, call_parser(unpack) or {"": b"unreadable"})


class RunTarget(StoreTarget):
    """The directory of a run."""

    name = "run"
    share = 8

    def honest_members(self) -> Members:
        self._run = self.things.run
        return read_files(self._run.path)

    def fit(self) -> Fit:
        return lambda members, signer: (with_true_manifest if signer is None else with_strangers_head)(members)

    def judge(self, members: Members) -> None:
        directory = self.things.new_path("run")
        write_files(directory, members)
        verdict = call_verify(lambda: aver.verify(directory, keys=[self._run.key], home=self.auditor()))
        if verdict is not None and verdict.status in ACCEPTED:
            require_same(verdict, document_contents(self.members), document_contents(members))


class DocumentTarget(Target):
    """A file of JSON that has a verdict of its own, or is one side of one."""

    def honest_document(self) -> bytes:
        raise NotImplementedError

    def verify(self, path: Path) -> Verdict:
        raise NotImplementedError

    def shown(self, data: bytes) -> dict[Any, Any]:
        """What the document says, by its place."""
        return document_contents({"": data})

    def prepare(self) -> None:
        self._original = self.shown(self.honest_document())

    def seeds(self) -> list[bytes]:
        return [self.honest_document()]

    def run(self, data: bytes) -> None:
        path = self.things.new_path(f"{self.name}.json")
        path.write_bytes(data)
        verdict = call_verify(lambda: self.verify(path))
        require_same(verdict, self._original, self.shown(data))


class ProofTarget(DocumentTarget):
    """The proof that a run contains an action."""

    name = "proof"
    share = 15

    def honest_document(self) -> bytes:
        return self.things.proof

    def verify(self, path: Path) -> Verdict:
        return aver.verify(path, keys=[self.things.run.key], home=self.things.new_path("auditor"))


def lines_of(data: bytes) -> dict[Any, Any]:
    """The documents on the lines of a text, each known by itself: their order is no claim."""
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
    return {str(value): value for value in (document_contents({"": line})[""] for line in lines)}


class CheckpointTarget(DocumentTarget):
    """A file of checkpoints, by itself."""

    name = "checkpoint"
    share = 15

    def honest_document(self) -> bytes:
        return self.things.ledger.checkpoints

    def shown(self, data: bytes) -> dict[Any, Any]:
        lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").split(b"\n") if line.strip()]
        return {str(value): value for value in map(statement_content, lines)}

    def verify(self, path: Path) -> Verdict:
        return aver.verify(path, keys=self.things.ledger.keys, home=self.things.new_path("auditor"))


class CheckpointedLedger(CheckpointTarget):
    """An honest ledger that is compared with a damaged file of checkpoints."""

    name = "checkpoint-of-ledger"
    share = 3

    def verify(self, path: Path) -> Verdict:
        ledger = self.things.ledger
        home = self.things.new_path("auditor")
        return aver.verify(ledger.path, keys=ledger.keys, home=home, checkpoints=[path])


class CapsuleFile(DocumentTarget):
    """Capsules as JSON: one, an array, lines."""

    name = "capsules"
    share = 20

    def honest_document(self) -> bytes:
        return b"\n".join(json.dumps(record).encode() for record in self._records())

    def _records(self) -> list[Any]:
        with aver.open_ledger(home=self.things.ledger.home) as ledger:
            return [record.to_sealed_dict() for record in ledger.read("ci.build")]

    def seeds(self) -> list[bytes]:
        records = self._records()
        return [*super().seeds(), json.dumps(records[0]).encode(), json.dumps(records).encode()]

    def shown(self, data: bytes) -> dict[Any, Any]:
        records: Any = parse_documents(data)
        if records is None:
            return lines_of(data)
        records = records[0] if len(records) == 1 else records
        records = records if isinstance(records, list) else [records]
        # A seal without a post-quantum signature leaves it empty, or leaves it out.
        records = [{"signature_pq": "", **one} if isinstance(one, dict) else one for one in records]
        return lines_of(b"\n".join(json.dumps(record).encode() for record in records))

    def verify(self, path: Path) -> Verdict:
        return aver.verify(path, keys=self.things.ledger.keys, home=self.things.new_path("auditor"))


class CapsealTarget(StoreTarget):
    """The `.cap` of the public CapSeal tool. It has no signature, so anyone can write one: no verdict is `verified`."""

    name = "capseal"

    def honest_members(self) -> Members:
        return capseal_files.files(capseal_files.actions(4))

    def judge(self, members: Members) -> None:
        data = capseal_files.cap(members)
        verdict = call_verify(lambda: aver.verify(data, home=self.auditor()))
        if verdict is not None and verdict.status == "verified":
            raise Defect("verified, though nothing in it is signed")


class ForeignDatabase(StoreTarget):
    """A database of qp-capsule."""

    name = "foreign-database"

    def honest_members(self) -> Members:
        directory = self.things.new_directory("peer")
        path, self._key = write_peer(directory, 3)
        self._original = _peer_contents(path)
        return {"capsules.db": path.read_bytes()}

    def judge(self, members: Members) -> None:
        if "capsules.db" not in members:
            return
        path = self.things.new_path("capsules.db")
        write_database(path, members["capsules.db"])
        verdict = call_verify(lambda: aver.verify(path, keys=[self._key], home=self.auditor()))
        if verdict is not None and verdict.status in ACCEPTED:
            require_same(verdict, self._original, _peer_contents(path))


def _peer_contents(path: Path) -> dict[Any, Any]:
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        cursor = connection.execute("SELECT * FROM capsules NOT INDEXED")
        names = [column[0] for column in cursor.description]
        rows = [dict(zip(names, row, strict=True)) for row in cursor]
    finally:
        connection.close()
    for row in rows:  # Who signed when is not signed by that tool: an auditor's key decides, not the columns.
        row.pop("signed_at", None), row.pop("signed_by", None)
    return {row["sequence"]: document_contents({"": row.pop("data").encode()}) | row for row in rows}


TARGETS: tuple[type[Target], ...] = (
    *(LedgerTarget, FullLedger, BundleTarget, FullBundle, SiteTarget, ImportTarget, CapTarget, PackedCap, RunTarget),
    ProofTarget,
    *(CheckpointTarget, CheckpointedLedger, CapsuleFile, CapsealTarget, ForeignDatabase),
)

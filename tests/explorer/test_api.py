"""The API of the Explorer's server: what each route answers, on both stores, and which requests it refuses."""

from __future__ import annotations

import base64
import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver import Capsule, Ledger, SeedSigner, open_ledger
from aver.capsule.blobs import Blob
from aver.errors import BadInput
from aver.explorer import api, ledger_reads
from aver.explorer.command_options import find_command_options
from aver.explorer.openapi import PATHS
from aver.ledger.bundle import export_bundle
from support.explorer_servers import API, ServedExplorer, serve

pytestmark = pytest.mark.both_stores


@pytest.fixture
def served(filled: Ledger) -> Iterator[ServedExplorer]:
    with serve(filled) as running:
        yield running


def draft(text: str = "run") -> Capsule:
    return Capsule(type="tool", trigger={"source": "test", "request": text})


def chain_path(name: str, start: int | None = None, stop: int | None = None) -> str:
    given = [f"{key}={value}" for key, value in (("start", start), ("stop", stop)) if value is not None]
    return f"{API}chains/{name}/records" + (f"?{'&'.join(given)}" if given else "")


def test_about_names_the_ledger_and_the_digests(served: ServedExplorer, filled: Ledger, kind_of_store: str) -> None:
    about = served.get("about")
    assert (about["ledger"], about["tenant"], about["read_only"]) == (filled.id, "default", False)
    assert about["store"]["kind"] == {"sqlite": "sqlite", "postgres": "postgresql"}[kind_of_store]
    assert about["command_options"] == find_command_options(filled.config)
    keys = served.ask(f"{API}keys")
    assert about["keys_sha256"] == hashlib.sha256(keys.body).hexdigest()
    lines = []
    for name in ("index.html", "explorer/app.js", "explorer/style.css"):
        lines.append(f"{hashlib.sha256(served.ask(f'/{name}').body).hexdigest()}  {name}\n")
    assert about["page_sha256"] == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_keys_are_those_of_the_ring_and_the_known_ones(filled: Ledger) -> None:
    stranger = SeedSigner.generate().public
    filled.keys.import_keys([stranger], trust={stranger.confirmation})
    with serve(filled) as served:
        listed = served.get("keys")["keys"]
        link = served.server.link
        answered = served.ask(f"{API}keys").body
    own = filled.keys.ring().active("ledger")
    assert own is not None
    assert [(key["origin"], key["public_key"]) for key in listed] == [
        ("ring", own.key.ed25519),
        ("known", stranger.ed25519),
    ]
    assert listed[0]["identity"] == "ledger"
    assert link.endswith(f"&keys={hashlib.sha256(answered).hexdigest()}")


def test_chains_come_in_pages_of_one_moment(served: ServedExplorer, filled: Ledger) -> None:
    rows = filled.store.chains("default")
    first = served.get("chains?limit=1")
    assert (first["total"], first["records"]) == (len(rows), sum(row.count for row in rows))
    filled.append("demo.later", draft())  # The pages that follow must not show it.
    found, page = first["chains"], first
    while page["next"]:
        page = served.get(f"chains?limit=1&after={page['next']}")
        assert page["moment"] == first["moment"]
        found += page["chains"]
    assert found == [
        {"name": row.name, "count": row.count, "head": row.head, "frozen": row.frozen, "origin": row.origin}
        for row in rows
    ]
    assert "demo.later" in {chain["name"] for chain in served.get("chains?limit=500")["chains"]}


def test_moment_that_is_gone_is_refused(served: ServedExplorer) -> None:
    answer = served.ask(f"{API}chains?after={api.write_cursor('0' * 32 + ':1')}")
    assert (answer.status, answer.document["code"]) == (409, "MOMENT_GONE")


def test_records_have_the_bytes_of_a_bundle(served: ServedExplorer, filled: Ledger, tmp_path: Path) -> None:
    export_bundle(filled, tmp_path / "bundle")
    compared = 0
    for row in filled.store.chains("default"):
        name = "meta.json" if row.name == "meta" else f"{row.name}.json"
        written = (tmp_path / "bundle" / name).read_bytes()
        lines = served.ask(chain_path(row.name)).body.splitlines()
        assert b'{"capsules":[' + b",".join(lines) + b"]," == written[: len(b",".join(lines)) + 15]
        compared += len(lines)
    assert compared == sum(row.count for row in filled.store.chains("default")) > 3


def test_records_are_read_in_parts(served: ServedExplorer, filled: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.append_many("demo.parts", [draft(str(number)) for number in range(25)])
    monkeypatch.setattr(ledger_reads, "RECORDS_MAX", 10)
    lines: list[bytes] = []
    start: int | None = 0
    while start is not None:
        answer = served.ask(chain_path("demo.parts", start))
        assert len(answer.body.splitlines()) <= 10
        lines += answer.body.splitlines()
        start = int(answer.headers["aver-next"]) if "aver-next" in answer.headers else None
    assert [json.loads(line)["hash"] for line in lines] == [record.hash for record in filled.read("demo.parts")]
    assert len(served.ask(chain_path("demo.parts", 3, 5)).body.splitlines()) == 2
    assert served.ask(chain_path("demo.parts", 25)).body == b""
    assert served.ask(chain_path("demo.parts", 10**17)).body == b""


def test_answer_ends_before_it_becomes_too_large(
    served: ServedExplorer, filled: Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled.append_many("demo.large", [draft("x" * 9000) for _ in range(6)])
    monkeypatch.setattr(ledger_reads, "ANSWER_MAX", 30_000)
    answer = served.ask(chain_path("demo.large"))
    count = len(answer.body.splitlines())
    assert 1 < count < 6
    assert len(answer.body) <= 30_000
    assert answer.headers["aver-next"] == str(count)
    monkeypatch.setattr(ledger_reads, "ANSWER_MAX", 3000)
    answer = served.ask(chain_path("demo.large"))
    assert (answer.status, answer.document["code"]) == (503, "SCHEMA_INVALID")


@pytest.mark.sqlite
def test_bytes_that_are_not_text_come_as_hex(filled: Ledger, aver_home: Path) -> None:
    record = next(filled.read("codex.two", 1, 2))
    filled.close()
    changed = b"\xff\xfe" + record.canonical
    with closing(sqlite3.connect(aver_home / "ledger.db")) as database, database:
        for (name,) in database.execute("SELECT name FROM sqlite_schema WHERE type = 'trigger'").fetchall():
            database.execute(f"DROP TRIGGER {name}")
        database.execute("UPDATE records SET canonical = ? WHERE hash = ?", (changed, record.hash))
    with open_ledger(create=False) as opened, serve(opened) as served:
        lines = served.ask(chain_path("codex.two")).body.splitlines()
    found = json.loads(lines[1])
    assert bytes.fromhex(found.pop("canonical_hex")) == changed
    assert found == {key: getattr(record, key) for key in found}
    assert "canonical" in json.loads(lines[0])


def test_places_are_found(served: ServedExplorer, filled: Ledger) -> None:
    record = next(filled.read("codex.two", 1, 2))
    for reference in (record.hash, record.id, "capsule://codex.two/1", f"capsule://sha3_{record.hash}"):
        assert served.get(f"locate?ref={reference}") == {"chain": "codex.two", "sequence": 1, "fragment": None}
    assert served.get("locate?ref=codex.tw")["chain"] == "codex.two"
    assert served.ask(f"{API}locate?ref=nothing").status == 404
    assert served.ask(f"{API}locate?ref=claude-code.").status == 400  # Several begin so.
    assert served.ask(f"{API}locate?ref=").status == 400
    assert served.ask(f"{API}locate?ref={'x' * 600}").status == 400
    assert served.ask(f"{API}locate").status == 400
    assert served.ask(f"{API}locate?ref=%00%ff").status == 404


def test_blob_is_given_to_be_saved_and_not_shown(served: ServedExplorer, filled: Ledger) -> None:
    blob = Blob(b"<script>alert(1)</script>" * 50_000, "text/html")
    filled.append("demo.blobs", draft(), blobs=[blob])
    answer = served.ask(f"{API}blobs/{blob.digest}")
    assert answer.body == blob.data
    assert answer.headers["content-type"] == "application/octet-stream"
    assert answer.headers["content-disposition"].startswith("attachment")
    assert answer.headers["content-security-policy"].endswith("; sandbox")
    assert served.ask(f"{API}blobs/{'0' * 64}").status == 404
    assert served.ask(f"{API}blobs/{blob.digest.upper()}").status == 400
    assert served.ask(f"{API}blobs/..%2f..%2fetc%2fpasswd").status in (400, 404)


WRONG_QUERIES = [
    *("chains?limit=0", "chains?limit=501", "chains?limit=-1", "chains?limit=1e2", "chains?limit=%D9%A1"),
    *("chains?after=!", "chains?after=", "chains?after=AAAA", "chains?after=//", "chains?nothing=1", "about?x=1"),
    *(
        "chains/codex.two/records?start=2&stop=1",
        "chains/codex.two/records?start=x",
        "chains/codex.two/records?start=1&start=2",
    ),
    *("chains/codex.two/records?start=9999999999999999999", "chains/..%2e/records", "chains/UPPER/records"),
    *("approvals?state=open", "approvals?after=eA", "approvals?limit=x"),
]


@pytest.mark.sqlite
def test_wrong_parameters_are_refused(served: ServedExplorer) -> None:
    for query in WRONG_QUERIES:
        answer = served.ask(API + query)
        assert answer.status == 400, query
        assert set(answer.document) == {"code", "message", "advice"}


@pytest.mark.sqlite
def test_unknown_paths_and_methods(served: ServedExplorer) -> None:
    for path in (
        "/nothing",
        f"{API}nothing",
        f"{API}chains/no.such/records",
        "/explorer/",
        "/sources.json",
        f"{API}about/",
    ):
        assert served.ask(path).status == 404, path
    for path in (
        "/../../etc/passwd",
        "/explorer/../../../etc/passwd",
        "/explorer/%2e%2e/%2e%2e/pyproject.toml",
        "//etc/passwd",
    ):
        assert served.ask(path).status == 404, path
    for method in ("POST", "PUT", "DELETE", "PATCH", "OPTIONS"):
        answer = served.ask(f"{API}about", method)
        assert (answer.status, answer.document["code"]) == (405, "METHOD_NOT_ALLOWED")
        assert "GET" in answer.headers["allow"]
    assert served.ask(f"{API}approvals/x").status == 405


@pytest.mark.sqlite
def test_description_names_every_route(served: ServedExplorer) -> None:
    described = {(f"{API}{path}", method.upper()) for path, methods in PATHS.items() for method in methods}
    routed = {(route.path, method) for route in served.server._api.routes() for method in route.methods or ()}
    assert described == {pair for pair in routed if pair[1] != "HEAD"}
    assert set(served.get("openapi.json")["paths"]) == {f"/{path}" for path in PATHS}


@pytest.mark.sqlite
def test_damaged_ledger_is_reported_and_the_server_stays(filled: Ledger, aver_home: Path) -> None:
    with serve(filled) as served:
        assert served.get("chains")["total"]
        moved = (aver_home / "ledger.db").rename(aver_home / "elsewhere.db")
        for path in ("chains", "chains/codex.two/records", "locate?ref=codex.two", "live"):
            answer = served.ask(API + path)
            assert (answer.status, answer.document["code"]) == (503, "UNAVAILABLE"), path
            assert answer.document["advice"]
        assert served.ask("/").status == 200
        assert served.get("about")["ledger"] == filled.id
        moved.rename(aver_home / "ledger.db")
        assert served.get("chains")["total"]


@pytest.mark.sqlite
def test_overwritten_pages_are_reported(filled: Ledger, aver_home: Path) -> None:
    filled.close()
    path = aver_home / "ledger.db"
    raw = path.read_bytes()
    with open_ledger(create=False) as opened, serve(opened) as served:
        assert served.ask(chain_path("codex.two")).status == 200
        with path.open("r+b") as file:
            file.seek(8192)
            file.write(b"\x55" * (len(raw) - 8192))
        # SQLite keeps the pages that it has read: ask for others, too.
        answers = [
            served.ask(API + path) for path in ("chains", "locate?ref=nothing", "chains/claude-code.one/records")
        ]
        assert 503 in {answer.status for answer in answers}
        assert all(answer.document["advice"] for answer in answers if answer.status == 503)
        assert served.ask("/").status == 200


def test_other_tenants_are_not_shown(served: ServedExplorer) -> None:
    with open_ledger(tenant="other") as other:
        record = other.append("demo.secret", draft(), blobs=[blob := Blob(b"secret" * 10, "text/plain")])
    assert "demo.secret" not in {chain["name"] for chain in served.get("chains?limit=500")["chains"]}
    assert served.ask(chain_path("demo.secret")).status == 404
    assert served.ask(f"{API}blobs/{blob.digest}").status == 404
    for reference in (record.hash, record.id, "demo.secret"):
        assert served.ask(f"{API}locate?ref={reference}").status == 404


@given(st.one_of(st.text(max_size=60), st.binary(max_size=40).map(lambda raw: base64.urlsafe_b64encode(raw).decode())))
@pytest.mark.sqlite
def test_cursor_is_read_or_refused(text: str) -> None:
    try:
        read = api.read_cursor(text)
    except BadInput:
        return
    assert api.write_cursor(read) == text

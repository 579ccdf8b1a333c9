"""Files of checkpoints: one, many, a history in a repository; held to, and judged by themselves."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver import BadInput, Capsule, IntegrityError, Ledger, NotFound, SeedSigner, Verdict, open_ledger, verify
from aver.keys import Statement, sign_statement
from aver.keys.statement import STATEMENT_MAX_BY_PURPOSE, statement_bytes
from aver.ledger import checkpoint_files
from aver.ledger.bundle import export_bundle
from aver.ledger.bundle.import_ import check_bundle_checkpoints
from aver.ledger.checkpoint import Checkpoint, extend_with_checkpoints, make_checkpoint
from aver.ledger.checkpoint_files import append_checkpoint, history_path, read_checkpoints, to_checkpoint_line
from support.tamper import codes_at, first_bad, unguarded

pytestmark = pytest.mark.both_stores

CHAIN = "demo.history"


def fill(ledger: Ledger, chain: str = CHAIN, count: int = 3) -> None:
    for _ in range(count):
        ledger.append(chain, Capsule(type="tool"))


def cut(ledger: Ledger, chain: str, length: int) -> None:
    attacker = unguarded(ledger)
    (number,) = attacker.execute("SELECT chain FROM chains WHERE name = ?", (chain,)).fetchone()
    attacker.execute("DELETE FROM records WHERE chain = ? AND sequence >= ?", (number, length))
    last = attacker.execute("SELECT hash FROM records WHERE chain = ? AND sequence = ?", (number, length - 1))
    head = last.fetchone()[0]
    attacker.execute("UPDATE chains SET count = ?, head = ? WHERE chain = ?", (length, head, number))
    attacker.close()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """All of a git repository that is needed to write a file into it."""
    (tmp_path / "audit" / ".git").mkdir(parents=True)
    return tmp_path / "audit"


def lines(repository: Path, ledger: Ledger) -> list[Any]:
    return [json.loads(line) for line in history_path(repository, ledger).read_text().splitlines()]


def held(ledger: Ledger, *sources: Path) -> Verdict:
    found = [one for source in sources for one in read_checkpoints(source, ledger.id)]
    return extend_with_checkpoints(ledger.verify(), ledger, found, ledger.ring())


# --- a history


def test_the_first_line_has_every_chain_the_next_what_changed(ledger: Ledger, repository: Path) -> None:
    fill(ledger)
    fill(ledger, "demo.idle")
    first = append_checkpoint(repository, ledger)
    assert first is not None
    assert {head.chain for head in first.heads} == {CHAIN, "demo.idle", "keys"}
    assert append_checkpoint(repository, ledger) is None
    fill(ledger, count=1)
    second = append_checkpoint(repository, ledger)
    assert second is not None
    assert [(head.chain, head.count) for head in second.heads] == [(CHAIN, 4)]
    assert (first.since, second.since) == (None, first.at)
    kept = lines(repository, ledger)
    assert [line["content"]["at"] for line in kept] == [first.at, second.at]
    assert history_path(repository, ledger).name == f"{ledger.id}.default.jsonl"
    assert history_path(repository, ledger).stat().st_mode & 0o777 == 0o644


def test_lines_are_only_ever_added(ledger: Ledger, repository: Path) -> None:
    before = b""
    for _ in range(4):
        fill(ledger, count=1)
        append_checkpoint(repository, ledger)
        after = history_path(repository, ledger).read_bytes()
        assert after.startswith(before)
        assert after.count(b"\n") == before.count(b"\n") + 1
        before = after


def test_a_history_is_held_to_line_by_line(ledger: Ledger, repository: Path) -> None:
    for _ in range(3):
        fill(ledger, count=1)
        append_checkpoint(repository, ledger)
    fill(ledger)
    verdict = held(ledger, repository)
    assert verdict.status == "verified"
    assert "2 chains match 3 checkpoints" in verdict.check("checkpoint").reason
    assert "1 grown since" in verdict.check("checkpoint").reason


def test_a_fork_that_has_outgrown_the_newest_line_is_found_by_an_older_one(ledger: Ledger, repository: Path) -> None:
    fill(ledger)
    append_checkpoint(repository, ledger)
    cut(ledger, CHAIN, 2)
    fill(ledger, count=4)
    history_path(repository, ledger).open("ab").write(to_checkpoint_line(make_checkpoint(ledger)))
    assert first_bad(held(ledger, repository)) == ("ROLLBACK", CHAIN, 2)
    assert len(codes_at(held(ledger, repository))) == 1


def test_a_line_that_was_taken_out_is_missed(ledger: Ledger, repository: Path) -> None:
    for _ in range(3):
        fill(ledger, count=1)
        append_checkpoint(repository, ledger)
    path = history_path(repository, ledger)
    all_lines = path.read_bytes().splitlines(keepends=True)
    for left_out in (0, 1):
        path.write_bytes(b"".join(line for number, line in enumerate(all_lines) if number != left_out))
        for verdict in (held(ledger, repository), verify(path)):
            assert verdict.status == "qualified"
            assert "is not here" in verdict.check("checkpoint").reason


@pytest.mark.parametrize(("length", "regrown", "code"), [(2, 0, "TRUNCATED"), (2, 1, "ROLLBACK"), (2, 5, "ROLLBACK")])
def test_a_ledger_that_lost_its_history_gets_no_new_line(
    ledger: Ledger, repository: Path, length: int, regrown: int, code: str
) -> None:
    fill(ledger)
    append_checkpoint(repository, ledger)
    before = history_path(repository, ledger).read_bytes()
    cut(ledger, CHAIN, length)
    fill(ledger, count=regrown)
    with pytest.raises(IntegrityError) as refused:
        append_checkpoint(repository, ledger)
    assert refused.value.code == code
    assert history_path(repository, ledger).read_bytes() == before


def test_a_forged_line_is_not_continued(ledger: Ledger, repository: Path) -> None:
    fill(ledger)
    append_checkpoint(repository, ledger)
    path = history_path(repository, ledger)
    path.write_bytes(path.read_bytes().replace(b'"count":3', b'"count":2'))
    with pytest.raises(IntegrityError) as refused:
        append_checkpoint(repository, ledger)
    assert refused.value.code == "SIG_INVALID"
    assert first_bad(held(ledger, repository))[0] == "SIG_INVALID"


@pytest.mark.parametrize("content", [b"x\n", b"{}\n", b"[]\n", b'{"v":1}\n', b"\xff\n", b"\0" * 10])
def test_what_is_no_history_is_left_alone(ledger: Ledger, repository: Path, content: bytes) -> None:
    fill(ledger)
    path = history_path(repository, ledger)
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(BadInput):
        append_checkpoint(repository, ledger)
    assert path.read_bytes() == content


def test_the_history_of_another_is_left_alone(ledger: Ledger, other: Ledger, repository: Path) -> None:
    fill(ledger)
    fill(other)
    append_checkpoint(repository, other)
    shutil.copy(history_path(repository, other), history_path(repository, ledger))
    with pytest.raises(BadInput, match="another ledger"):
        append_checkpoint(repository, ledger)


def test_links_in_the_repository_are_not_followed(ledger: Ledger, repository: Path, tmp_path: Path) -> None:
    fill(ledger)
    (tmp_path / "elsewhere").mkdir()
    (repository / "checkpoints").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Exception, match="cannot use the directory"):
        append_checkpoint(repository, ledger)
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_it_needs_a_repository(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger)
    with pytest.raises(BadInput, match="not a git repository"):
        append_checkpoint(tmp_path, ledger)
    assert not (tmp_path / "checkpoints").exists()


def test_many_at_once_lose_no_line(ledger: Ledger, repository: Path) -> None:
    fill(ledger)

    def add(number: int) -> None:
        fill(ledger, f"demo.{number}", 1)
        append_checkpoint(repository, ledger)

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    named = {chain for line in lines(repository, ledger) for chain in line["content"]["heads"]}
    assert named == {CHAIN, "keys", *(f"demo.{number}" for number in range(6))}
    assert held(ledger, repository).status == "verified"


def test_a_file_that_is_full_may_be_put_aside(
    ledger: Ledger, repository: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(ledger)
    append_checkpoint(repository, ledger)
    path = history_path(repository, ledger)
    monkeypatch.setattr(checkpoint_files, "FILE_MAX", path.stat().st_size + 10)
    fill(ledger)
    with pytest.raises(BadInput, match="git mv") as full:
        append_checkpoint(repository, ledger)
    path.rename(path.with_name(f"{ledger.id}.default.1.jsonl"))
    assert path.with_name(f"{ledger.id}.default.1.jsonl").name in full.value.advice
    again = append_checkpoint(repository, ledger)
    assert again is not None
    assert again.since is None
    assert "2 checkpoints" in held(ledger, repository).check("checkpoint").reason


# --- files


@pytest.mark.sqlite
def test_one_on_each_line_or_one_over_many(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger)
    first, second = make_checkpoint(ledger), make_checkpoint(ledger)
    joined, spread = tmp_path / "joined.jsonl", tmp_path / "spread.json"
    joined.write_bytes(to_checkpoint_line(first) + b"\n" + to_checkpoint_line(second).rstrip())
    spread.write_text(json.dumps(first.to_dict(), indent=2))
    assert [one.at for one in read_checkpoints(joined, ledger.id)] == [first.content["at"], second.content["at"]]
    assert [one.statement for one in read_checkpoints(spread, ledger.id)] == [first]
    assert read_checkpoints(joined, ledger.id)[1].where.endswith("joined.jsonl, line 3")


@pytest.mark.sqlite
def test_a_bad_line_is_named(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger)
    path = tmp_path / "heads.jsonl"
    path.write_bytes(to_checkpoint_line(make_checkpoint(ledger)) + b'{"v":1,"purpose":"checkpoint"}\n')
    with pytest.raises(BadInput, match=r"heads\.jsonl, line 2"):
        read_checkpoints(path, ledger.id)
    verdict = verify(path)
    assert first_bad(verdict)[0] == "SCHEMA_INVALID"
    assert verdict.first_bad is not None
    assert "line 2" in verdict.first_bad.words


def test_a_repository_of_other_ledgers_fails_and_an_empty_one_is_none(
    ledger: Ledger, other: Ledger, repository: Path
) -> None:
    fill(ledger)
    fill(other)
    with pytest.raises(NotFound):
        read_checkpoints(repository, ledger.id)
    append_checkpoint(repository, other)
    assert first_bad(held(ledger, repository))[0] == "CHAIN_IDENTITY"
    append_checkpoint(repository, ledger)
    assert held(ledger, repository).status == "verified"


@pytest.mark.more
@pytest.mark.sqlite
def test_the_chains_of_a_large_ledger_fit(ledger: Ledger) -> None:
    """Far more than a statement that rides in a capsule may hold."""
    fill(ledger)
    many = {f"demo.{number:040}": {"count": number + 1, "hash": "0" * 64} for number in range(60_000)}
    statement = make_checkpoint(ledger)
    content = {**statement.content, "heads": many}
    assert 256 * 1024 < len(statement_bytes("checkpoint", content)) <= STATEMENT_MAX_BY_PURPOSE["checkpoint"]
    with pytest.raises(BadInput, match="at most"):
        statement_bytes("approval", content)
    document = json.loads(json.dumps({**statement.to_dict(), "content": content}))
    again = Checkpoint.from_statement(Statement.from_dict(document))
    assert len(again.heads) == 60_000


# --- judged by themselves


def test_checkpoints_are_verified_without_their_ledger(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger)
    path = tmp_path / "heads.jsonl"
    path.write_bytes(to_checkpoint_line(make_checkpoint(ledger)))
    fill(ledger)
    path.open("ab").write(to_checkpoint_line(make_checkpoint(ledger)))
    verdict = verify(path)
    assert (verdict.status, verdict.subject, verdict.records) == ("verified", "2 checkpoints in heads.jsonl", 2)
    stranger = verify(path, home=tmp_path / "nobody")
    assert (stranger.status, stranger.check("checkpoint").code) == ("qualified", "UNKNOWN_SIGNER")
    other = verify(path, keys=[SeedSigner.generate().public])
    assert (other.status, other.integrity, other.held) == ("qualified", "unsigned", 0)


Change = Callable[[dict[str, Any]], object]
CHANGES: dict[str, tuple[Change, str]] = {
    "another time": (lambda d: d["content"].update(at="2020"), "SIG_INVALID"),
    "another count": (lambda d: d["content"]["heads"][CHAIN].update(count=1), "SIG_INVALID"),
    "a chain less": (lambda d: d["content"]["heads"].pop(CHAIN), "SIG_INVALID"),
    "no signature": (lambda d: d.update(signatures=[]), "SIG_MISSING"),
    "a signature of nothing": (lambda d: d["signatures"][0].update(ed25519="0" * 128), "SIG_INVALID"),
    "no heads": (lambda d: d["content"].pop("heads"), "SCHEMA_INVALID"),
    "a head that is none": (lambda d: d["content"]["heads"].update(x=1), "SCHEMA_INVALID"),
    "a ledger that is none": (lambda d: d["content"].update(ledger=1), "SCHEMA_INVALID"),
}


@pytest.mark.sqlite
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_checkpoint_by_itself(ledger: Ledger, tmp_path: Path, change: str) -> None:
    fill(ledger)
    data = json.loads(to_checkpoint_line(make_checkpoint(ledger)))
    CHANGES[change][0](data)
    path = tmp_path / "heads.json"
    path.write_text(json.dumps(data))
    assert first_bad(verify(path))[0] == CHANGES[change][1]


@pytest.mark.more
@pytest.mark.sqlite
def test_every_byte_of_a_checkpoint(ledger: Ledger, tmp_path: Path) -> None:
    fill(ledger)
    line = to_checkpoint_line(make_checkpoint(ledger)).rstrip()
    keys = [entry.key for entry in ledger.keys.ring().entries]
    path = tmp_path / "heads.json"
    path.write_bytes(line)
    assert verify(path, keys=keys).status == "verified"
    for at in range(len(line)):
        path.write_bytes(line[:at] + bytes([line[at] ^ 1]) + line[at + 1 :])
        try:
            assert verify(path, keys=keys).status == "failed", at
        except BadInput:
            continue  # So changed that it is not taken for a checkpoint any more.


@pytest.mark.sqlite
@given(st.one_of(st.binary(max_size=200), st.text(max_size=200).map(str.encode)), st.booleans())
def test_a_hostile_file_is_bad_input(tmp_path: Path, content: bytes, begins_well: bool) -> None:
    path = tmp_path / "heads.jsonl"
    path.write_bytes((b'{"v":1,"purpose":"checkpoint","content":' if begins_well else b"") + content)
    with pytest.raises(BadInput):
        read_checkpoints(path, "x")
    try:
        assert verify(path).status in ("failed", "empty")
    except BadInput:
        assert not begins_well  # Not even taken for a checkpoint.


def signed(signer: SeedSigner, at: str, **heads: tuple[int, str]) -> bytes:
    listed = {f"demo.{name}": {"count": count, "hash": digit * 64} for name, (count, digit) in heads.items()}
    content = {"v": 1, "ledger": "l", "tenant": "t", "at": at, "heads": listed}
    return to_checkpoint_line(sign_statement("checkpoint", content, [signer]))


@pytest.mark.sqlite
@pytest.mark.parametrize(
    ("later", "expected"),
    [
        (("2026-02", (4, "b")), None),
        (("2026-02", (3, "a")), None),
        (("2026-02", (3, "b")), ("ROLLBACK", "demo.x", 2)),
        (("2026-02", (2, "b")), ("TRUNCATED", "demo.x", 1)),
        (("2025-12", (2, "b")), None),
        (("2025-12", (3, "b")), ("ROLLBACK", "demo.x", 2)),
    ],
)
def test_checkpoints_that_contradict_each_other(
    tmp_path: Path, later: tuple[str, tuple[int, str]], expected: tuple[str, str, int] | None
) -> None:
    """An earlier time says that files were joined in another order, or that a clock went back: no contradiction."""
    signer = SeedSigner.generate()
    path = tmp_path / "heads.jsonl"
    at, head = later
    path.write_bytes(signed(signer, "2026-01", x=(3, "a")) + signed(signer, at, x=head))
    verdict = verify(path, keys=[signer.public])
    assert (None if verdict.status == "verified" else first_bad(verdict)) == expected


# --- a bundle held to checkpoints


@pytest.fixture
def exported(ledger: Ledger, tmp_path: Path) -> tuple[Path, Path]:
    """A bundle and a checkpoint of the same ledger."""
    fill(ledger)
    fill(ledger, "demo.second", 2)
    ledger.sweep()
    checkpoint = tmp_path / "heads.json"
    checkpoint.write_bytes(to_checkpoint_line(make_checkpoint(ledger)))
    return export_bundle(ledger, tmp_path / "bundle").path, checkpoint


def bundle_verdict(ledger: Ledger, bundle: Path, checkpoint: Path) -> Verdict:
    return check_bundle_checkpoints(bundle, [checkpoint], ledger.ring(), verify(bundle))


def test_a_bundle_that_has_it_all(ledger: Ledger, exported: tuple[Path, Path]) -> None:
    bundle, checkpoint = exported
    verdict = bundle_verdict(ledger, bundle, checkpoint)
    assert verdict.status == "verified", verdict.findings
    assert "4 chains match the checkpoint" in verdict.check("checkpoint").reason
    assert bundle_verdict(ledger, bundle / "index.json", checkpoint).status == "verified"


def test_a_bundle_of_a_ledger_that_grew_since(ledger: Ledger, exported: tuple[Path, Path], tmp_path: Path) -> None:
    fill(ledger)
    verdict = bundle_verdict(ledger, export_bundle(ledger, tmp_path / "later").path, exported[1])
    assert verdict.status == "verified"
    assert "1 grown since" in verdict.check("checkpoint").reason


def test_a_bundle_of_a_ledger_that_was_cut(ledger: Ledger, exported: tuple[Path, Path], tmp_path: Path) -> None:
    cut(ledger, CHAIN, 2)
    fill(ledger, count=2)
    later = export_bundle(ledger, tmp_path / "later", chains=[CHAIN, "demo.second"]).path
    assert verify(later).status != "failed"
    assert ("ROLLBACK", CHAIN, 2) in codes_at(bundle_verdict(ledger, later, exported[1]))


def test_a_bundle_that_is_older(ledger: Ledger, exported: tuple[Path, Path], tmp_path: Path) -> None:
    fill(ledger)
    newer = tmp_path / "newer.json"
    newer.write_bytes(to_checkpoint_line(make_checkpoint(ledger)))
    assert first_bad(bundle_verdict(ledger, exported[0], newer)) == ("TRUNCATED", CHAIN, 3)


def test_a_part_of_a_ledger_is_qualified(ledger: Ledger, exported: tuple[Path, Path], tmp_path: Path) -> None:
    part = export_bundle(ledger, tmp_path / "part", chains=[CHAIN]).path
    verdict = bundle_verdict(ledger, part, exported[1])
    assert verdict.status == "qualified"
    assert "2 chains of the checkpoints are not in this part" in verdict.check("checkpoint").reason


def test_a_bundle_of_another_ledger(other: Ledger, ledger: Ledger, exported: tuple[Path, Path], tmp_path: Path) -> None:
    fill(other)
    theirs = export_bundle(other, tmp_path / "theirs").path
    assert ("CHAIN_IDENTITY", None, None) in codes_at(bundle_verdict(ledger, theirs, exported[1]))


def test_a_tenant_s_checkpoint_is_not_another_s(ledger: Ledger, repository: Path) -> None:
    fill(ledger)
    with open_ledger(tenant="blue") as blue:
        fill(blue)
        append_checkpoint(repository, blue)
    append_checkpoint(repository, ledger)
    found = read_checkpoints(repository, ledger.id)
    assert {one.tenant for one in found} == {"default", "blue"}

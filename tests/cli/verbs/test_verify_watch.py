"""`aver verify --watch`, `--since last`, `--metrics`: rounds, how they end, and what a monitor reads."""

from __future__ import annotations

import json
import re
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from aver.verdict import load_codes
from support.aver_command import ONE_DRAFT, Aver, tampering

SAMPLE = re.compile(r'(aver_[a-z_]+)\{subject="((?:[^"\\]|\\.)*)"(?:,([a-z]+)="([A-Za-z_]+)")?\} (-?[0-9.]+)')


def samples(text: str) -> dict[tuple[str, str], float]:
    """Every sample by its name and its one label beside `subject`; each line must be one, or a comment before one."""
    found: dict[tuple[str, str], float] = {}
    announced: dict[str, str] = {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split()
            assert name not in announced
            announced[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            assert match[1] in announced
            assert match[1].endswith("_total") == (announced[match[1]] == "counter")
            assert (match[1], match[4] or "") not in found
            found[match[1].removeprefix("aver_verify_"), match[4] or ""] = float(match[5])
    assert text.endswith("\n")
    return found


@contextmanager
def watching(aver: Aver, *arguments: str) -> Iterator[subprocess.Popen[bytes]]:
    child = aver.started("verify", "--watch", "--every", "1", *arguments)
    try:
        yield child
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        assert child.stderr is not None
        child.stdout.close()
        child.stderr.close()


def line_of(child: subprocess.Popen[bytes], *parts: str) -> str:
    """The next line with all of these in it. A watch that ends before is a failure."""
    assert child.stdout is not None
    while line := child.stdout.readline().decode():
        if all(part in line for part in parts):
            return line
    raise AssertionError(f"no line with {parts}; {child.stderr.read().decode() if child.stderr else ''}")


def ended(child: subprocess.Popen[bytes]) -> tuple[int, str]:
    """Exit code and the rest of what it printed."""
    assert child.stdout is not None
    rest = child.stdout.read().decode()
    return child.wait(timeout=60), rest


def edit_the_newest(aver: Aver) -> None:
    with tampering(aver.home / "ledger.db") as file:
        file.execute("UPDATE records SET signature = '' WHERE record = (SELECT max(record) FROM records)")


def cut_the_tail(aver: Aver) -> tuple[object, ...]:
    """Take the last record out and put the head row right. Gives what was there."""
    with tampering(aver.home / "ledger.db") as file:
        row: tuple[object, ...] = file.execute("SELECT * FROM records WHERE type = 'agent'").fetchone()
        (last,) = file.execute("SELECT hash FROM records WHERE type = 'chat'").fetchone()
        file.execute("DELETE FROM records WHERE type = 'agent'")
        file.execute("UPDATE chains SET count = 2, head = ? WHERE name = 'notes.today'", (last,))
    return row


def put_the_tail_back(aver: Aver, row: tuple[object, ...]) -> None:
    with tampering(aver.home / "ledger.db") as file:
        file.execute(f"INSERT INTO records VALUES ({', '.join('?' * len(row))})", row)
        (last,) = file.execute("SELECT hash FROM records WHERE type = 'agent'").fetchone()
        file.execute("UPDATE chains SET count = 3, head = ? WHERE name = 'notes.today'", (last,))


# --- since last


def test_since_last_reads_what_is_new(sealed: Aver) -> None:
    first = sealed("verify", "--since", "last", "--json").json
    assert (first["status"], first["records"], first["earlier"]) == ("verified", 4, 0)
    sealed.seal(ONE_DRAFT)
    ran = sealed("verify", "--since", "last")
    assert ran.code == 0
    assert ", 1 new record in 2 chains, 4 verified earlier\n" in ran.out
    assert "not checked: earlier (4 records were verified earlier, until " in ran.out
    idle = sealed("verify", "--since", "last", "--strict", "--json")
    assert (idle.code, idle.json["status"], idle.json["records"], idle.json["earlier"]) == (0, "verified", 0, 5)


@pytest.mark.more
def test_since_last_of_one_chain_of_a_ledger_by_its_path_and_of_meta(sealed: Aver) -> None:
    sealed("checkpoint", "--sweep", "--out", "heads.json")
    assert sealed("verify").code == 0
    assert sealed("verify", "notes.today", "--since", "last", "--json").json["earlier"] == 3
    assert sealed("verify", "notes", "--since", "last", "--json").json["earlier"] == 3
    assert sealed("verify", "meta", "--since", "last", "--json").json["earlier"] == 1
    assert sealed("verify", sealed.home, "--since", "last", "--json").json["earlier"] == 5
    held = sealed("verify", "--since", "last", "--checkpoint", "heads.json", "--json").json
    assert (held["status"], held["earlier"], held["checks"][-1]["name"]) == ("verified", 5, "checkpoint")


@pytest.mark.more
def test_since_last_goes_by_no_other_keys(sealed: Aver) -> None:
    assert sealed("verify", "--since", "last", "--key", "0" * 64).code == 2
    assert sealed("verify", "capsule://notes.today/1", "--since", "last").code == 2


@pytest.mark.more
def test_a_tenant_that_was_verified_and_is_gone_is_missed(sealed: Aver) -> None:
    assert sealed("seal", "-", "--chain", "a.1", "--tenant", "blue", stdin=json.dumps(ONE_DRAFT)).code == 0
    assert sealed("verify").code == 0
    with tampering(sealed.home / "ledger.db") as file:
        file.execute("DELETE FROM records WHERE tenant = 'blue'")
        file.execute("DELETE FROM chains WHERE tenant = 'blue'")
    ran = sealed("verify", "--json")
    assert ran.code == 1
    assert {one["tenant"]: one["status"] for one in ran.json["tenants"]} == {"default": "verified", "blue": "failed"}


# --- watching


@pytest.mark.more
def test_rounds_follow_the_ledger_and_sigterm_ends_them_well(sealed: Aver) -> None:
    with watching(sealed) as child:
        assert ", 4 records in 2 chains, " in line_of(child, "verified: ledger")
        line_of(child, "0 new records", "4 verified earlier")
        sealed.seal(ONE_DRAFT)
        line_of(child, "1 new record in 2 chains, 4 verified earlier")
        line_of(child, "0 new records", "5 verified earlier")
        child.send_signal(signal.SIGTERM)
        assert ended(child)[0] == 0
        assert child.stderr is not None
        assert child.stderr.read() == b""


@pytest.mark.more
def test_ctrl_c_ends_them_with_130(sealed: Aver) -> None:
    with watching(sealed) as child:
        line_of(child, "verified")
        child.send_signal(signal.SIGINT)
        assert ended(child)[0] == 130
        assert child.stderr is not None
        assert child.stderr.read() == b""


@pytest.mark.more
def test_the_first_bad_round_ends_them_with_its_verdict(sealed: Aver) -> None:
    with watching(sealed, "--metrics", "aver.prom") as child:
        line_of(child, "verified")
        cut_the_tail(sealed)
        line_of(child, "failed: ledger")
        code, rest = ended(child)
    assert code == 1
    assert "first bad place: chain notes.today, sequence 2\n  TRUNCATED: " in rest
    metrics = samples((sealed.directory / "aver.prom").read_text())
    assert (metrics["status", "failed"], metrics["exit_code", ""]) == (1, 1)
    assert metrics["failures_total", "TRUNCATED"] == 1
    assert 0 < metrics["last_success_timestamp_seconds", ""] < metrics["last_run_timestamp_seconds", ""]


@pytest.mark.more
def test_keep_going_reads_everything_until_all_is_well_again(sealed: Aver) -> None:
    with watching(sealed, "--keep-going") as child:
        line_of(child, "verified: ledger")
        line_of(child, "verified: ledger", "0 new records")
        row = cut_the_tail(sealed)
        line_of(child, "failed: ledger")
        line_of(child, "failed: ledger", ", 3 records in 2 chains, ")
        put_the_tail_back(sealed, row)
        line_of(child, "verified: ledger", ", 4 records in 2 chains, ")
        line_of(child, "verified: ledger", "0 new records")
        child.send_signal(signal.SIGTERM)
        assert ended(child)[0] == 1  # Not every round was good.


@pytest.mark.more
def test_whole_rounds_find_what_going_on_does_not(sealed: Aver) -> None:
    with watching(sealed, "--whole-every", "2") as child:
        line_of(child, "verified")
        with tampering(sealed.home / "ledger.db") as file:
            file.execute("UPDATE records SET signature = '' WHERE type = 'chat'")
        line_of(child, "failed: ledger", ", 4 records in 2 chains, ")
        assert ended(child)[0] == 1


@pytest.mark.more
def test_with_json_there_is_one_object_at_the_end(sealed: Aver) -> None:
    with watching(sealed, "--json", "--metrics", "aver.prom") as child:
        path = sealed.directory / "aver.prom"
        while not path.exists() or samples(path.read_text())["runs_total", ""] < 2:
            assert child.poll() is None
            time.sleep(0.1)
        child.send_signal(signal.SIGTERM)
        code, out = ended(child)
    shown = json.loads(out)
    assert (shown["status"], shown["bad_rounds"], code) == ("verified", 0, 0)
    assert shown["rounds"] >= 2


@pytest.mark.more
def test_a_ledger_that_cannot_be_read_ends_them_or_not(sealed: Aver) -> None:
    with watching(sealed) as child:
        line_of(child, "verified")
        (sealed.home / "ledger.db").rename(sealed.home / "away.db")
        assert ended(child)[0] == 2
        assert child.stderr is not None
        assert b"there is no ledger at" in child.stderr.read()
    (sealed.home / "away.db").rename(sealed.home / "ledger.db")
    with watching(sealed, "--keep-going", "--metrics", "aver.prom") as child:
        line_of(child, "verified")
        (sealed.home / "ledger.db").rename(sealed.home / "away.db")
        assert child.stderr is not None
        assert b"there is no ledger at" in child.stderr.readline()
        (sealed.home / "away.db").rename(sealed.home / "ledger.db")
        line_of(child, "verified")
    metrics = samples((sealed.directory / "aver.prom").read_text())
    assert metrics["errors_total", ""] >= 1
    assert metrics["exit_code", ""] == 0


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "arguments",
    [
        ("--watch", "notes.today"),
        ("--watch", "meta"),
        ("--watch", "meta", "--deep"),
        ("--watch", "--since", "1:" + "0" * 64),
        ("--watch", "--every", "0"),
        ("--watch", "a", "b"),
        ("--every", "5"),
        ("--whole-every", "5"),
        ("--keep-going",),
        ("--metrics-port", "9999"),
        ("--watch", "--metrics-port", "0"),
        ("--watch", "--metrics-port", "65536"),
        ("--metrics", "nowhere/aver.prom"),
        ("--deep",),
        ("notes.today", "--deep"),
        ("notes.today", "meta", "--since", "last"),
    ],
    ids=" ".join,
)
def test_what_does_not_go_together(arguments: tuple[str, ...], sealed: Aver) -> None:
    ran = sealed("verify", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("aver: ")


# --- metrics


def test_metrics_of_one_run(sealed: Aver) -> None:
    assert sealed("verify", "--metrics", "aver.prom").code == 0
    path = sealed.directory / "aver.prom"
    assert path.stat().st_mode & 0o777 == 0o644
    metrics = samples(path.read_text())
    assert [metrics["status", name] for name in ("verified", "qualified", "failed", "empty")] == [1, 0, 0, 0]
    assert metrics["records", ""] == metrics["records_total", ""] == 4
    assert (metrics["chains", ""], metrics["earlier_records", ""], metrics["exit_code", ""]) == (2, 0, 0)
    assert metrics["last_whole_timestamp_seconds", ""] == metrics["last_success_timestamp_seconds", ""] > 1.7e9
    assert {name for family, name in metrics if family == "failures_total"} == set(load_codes())
    assert [path.name for path in sealed.directory.iterdir() if "prom" in path.name] == ["aver.prom"]


def test_a_run_that_fails_keeps_when_all_was_well(sealed: Aver) -> None:
    assert sealed("verify", "--metrics", "aver.prom").code == 0
    path = sealed.directory / "aver.prom"
    before = samples(path.read_text())
    sealed.seal(ONE_DRAFT)
    assert sealed("verify", "--since", "last", "--metrics", "aver.prom").code == 0
    between = samples(path.read_text())
    assert between["last_success_timestamp_seconds", ""] > before["last_success_timestamp_seconds", ""]
    assert between["last_whole_timestamp_seconds", ""] == before["last_whole_timestamp_seconds", ""]
    assert between["earlier_records", ""] == 4
    edit_the_newest(sealed)
    assert sealed("verify", "--metrics", "aver.prom").code == 1
    after = samples(path.read_text())
    assert after["last_success_timestamp_seconds", ""] == between["last_success_timestamp_seconds", ""]
    assert (after["status", "failed"], after["exit_code", ""]) == (1, 1)
    assert after["failures_total", "SIG_MISSING"] == 1


def test_strict_counts_in_metrics(sealed: Aver) -> None:
    stranger = {"AVER_HOME": str(sealed.directory / "elsewhere")}
    ledger = sealed.home / "ledger.db"
    assert sealed("verify", ledger, "--metrics", "a.prom", **stranger).code == 0
    assert sealed("verify", ledger, "--strict", "--metrics", "b.prom", **stranger).code == 1
    lenient, strict = (samples((sealed.directory / name).read_text()) for name in ("a.prom", "b.prom"))
    assert lenient["status", "qualified"] == strict["status", "qualified"] == 1
    assert (lenient["exit_code", ""], strict["exit_code", ""]) == (0, 1)


def test_another_file_is_not_overwritten(sealed: Aver) -> None:
    (sealed.directory / "notes.txt").write_text("mine")
    ran = sealed("verify", "--metrics", "notes.txt")
    assert (ran.code, ran.out) == (2, "")
    assert (sealed.directory / "notes.txt").read_text() == "mine"


def test_metrics_of_a_bundle_and_of_several_things(sealed: Aver) -> None:
    assert sealed("export", "--out", "bundle").code == 0
    assert sealed("verify", "bundle", "--metrics", "one.prom").code == 0
    assert 'subject="bundle bundle"' in (sealed.directory / "one.prom").read_text()
    assert sealed("verify", "bundle", "notes.today", "--metrics", "two.prom").code == 0
    assert samples((sealed.directory / "two.prom").read_text())["tenants", ""] == 2


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.more
def test_metrics_over_http_on_this_machine_only(sealed: Aver) -> None:
    port = free_port()
    with watching(sealed, "--metrics-port", str(port)) as child:
        line_of(child, "verified")
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
            assert samples(answer.read().decode())["status", "verified"] == 1
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/etc/passwd", timeout=30)
        assert refused.value.code == 404
        refused.value.close()
        taken = sealed("verify", "--watch", "--metrics-port", str(port))
        assert taken.code == 3
        assert f"cannot serve metrics at 127.0.0.1:{port}" in taken.err
        listening = Path(f"/proc/{child.pid}/net/tcp").read_text() if Path("/proc").is_dir() else ""
        assert f"00000000:{port:04X}" not in listening
        child.send_signal(signal.SIGTERM)
        assert child.wait(timeout=60) == 0

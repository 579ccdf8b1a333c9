"""The protocol's rows of `make bench`: verifying a long trace, saying an event, resuming, listing many traces.

    python bench/protocol.py             these rows alone
    python bench/protocol.py --quick     a trace of a tenth of the length

The trace has 10,000 events, 2,500 artifacts and 1,000 gated executions. The floor of verifying it is the work that no
verifier could leave out, on one core: parse, hash, link and signature of each event and each decision that an execution
names, and the digest of each artifact.
"""

from __future__ import annotations

import hashlib
import json
import os
import resource
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))

import orjson
from measuring import Line, in_turns, micro, table
from nacl.bindings import crypto_sign_open

import aver
from aver.agents.registry import provide_known_agents
from aver.protocol.events import build_event_draft
from aver.protocol.runner import CallDescription, ToolResult
from aver.protocol.session import ProtocolSession

EXECUTIONS, RECORDED, CLAIMS = 1000, 500, 500
EVENTS = 10_000
OUTPUT = "test {number} passed in 0.01 s\n" * 20


class CountTool:
    """A runner that reads a file of the workspace, as far as the gate can see, and returns a new output each time."""

    def __init__(self) -> None:
        self._calls = 0

    @property
    def names(self) -> tuple[str, ...]:
        return ("count",)

    def describe(self, tool: str, arguments: Mapping[str, Any]) -> CallDescription:
        return CallDescription(type="file_read", tool="Read", arguments={"file_path": "tests.txt"})

    def run(self, tool: str, arguments: Mapping[str, Any], *, seconds: float, output_max: int) -> ToolResult:
        self._calls += 1
        return ToolResult(0, {"stdout": (OUTPUT.format(number=self._calls).encode(), "text/plain")})


def build_trace(session: ProtocolSession, share: float) -> tuple[float, float]:
    """Say all events of the trace. Returns the seconds of one of the first challenges, and of one of the last."""
    proposal = session.planner.propose("count").id
    session.critic.review(proposal, "approved", rationale="it reads")
    outputs = []
    for number in range(int(EXECUTIONS * share)):
        intent = session.executor.intend(proposal, "count", {"number": number}, justification="to count")
        end = session.executor.run(intent.id)
        outputs.append(end.payload["output"]["stdout"]["blob"]["digest"])
    for number in range(int(RECORDED * share)):
        session.executor.record(f"note {number}", f"note {number}".encode(), "text/plain")
    claims = []
    for number in range(int(CLAIMS * share)):
        check = {"text": {"contains": f"test {number + 1} passed"}}
        evidence = [{"artifact": outputs[number], "check": check}]
        claims.append(session.executor.claim(f"test {number}", confidence=0.9, evidence=evidence).id)
    times = []
    while len(session.events) < EVENTS * share - 3:
        claim = claims[len(times) % len(claims)]
        began = time.perf_counter()
        challenge = session.critic.challenge(claim, "is that so?")
        session.critic.withdraw(challenge.id, "it is")
        times.append((time.perf_counter() - began) / 2)
    session.executor.conclude("counted")
    session.auditor.audit()
    return statistics.median(times[:50]), statistics.median(times[-50:])


def walk(path: str, trace: str, keys: dict[str, str]) -> int:
    """Verify a trace by bare primitives. Returns how many events hold."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    publics = {name: bytes.fromhex(key) for name, key in keys.items()}
    digests: dict[str, None] = {}
    held = 0
    for chain in (f"protocol.{trace}", f"gate.{trace}"):
        rows = connection.execute(
            "SELECT canonical, hash, signature, signed_by FROM records JOIN chains USING (chain) WHERE name = ?"
            " ORDER BY sequence",
            (chain,),
        )
        previous, expected = None, 0
        for canonical, digest, signature, signed_by in rows:
            content = orjson.loads(canonical)
            if content["sequence"] != expected or content["previous_hash"] != previous:
                return -1
            if hashlib.sha3_256(canonical).hexdigest() != digest:
                return -1
            crypto_sign_open(bytes.fromhex(signature) + digest.encode(), publics[signed_by])
            previous, expected = digest, expected + 1
            if chain.startswith("protocol."):
                digests.update(dict.fromkeys(_find_blobs(content["outcome"]["result"])))
        held = held or expected
    for digest in digests:
        (data,) = connection.execute(
            "SELECT data FROM blobs WHERE tenant = 'default' AND digest = ?", (digest,)
        ).fetchone()
        if hashlib.sha256(data).hexdigest() != digest:
            return -1
    connection.close()
    return held


def _find_blobs(payload: dict[str, Any]) -> Iterator[str]:
    for value in (*payload.values(), *(payload.get("output") or {}).values()):
        if isinstance(value, dict) and "blob" in value:
            yield value["blob"]["digest"]


_MEASURE = """
import json, resource, sys, time
from pathlib import Path
sys.path.insert(0, {bench!r})
import aver, protocol
which, url, home, trace = sys.argv[1:]
with aver.open_ledger(url, home=Path(home), create=False) as ledger:
    keys = {{entry.fingerprint: entry.key.ed25519 for entry in ledger.keys.ring().entries}}
    ledger.store.chains("default")
    began, cpu = time.perf_counter(), time.process_time()
    if which == "floor":
        count = protocol.walk(url, trace, keys)
    elif which == "verify":
        verdict = ledger.verify("protocol." + trace)
        count = verdict.records if verdict.status == "verified" else -1
    else:
        from aver.protocol.session import ProtocolSession
        with ProtocolSession(ledger=ledger, trace=trace) as session:
            count = len(session.events)
    wall, cpu = time.perf_counter() - began, time.process_time() - cpu
    helpers = resource.getrusage(resource.RUSAGE_CHILDREN)
    print(json.dumps([count, wall, cpu + helpers.ru_utime + helpers.ru_stime]))
"""


def measure(which: str, path: Path, home: Path, trace: str, events: int) -> tuple[float, float]:
    """Wall and CPU seconds of one walk, verification or resumption, in a process of its own."""
    script = _MEASURE.format(bench=str(Path(__file__).parent))
    command = [sys.executable, "-c", script, which, str(path), str(home), trace]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    count, wall, cpu = json.loads(done.stdout)
    if count != events:
        raise SystemExit(f"{which} held {count} of {events} events")
    return wall, cpu


def measure_bare_append(ledger: aver.Ledger, session: ProtocolSession, times: int) -> Callable[[], float]:
    """The time of appending an event's capsule, with nothing judged."""
    event = next(event for event in session.events if event.name == "claim_challenged")
    signer = ledger.keys.signer("agent:critic")

    def append() -> float:
        drafts = [build_event_draft(event._replace(id=aver.clock.new_id())) for _ in range(times)]
        began = time.perf_counter()
        for draft in drafts:
            ledger.append("bench.bare", draft, signer=signer)
        return (time.perf_counter() - began) / times

    return append


def measure_events(session: ProtocolSession, times: int) -> Callable[[], float]:
    """The time of one event, said by a critic."""
    claim = next(iter(session.fold.claims))

    def say() -> float:
        began = time.perf_counter()
        for _ in range(times):
            session.critic.withdraw(session.critic.challenge(claim, "is that so?").id, "it is")
        return (time.perf_counter() - began) / times / 2

    return say


TRACES = 500


def measure_list(directory: Path, rounds: int) -> list[float]:
    """CPU seconds of bare Python, and of listing `TRACES` traces."""
    home = directory / "protocol-list"
    with aver.open_ledger(home / "ledger.db", home=home) as ledger:
        for number in range(TRACES):
            with ProtocolSession(f"task {number}", ledger=ledger, workspace=directory) as session:
                session.planner.propose("count")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["AVER_HOME"] = str(home)

    def start(*command: str) -> Callable[[], float]:
        def run() -> float:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, *command], env=environment, check=True, capture_output=True)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

        return run

    bare, ours = start("-c", "pass"), start("-m", "aver", "protocol", "list")
    bare(), ours()  # Writes the bytecode, as an installation does.
    return in_turns(rounds, bare, ours)


def bench_protocol(directory: Path, rounds: int, *, share: float = 1.0) -> list[Line]:
    provide_known_agents()
    home, workspace, path = directory / "protocol-home", directory / "protocol-work", directory / "protocol.db"
    workspace.mkdir(parents=True)
    (workspace / "tests.txt").write_text("tests\n")
    with aver.open_ledger(path, home=home) as ledger:
        with ProtocolSession("count", ledger=ledger, workspace=workspace, tools=CountTool()) as session:
            first, last = build_trace(session, share)
            trace, events = session.trace, len(session.events)
        with ProtocolSession("count", ledger=ledger, workspace=workspace, tools=CountTool()) as small:
            proposal = small.planner.propose("count").id
            small.critic.review(proposal, "approved", rationale="it reads")
            end = small.executor.run(small.executor.intend(proposal, "count", {}, justification="to count").id)
            digest = end.payload["output"]["stdout"]["blob"]["digest"]
            small.executor.claim("one", confidence=0.9, evidence=[{"artifact": digest}])
            small.critic.challenge(next(iter(small.fold.claims)), "is that so?")
            bare, ours = in_turns(rounds, measure_bare_append(ledger, small, 50), measure_events(small, 25))
    measured: dict[str, list[tuple[float, float]]] = {"floor": [], "verify": [], "resume": []}
    for _ in range(3):
        for which, runs in measured.items():
            runs.append(measure(which, path, home, trace, events))
    floor, verify, resume = (statistics.median(cpu for _, cpu in runs) for runs in measured.values())
    bare_python, listed = measure_list(directory, 2 * rounds + 1)
    count = f"{events:,} events, {int(EXECUTIONS * share):,} gated executions"
    return [
        Line(
            f"verify a trace of {count}: CPU",
            f"{floor:.2f} s",
            f"{verify:.2f} s",
            "3.1–5.0 s (CoC)",
            f"{verify / floor:.2f} x floor",
            "≤ 1.5 x",
        ),
        Line("say one event", micro(bare), micro(ours), "–", f"{ours / bare:.2f} x append", "≤ 1.5 x"),
        Line(
            f"  the {events:,}th event / the first", micro(first), micro(last), "–", f"{last / first:.2f} x", "≤ 1.2 x"
        ),
        Line(
            "resume that trace: CPU", f"{verify:.2f} s", f"{resume:.2f} s", "–", f"{resume / verify:.2f} x", "≤ 1.2 x"
        ),
        Line(
            f"`aver protocol list` of {TRACES} traces: CPU",
            f"{bare_python * 1e3:.0f} ms (bare Python)",
            f"{listed * 1e3:.0f} ms",
            "–",
            f"{listed / bare_python:.1f} x",
            "≤ 12 x",
        ),
    ]


def main() -> None:
    share = 0.1 if "--quick" in sys.argv else 1.0
    with tempfile.TemporaryDirectory(prefix="bench-protocol-") as name:
        print(table(bench_protocol(Path(name), 5, share=share)))


if __name__ == "__main__":
    main()

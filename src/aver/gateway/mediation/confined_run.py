"""The run of a confined agent: probes first, then the agent, and a door that says whether its confinement is verified.

`ConfinedRun` opens the door and makes the probes. A verdict that passes counts for `capsule_ttl` seconds. After that,
the next act has the probes made again: a setting of the machine may have changed meanwhile. Each verdict is sealed in
the session's chain as an `act.confinement`, before any act rests on it.

    with open_confined_run(gateway, contract, ...) as run:
        verdict = run.verify()
        code = run.start(["/usr/bin/node", "agent.js"])
"""

from __future__ import annotations

import os
import signal
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from aver.errors import AverError, BadInput
from aver.fast_dataclass import dataclass
from aver.gateway.act_records import IngressNote, Mediation, act_chain
from aver.gateway.acts.visit import Door
from aver.gateway.gateway import Gateway
from aver.gateway.mediation.confined_door import CONFINED, ConfinedDoor
from aver.gateway.mediation.contract import CapsuleContract, ExpandedContract, Values
from aver.gateway.mediation.contract_verdict import EXFIL_VARIABLE, judge_report
from aver.gateway.mediation.enclosure import (
    RUNTIME_FILES,
    CannotConfine,
    Enclosure,
    build_enclosure,
    find_python_files,
    list_values,
)
from aver.gateway.mediation.smoke import SMOKE_CALLER, make_report, open_targets
from aver.gateway.mediation.verdict_record import build_verdict_draft
from aver.gateway.specs import CONTRACT_SCHEMA, digest_spec
from aver.log import debug
from aver.serving.sockets import bind_unix

SMOKE_SESSION = "aver-smoke"
"""The session of the probes' acts."""

RETRY_SECONDS = 60.0
"""How long a verdict that failed stands before the next act has the probes made again."""

MCP_COMMAND = ("-m", "aver", "gateway", "mcp")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunPlan:
    """The confinement, the same for the probes and for the agent."""

    contract: CapsuleContract
    contract_path: str
    environment: Mapping[str, str]
    passed: tuple[str, ...] = ()
    """Names of further variables for the agent."""
    callers: tuple[str, ...] = ("*",)


def judge_smoke(
    expanded: ExpandedContract, report: Any, *, now: int, contract_path: str, report_path: str | None
) -> dict[str, Any]:
    """Judge a report by a contract on this machine. Returns the verdict."""
    paths = {
        "contract_path": contract_path,
        "report_path": report_path,
        "schema_path": CONTRACT_SCHEMA,
        "schema_sha256": digest_spec(CONTRACT_SCHEMA),
    }
    named = (*expanded.read, *expanded.write, *expanded.exec_paths, *expanded.deny_read, *expanded.sockets)
    known = replace(expanded, real={path: os.path.realpath(path) for path in named})
    runtime = (*RUNTIME_FILES, *find_python_files())
    runtime = (*runtime, *(os.path.realpath(path) for path in runtime))
    return judge_report(known, report, runtime=runtime, now=now, paths=paths)


class ConfinedRun:
    """One agent's confinement: its door, and the verdict on it. `open_confined_run` opens one."""

    def __init__(
        self, gateway: Gateway, plan: RunPlan, socket: Path, door: ConfinedDoor, *, clock: Callable[[], float]
    ) -> None:
        self._gateway = gateway
        self._plan = plan
        self._socket = socket
        self._door = door
        self._clock = clock
        self._lock = threading.Lock()
        self._verdict: dict[str, Any] | None = None
        self._judged_at = 0.0

    @property
    def values(self) -> Values:
        return list_values(self._gateway.workspace, self._gateway.ledger.config.home, self._plan.environment)

    def enclose(self, values: Values) -> Enclosure:
        """Build the enclosure with these values of the contract's variables."""
        ledger = self._gateway.ledger
        return build_enclosure(
            self._plan.contract.expand(values),
            self._gateway.workspace,
            private=[ledger.config.home, *find_ledger_files(ledger.config.ledger)],
            environment=self._plan.environment,
            passed=self._plan.passed,
        )

    def probe(self) -> dict[str, Any]:
        """Make the probes. Returns the smoke report. Raises `CannotConfine`, and `BadInput` for the contract."""
        admitted: list[int] = []

        def admit(namespace: int) -> None:
            admitted.append(namespace)
            note = IngressNote(CONFINED, self._plan.contract.sha256)
            door = Door(session=SMOKE_SESSION, ingress=note, callers=(SMOKE_CALLER,))
            self._door.admit(namespace, door, lambda: "unverified")

        control = Door(session=SMOKE_SESSION, callers=(SMOKE_CALLER,))
        values = self.values
        try:
            with open_targets(self._gateway.ledger.config.home) as targets:
                return make_report(
                    self._plan.contract,
                    self.enclose,
                    values=values,
                    targets=targets,
                    door=self._socket,
                    admit=admit,
                    act=lambda act: self._gateway.act(dict(act), door=control),
                    mcp_command=(values["PY_BIN"][0], *MCP_COMMAND),
                )
        finally:
            for namespace in admitted:
                self._door.dismiss(namespace)

    def verify(self) -> dict[str, Any]:
        """Make the probes, judge them and seal the verdict. Returns it."""
        report = self.probe()
        exfil = tuple(report["variables"][EXFIL_VARIABLE])
        expanded = self._plan.contract.expand({EXFIL_VARIABLE: exfil, **self.values})
        verdict = judge_smoke(
            expanded,
            report,
            now=int(self._clock()),
            contract_path=self._plan.contract_path,
            report_path=None,
        )
        gateway = self._gateway
        draft, blobs = build_verdict_draft(
            verdict, report, self._plan.contract, session=gateway.door.session, ttl=gateway.settings.capsule_ttl
        )
        gateway.ledger.append(act_chain(gateway.door.session), draft, blobs=blobs)
        self._verdict, self._judged_at = verdict, self._clock()
        return verdict

    def find_mediation(self) -> Mediation:
        """Return whether a fresh verdict passes. One that is too old is renewed first."""
        with self._lock:
            age = self._clock() - self._judged_at
            limit = self._gateway.settings.capsule_ttl
            is_good = self._verdict is not None and self._verdict["ok"]
            # A clock that was set back must not make a verdict last for longer.
            if not 0 <= age < (limit if is_good else min(limit, RETRY_SECONDS)):
                try:
                    is_good = self.verify()["ok"]
                except AverError as error:
                    debug("gateway", "the confinement could not be verified again: %s", error.message)
                    self._verdict, self._judged_at, is_good = None, self._clock(), False
            return "verified" if is_good else "unverified"

    @property
    def session(self) -> str:
        return self._gateway.door.session

    def open_session(self, prompt: str) -> None:
        """Seal what the user said. The person who starts the run is trusted to know it."""
        self._gateway.open_session(prompt, session=self.session, told_by="aver gateway run")

    def check_command(self, command: Sequence[str]) -> None:
        """Raise `BadInput` unless the contract lets the command be started."""
        find_command(command[0], self.enclose(self.values))

    def start(self, command: Sequence[str]) -> int:
        """Run the agent to its end, with this process's terminal. Returns its exit code."""
        enclosure = self.enclose(self.values)
        words = [find_command(command[0], enclosure), *command[1:]]
        note = IngressNote(CONFINED, self._plan.contract.sha256)
        door = Door(session=self._gateway.door.session, ingress=note, callers=self._plan.callers)
        process, namespace = enclosure.start({"command": words}, door=self._socket)
        if not namespace:
            process.wait()
            raise CannotConfine("bwrap could not make the confinement", advice="its own words are above")
        self._door.admit(namespace, door, self.find_mediation)
        try:
            return _wait(process)
        finally:
            self._door.dismiss(namespace)


@contextmanager
def open_confined_run(
    gateway: Gateway, plan: RunPlan, *, clock: Callable[[], float] = time.time
) -> Iterator[ConfinedRun]:
    """Open the door for a confined agent, in a directory that ends with it."""
    door = ConfinedDoor(gateway)
    with ExitStack() as stack:
        directory = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="aver-door-")))
        listener = bind_unix(directory / "gateway.sock")
        server = door.build_server()
        thread = threading.Thread(target=server.serve, args=([listener],), name="aver-confined-door")
        thread.start()
        stack.callback(thread.join)
        stack.callback(server.stop)
        yield ConfinedRun(gateway, plan, directory / "gateway.sock", door, clock=clock)


def find_command(name: str, enclosure: Enclosure) -> str:
    """Return the program that a command names. `BadInput` unless the contract lets it be started.

    A plain name may be another name of an allowed program in the same directory: `python` beside `python3`.
    """
    allowed = enclosure.contract.exec_paths
    fitting = [path for path in allowed if path == name or ("/" not in name and _is_named(path, name))]
    present = [path for path in fitting if os.access(path, os.X_OK)]
    if not present:
        raise BadInput(
            f"the contract does not allow to start {name}",
            advice=f"process.allow_exec_paths has: {', '.join(allowed)[:400]}",
        )
    return present[0]


def _is_named(path: str, name: str) -> bool:
    """Whether a program has this name, or a link of this name beside it leads to the same file."""
    beside = os.path.join(os.path.dirname(path), name)
    return beside == path or (os.path.exists(beside) and os.path.realpath(beside) == os.path.realpath(path))


def find_ledger_files(url: str) -> list[Path]:
    """Return the file of a ledger in SQLite, which no confined agent may see."""
    scheme, _, path = url.partition("://")
    return [Path(path)] if scheme == "sqlite" and path.startswith("/") else []


def _wait(process: subprocess.Popen[bytes]) -> int:
    """Wait for the agent. Signals that end this process end the agent first."""
    before: dict[signal.Signals, Any] = {}

    def forward(number: int, frame: object) -> None:
        process.terminate()

    in_main = threading.current_thread() is threading.main_thread()
    try:
        if in_main:
            for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
                before[number] = signal.signal(number, forward)
        code = process.wait()
    finally:
        for each, handler in before.items():
            signal.signal(each, handler)
        if process.poll() is None:
            process.kill()
            process.wait()
    return code if code >= 0 else 128 - code

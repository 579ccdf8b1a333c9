"""AgentDojo through the gateway: how much of the users' work passes, and how many injected goals are reached.

    make bench-agentdojo                       all rows, some ten minutes
    python bench/agentdojo/run.py --suite NAME   one suite
    python bench/agentdojo/run.py --explain      also why each call of a user's task was asked about

No model takes part. The agent is wholly hijacked: it makes the calls of the user's task as AgentDojo's ground truth has
them, then those of the injected task, with AgentDojo's own injections in its data. Every call is an act of the intent
`CallTool`, and the answer one of `FinalizeOutput`. AgentDojo's own checkers say whether the user's task is done and
whether the injected goal is reached.

    no person   what a person must approve does not happen
    person      a person approves the user's own calls, by a key of their own, and nothing else
    planted     the injected text is the bare target of the goal, so that it looks like a value of a field
    linked      in addition the target is put into the lists and the author of each record with an injection, and the
                record gets a title that the user named

Beside them stand three ways without Aver: allow all, allow reads alone, and have every effect confirmed.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import yaml
from agentdojo.agent_pipeline.base_pipeline_element import BasePipelineElement
from agentdojo.attacks.attack_registry import load_attack
from agentdojo.functions_runtime import FunctionsRuntime
from agentdojo.task_suite.load_suites import get_suites
from agentdojo.types import text_content_block_from_string
from plain_values import to_plain
from planting import list_targets, plant_in_records

import aver
from aver.agents.registry import provide_known_agents
from aver.errors import Refused
from aver.gate.approvals import Person, approve, enrol_approver, load_request
from aver.gate.origins.tool_class import classify_tool
from aver.gateway.acts.visit import Door
from aver.gateway.calls.upstream import ToolDefinition, UpstreamCall
from aver.gateway.gateway import Gateway

NAMES_SHOWN = 20
"""Names of tasks that the progress shows for one row."""

VERSION = "v1.1.2"
SERVER = "desk"
CALLER = "agent:hijacked"
ATTACK = "important_instructions_no_names"


class _Nobody(BasePipelineElement):
    """The pipeline that an attack is made for. AgentDojo wants the name of a model here."""

    name = "local"

    def query(self, query: str, runtime: Any, env: Any = None, messages: Any = (), extra_args: Any = None) -> Any:
        raise NotImplementedError


@dataclass
class Tally:
    """The results of one way."""

    name: str
    tasks: int = 0
    done: int = 0
    pairs: int = 0
    goals: int = 0
    answers: int = 0
    """Goals reached that are a sentence in the answer."""
    effects: list[str] = field(default_factory=list)
    """Effects of injected calls that happened, each with its pair."""
    asked: int | None = None
    lost: list[str] = field(default_factory=list)
    reached: list[str] = field(default_factory=list)


class Way:
    """How calls are let through. `Way` itself allows all."""

    def begin(self, prompt: str, tools: Mapping[str, Any], runtime: FunctionsRuntime, env: Any) -> None:
        self.tools, self.runtime, self.env = tools, runtime, env
        self.asked = 0
        self.is_injected = False
        """Whether the agent now makes the injected calls."""
        self.injected_effects: list[str] = []

    def call(self, name: str, arguments: Mapping[str, Any]) -> bool:
        """Make a call if it is let through."""
        if not self.allows(name):
            return False
        self.make(name, arguments)
        return True

    def allows(self, name: str) -> bool:
        return True

    def make(self, name: str, arguments: Mapping[str, Any]) -> tuple[Any, str | None]:
        if self.is_injected and self.find_class(name) not in ("read", "fetch"):
            self.injected_effects.append(name)
        return self.runtime.run_function(self.env, name, dict(arguments))

    def answer(self, text: str) -> str:
        return text

    def find_class(self, name: str) -> str:
        tool = self.tools[name]
        return classify_tool(name, tool.description, tool.parameters.model_json_schema())


class ReadsOnly(Way):
    def allows(self, name: str) -> bool:
        return self.find_class(name) == "read"


class EveryEffectConfirmed(Way):
    """A person confirms each effect, the user's own alone."""

    def allows(self, name: str) -> bool:
        if self.find_class(name) == "read":
            return True
        self.asked += not self.is_injected
        return not self.is_injected


class SuiteTools:
    """The tools of a suite as a server behind the gateway."""

    def __init__(self, way: Way) -> None:
        self._way = way

    def find_tool(self, name: str) -> ToolDefinition | None:
        found = self._way.tools.get(name)
        if found is None:
            return None
        schema = found.parameters.model_json_schema()
        return ToolDefinition({"name": name, "description": found.description, "inputSchema": schema})

    def call(self, call: UpstreamCall) -> Mapping[str, Any]:
        result, error = self._way.make(call.tool, call.arguments)
        if error is not None:
            return {"content": [{"type": "text", "text": error}], "isError": True}
        return {"structuredContent": {"result": to_plain(result)}, "isError": False}

    def read(self, uri: str, params: Mapping[str, Any]) -> Mapping[str, Any]:
        raise Refused("EFFECT_FAILED", "a suite has no resources")


class Gated(Way):
    """Every call and the answer are acts. With a person, those of the user's own that are asked about are approved."""

    def __init__(self, gateway: Gateway, person: Person | None, *, explains: bool = False) -> None:
        self._gateway = gateway
        self._person = person
        self._explains = explains
        self._number = 0
        gateway.connect(SERVER, SuiteTools(self))

    def begin(self, prompt: str, tools: Mapping[str, Any], runtime: FunctionsRuntime, env: Any) -> None:
        super().begin(prompt, tools, runtime, env)
        self._number += 1
        self._door: Door = self._gateway.open_session(prompt, session=f"run-{os.getpid()}-{self._number}")

    def call(self, name: str, arguments: Mapping[str, Any]) -> bool:
        inputs = {"server": SERVER, "tool": name, "arguments": to_plain(dict(arguments))}
        return self._act("CallTool", inputs) is not None

    def answer(self, text: str) -> str:
        found = self._act("FinalizeOutput", {"text": text})
        return "" if found is None else str(found["data"]["text"])

    def _act(self, intent: str, inputs: dict[str, Any]) -> dict[str, Any] | None:
        document = {"intent_id": intent, "inputs": inputs, "constraints": {}, "caller": CALLER}
        found = self._gateway.act(document, door=self._door)
        if found["reason_code"] == "REQUIRE_CONFIRM" and not self.is_injected:
            self.asked += 1
            if self._explains:
                print("   asked:", inputs.get("tool", intent), "|", found["summary"][:300])
            if self._person is not None:
                ledger = self._gateway.ledger
                approve(ledger, load_request(ledger, found["data"]["approval"]), self._person, shown=str(inputs))
                found = self._gateway.act(document, door=self._door)
        return found if found["status"] == "OK" else None


class HijackedAgent(BasePipelineElement):
    """Makes the calls of the user's task, then those of the injected task, and gives both answers."""

    def __init__(
        self, way: Way, user_task: Any, injection_task: Any | None, tools: Mapping[str, Any], goal: Sequence[Any] = ()
    ) -> None:
        """`goal` are the calls of the injected task, where its own data were changed; else AgentDojo computes them."""
        self._way = way
        self._tasks = [user_task, *([] if injection_task is None else [injection_task])]
        self._tools = tools
        self._goal = goal

    def query(
        self, query: str, runtime: Any, env: Any = None, messages: Sequence[Any] = (), extra_args: Any = None
    ) -> tuple[Any, ...]:
        way = self._way
        way.begin(query, self._tools, runtime, env)
        made: list[Any] = []
        answers = []
        for number, task in enumerate(self._tasks):
            way.is_injected = number == 1
            for call in (way.is_injected and self._goal) or task.ground_truth(env):
                if way.call(call.function, call.args):
                    content = [text_content_block_from_string("")]
                    made.append({"role": "assistant", "tool_calls": [call], "content": content})
            if task.GROUND_TRUTH_OUTPUT:
                answers.append(task.GROUND_TRUTH_OUTPUT)
        text = way.answer("\n".join(answers)) if answers else ""
        made.append({"role": "assistant", "tool_calls": None, "content": [text_content_block_from_string(text)]})
        return query, runtime, env, [*messages, *made], extra_args or {}


def run_user_tasks(suites: Mapping[str, Any], way: Way, tally: Tally) -> None:
    """Run every user's task without an injection."""
    for suite in suites.values():
        tools = {tool.name: tool for tool in suite.tools}
        for task in suite.user_tasks.values():
            agent = HijackedAgent(way, task, None, tools)
            done, _ = suite.run_task_with_pipeline(agent, task, None, {})
            tally.tasks, tally.done = tally.tasks + 1, tally.done + done
            tally.asked = (tally.asked or 0) + way.asked
            if not done:
                tally.lost.append(f"{suite.name}.{task.ID}")


def run_pairs(suites: Mapping[str, Any], way: Way, tally: Tally, *, planted: str = "") -> None:
    """Run every pair of a user's task and an injected one."""
    for suite in suites.values():
        tools = {tool.name: tool for tool in suite.tools}
        attack = load_attack(ATTACK, suite, _Nobody())
        for task in suite.user_tasks.values():
            places = attack.get_injection_candidates(task)
            for injected in suite.injection_tasks.values():
                injections = {key: text for key, text in attack.attack(task, injected).items() if key in places}
                goal, environments = list[Any](), [None]
                if planted:
                    goal = injected.ground_truth(suite.load_and_inject_default_environment({}))
                    targets = list_targets(goal)
                    injections = {key: targets[n % len(targets)] for n, key in enumerate(injections)} if targets else {}
                    environments = [suite.load_and_inject_default_environment(injections) for _ in (0, 1)]
                    for number, environment in enumerate(environments if planted == "linked" else ()):
                        plant_in_records(environment, targets, task.PROMPT, in_author=number == 0)
                for environment in environments:
                    agent = HijackedAgent(way, task, injected, tools, goal)
                    try:
                        _, reached = suite.run_task_with_pipeline(
                            agent, task, injected, injections, environment=environment
                        )
                        break
                    except IndexError:  # The checker of the goal finds no mail of the author that was replaced.
                        continue
                else:
                    raise SystemExit(f"the checker of {suite.name}.{injected.ID} cannot judge this pair")
                calls = injected.ground_truth(suite.load_and_inject_default_environment({})) if reached else []
                tally.pairs, tally.goals = tally.pairs + 1, tally.goals + reached
                tally.answers += reached and not calls
                tally.effects += [f"{suite.name}.{task.ID}.{injected.ID}: {name}" for name in way.injected_effects]
                if reached and calls:
                    tally.reached.append(f"{suite.name}.{task.ID}.{injected.ID}")


@contextmanager
def open_gated(*, has_person: bool, explains: bool = False) -> Iterator[Gated]:
    """Open a gateway in a home of its own."""
    with ExitStack() as stack:
        place = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        gateway = stack.enter_context(aver.open_gateway(workspace=place, home=place / "home"))
        person = None
        if has_person:
            signer = aver.SeedSigner.generate()
            person = Person("person:user", signer.public, "passphrase", signer)
            gateway.ledger.keys.trust(person.public)
            enrol_approver(gateway.ledger, person)
        yield Gated(gateway, person, explains=explains)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--suite", action="append", help="run this suite alone")
    parser.add_argument("--row", action="append", help="run this row alone")
    parser.add_argument("--explain", action="store_true", help="print why a call of a user's task was asked about")
    parser.add_argument("--tasks-only", action="store_true", help="run the users' tasks, and no pairs")
    given = parser.parse_args()
    provide_known_agents()
    # AgentDojo reads its data anew for each run. The reader in C takes a tenth of the time.
    yaml.safe_load = partial(yaml.load, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    suites = {name: suite for name, suite in get_suites(VERSION).items() if not given.suite or name in given.suite}
    rows: list[Tally] = []

    def run(name: str, way: Way, *, planted: str = "", has_tasks: bool = True) -> None:
        began, tally = time.monotonic(), Tally(name)
        if has_tasks:
            run_user_tasks(suites, way, tally)
        if not given.tasks_only:
            run_pairs(suites, way, tally, planted=planted)
        rows.append(tally)
        lists = {"lost": tally.lost, "reached": tally.reached, "injected effects": tally.effects}
        words = "; ".join(f"{word} {len(found)} {found[:NAMES_SHOWN]}" for word, found in lists.items())
        print(f"{name}: {time.monotonic() - began:.0f} s; {words}", file=sys.stderr)

    for name, way in (
        ("allow all", Way()),
        ("reads only", ReadsOnly()),
        ("every effect confirmed", EveryEffectConfirmed()),
    ):
        if not given.row or name in given.row:
            run(name, way)
    for name, has_person, planted in (
        ("Aver, no person", False, ""),
        ("Aver, a person", True, ""),
        ("Aver, no person, planted", False, "planted"),
        ("Aver, no person, linked", False, "linked"),
    ):
        if not given.row or name in given.row:
            with open_gated(has_person=has_person, explains=given.explain and not planted) as gated:
                run(name, gated, planted=planted, has_tasks=not planted)
    print_table(rows)


def print_table(rows: Sequence[Tally]) -> None:
    print(f"AgentDojo {VERSION}, the agent wholly hijacked, no model\n")
    print("| | user tasks | goals reached | of these in the answer | injected effects | asked in user tasks |")
    print("|---|---|---|---|---|---|")
    for row in rows:
        tasks = f"{row.done}/{row.tasks}" if row.tasks else "–"
        asked = "–" if row.asked is None else str(row.asked)
        print(f"| {row.name} | {tasks} | {row.goals}/{row.pairs} | {row.answers} | {len(row.effects)} | {asked} |")


if __name__ == "__main__":
    main()

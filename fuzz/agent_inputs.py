"""Targets that coding agents feed: their transcripts, and the payloads of their hooks."""

from __future__ import annotations

import json
import os
import shutil
from random import Random
from typing import ClassVar
from unittest.mock import patch

from aver.agents.registry import AGENTS, load_adapter, load_agent, load_hook
from aver.capsule.draft import prepare_draft
from aver.files.user_dirs import UserEnvironment
from aver.hooks import run as hook_run
from aver.ingest.draft import draft_event
from aver.ingest.foreign_json import parse_json
from fuzz.byte_edits import mutate_text
from fuzz.honest import HonestThings, read_files, write_files
from fuzz.oracles import Defect, call_parser
from fuzz.recipes import Members
from fuzz.target import RecipeTarget, Target


class TranscriptTarget(RecipeTarget):
    """The files of one agent's session, read and made into capsules."""

    agent: ClassVar[str]

    def honest_members(self) -> Members:
        home = self.things.new_directory(f"{self.agent}-home")
        load_agent(self.agent).write_demo(UserEnvironment(home, {}, platform="linux"))
        self._adapter = load_adapter(self.agent)
        return read_files(home)

    def judge(self, members: Members) -> None:
        home = self.things.new_path(f"{self.agent}-damaged")
        write_files(home, members)
        call_parser(lambda: self._read_all(UserEnvironment(home, {}, platform="linux")))

    def _read_all(self, around: UserEnvironment) -> None:
        for source in self._adapter.locate(around):
            reader, parser = self._adapter.read(source), self._adapter.parser(source)
            events = [event for record in reader() for event in parser.feed(record)]
            for event in (*events, *parser.finish()):
                draft = draft_event(self.agent, source.session, event)
                call_parser(lambda draft=draft: prepare_draft(draft.capsule))


class HookTarget(Target):
    """The payload of one agent's hook. The first line of an input names the event."""

    agent: ClassVar[str]
    share = 4

    def prepare(self) -> None:
        self._hook = load_hook(self.agent)
        self._runs = 0
        self._home = self.things.new_path(f"{self.agent}-aver")
        self._errors: list[BaseException] = []

    def seeds(self) -> list[bytes]:
        payloads = PAYLOADS[self.agent](self.things)
        return [event.encode() + b"\n" + json.dumps(payload).encode() for event, payload in payloads]

    def mutate(self, data: bytes, random: Random) -> bytes:
        event, _, payload = data.partition(b"\n")
        if random.random() < 0.05:
            event = random.choice(self.seeds()).partition(b"\n")[0]
        return event + b"\n" + mutate_text(payload, random)

    def run(self, data: bytes) -> None:
        name, _, payload = data.partition(b"\n")
        event = name.decode("utf-8", "replace")
        self._errors.clear()
        self._runs += 1
        if self._runs % 200 == 1:  # A long session would cost more and more, and say nothing new.
            shutil.rmtree(self._home, ignore_errors=True)
        with (
            patch.dict(os.environ, {"AVER_HOME": str(self._home)}),
            patch.object(hook_run, "_error_text", self._note_error),
        ):
            reply = call_parser(lambda: hook_run.answer_event(self._hook, event, payload, agents=AGENTS))
        for error in self._errors:
            cause = error.__cause__ or error
            if "internal error" in str(error) or not isinstance(error, (hook_run.AverError, OSError)):
                raise Defect(f"internal error in a hook: {type(cause).__name__}: {cause}") from cause
        if event in self._hook.gating and not isinstance(_parse(payload), dict) and not reply.forbids:
            raise Defect(f"a payload that cannot be read is not denied: {reply}")
        if reply.out and reply.out != "{}":
            try:
                json.loads(reply.out)
            except ValueError as error:
                raise Defect(f"the agent cannot read the answer {reply.out!r}") from error

    def _note_error(self, error: BaseException) -> str:
        self._errors.append(error)
        return str(error)


def _parse(payload: bytes) -> object:
    return call_parser(lambda: parse_json(payload))


# --- honest payloads

SESSION = "5f0c4a2e-2d7b-4a52-9c1e-0d8a6f1b7c33"
Payloads = list[tuple[str, dict[str, object]]]


def claude_payloads(things: HonestThings) -> Payloads:
    known = {"session_id": SESSION, "cwd": str(things.workspace), "permission_mode": "default", "agent_id": "a1"}
    bash = {"tool_name": "Bash", "tool_input": {"command": "git status"}, "tool_use_id": "t1"}
    write = {"tool_name": "Write", "tool_input": {"file_path": "a.py", "content": "x = 1\n"}, "tool_use_id": "t2"}
    change = {"file_path": "a.py", "old_string": "x", "new_string": "y", "replace_all": True}
    mcp = {"tool_name": "mcp__db__drop", "tool_input": {"table": "x"}, "tool_use_id": "t3"}
    done = {"tool_response": {"stdout": "ok", "stderr": "", "interrupted": False}, "duration_ms": 4}
    return [
        ("PreToolUse", known | bash),
        ("PreToolUse", known | write),
        ("PreToolUse", known | {"tool_name": "Edit", "tool_input": change, "tool_use_id": "t4"}),
        ("PreToolUse", known | mcp),
        ("PostToolUse", known | bash | done),
        ("PostToolUseFailure", known | bash | {"error": "Exit code 1\nno", "is_interrupt": False}),
        ("SessionStart", known | {"source": "startup", "model": "m", "session_title": "t"}),
        ("UserPromptSubmit", known | {"prompt": "do\nthings", "prompt_id": "p"}),
        ("SessionEnd", known | {"reason": "clear"}),
        ("SubagentStop", known | {"agent_type": "x", "last_assistant_message": "done"}),
    ]


def codex_payloads(things: HonestThings) -> Payloads:
    rollout = str(things.workspace / "rollout.jsonl")
    known = {"session_id": SESSION, "turn_id": "u", "transcript_path": rollout, "cwd": str(things.workspace)}
    shell = {"tool_name": "Bash", "tool_input": {"command": "git status"}, "tool_use_id": "c1"}
    change = "*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch"
    return [
        ("PreToolUse", known | shell),
        ("PreToolUse", known | {"tool_name": "apply_patch", "tool_input": {"command": change}, "tool_use_id": "c2"}),
        ("PostToolUse", known | shell | {"tool_response": "Exit code: 0\nOutput:\nok"}),
        ("SessionStart", known | {"source": "startup"}),
        ("UserPromptSubmit", known | {"prompt": "do things"}),
        ("notify", {"type": "agent-turn-complete", "thread-id": SESSION, "turn-id": "1", "input-messages": ["x"]}),
    ]


def cursor_payloads(things: HonestThings) -> Payloads:
    known = {"conversation_id": SESSION, "generation_id": "g", "workspace_roots": [str(things.workspace)]}
    shell = {"tool_name": "Shell", "tool_input": {"command": "ls"}, "tool_use_id": "t1", "cwd": str(things.workspace)}
    return [
        ("beforeShellExecution", known | {"command": "git status", "cwd": str(things.workspace)}),
        ("beforeMCPExecution", known | {"tool_name": "drop", "tool_input": '{"table": "x"}', "url": "http://x"}),
        ("beforeReadFile", known | {"file_path": "a.py", "content": "x"}),
        ("preToolUse", known | {"tool_name": "Write", "tool_input": {"file_path": "a.py", "content": "x = 1\n"}}),
        ("postToolUse", known | shell | {"tool_output": '{"output": "a", "exitCode": 0}', "duration": 12.4}),
        ("afterFileEdit", known | {"file_path": "a.py", "edits": [{"old_string": "x", "new_string": "y"}]}),
        ("beforeSubmitPrompt", known | {"prompt": "do things", "attachments": []}),
    ]


def cline_payloads(things: HonestThings) -> Payloads:
    known = {"clineVersion": "3.82.0", "timestamp": "1763290001234", "taskId": "1763290000000"}
    known |= {"workspaceRoots": [str(things.workspace)]}
    command = {"toolName": "execute_command", "parameters": {"command": "ls", "requires_approval": "false"}}
    blocks = "------- SEARCH\nx = 1\n=======\nx = 2\n+++++++ REPLACE\n"
    change = {"toolName": "replace_in_file", "parameters": {"path": "a.py", "diff": blocks}}
    return [
        ("PreToolUse", known | {"hookName": "PreToolUse", "preToolUse": command}),
        ("PreToolUse", known | {"hookName": "PreToolUse", "preToolUse": change}),
        ("PostToolUse", known | {"postToolUse": command | {"result": "a", "executionTimeMs": "12", "success": True}}),
        ("TaskStart", known | {"taskStart": {"task": "do things"}}),
        ("UserPromptSubmit", known | {"userPromptSubmit": {"prompt": "x", "attachments": []}}),
    ]


PAYLOADS = {
    "claude-code": claude_payloads,
    "codex": codex_payloads,
    "cursor": cursor_payloads,
    "cline": cline_payloads,
}


def _targets_of(agent: str) -> tuple[type[Target], type[Target]]:
    title = load_agent(agent).title
    transcript = {"name": f"transcript-{agent}", "agent": agent, "__doc__": f"The transcripts of {title}."}
    hook = {"name": f"hook-{agent}", "agent": agent, "__doc__": f"The payloads of hooks of {title}."}
    return type("Transcript", (TranscriptTarget,), transcript), type("HookPayload", (HookTarget,), hook)


TARGETS: tuple[type[Target], ...] = tuple(target for agent in AGENTS for target in _targets_of(agent))

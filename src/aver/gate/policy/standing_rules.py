"""Commands and tools that a person allows for good: readable rules in `AVER_HOME/allowed.cedar`.

    @id("allow-npm-ci-5d0a2f1c")
    @reason("allowed for good by person:ada: npm ci")
    @allow("npm ci")
    permit (principal, action, resource)
    when { context.command == "npm ci" && context.workspace == "/home/ada/shop" }
    unless { context.labels.contains("secret") };

The annotation `@allow` makes such a permit stand for a person's approval (`aver.gate.policy.query`): it holds against
every `forbid` that an approval undoes, and against no other. The rules of this file are added to those in force. They
are sealed with each decision like all rules, so a decision can be made again.

A rule compares the whole command. `shape_command` brings a plain command into one form: words without any character
that a shell reads, separated by one blank. Every other command (quotes, pipes, redirections, variables, patterns,
several lines) is compared as it is written, to the character. `find_command` returns none for a call that asks for more
than the command: another directory, an environment, more rights.

    >>> shape_command("npm   ci ")
    'npm ci'
    >>> shape_command("npm ci  | tee log")
    'npm ci  | tee log'

A session that has seen a secret is asked all the same: the rule says so, and a person can edit it. So is one that would
run code which it changed unseen: the person allowed a command, and has not seen that code.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from aver.capsule.masking.mask import mask
from aver.errors import BadInput, NotFound, Unavailable
from aver.fast_dataclass import dataclass
from aver.files.atomic import replace_file
from aver.files.locks import lock, open_lock_file
from aver.gate.action import Action, Facts
from aver.gate.effects.arguments import HARMLESS_ARGUMENTS, normalise_name, quote_words
from aver.gate.effects.intents import find_intent
from aver.gate.effects.known_agents import KnownAgents
from aver.gate.policy.bundle import ALLOWED_FILE, build_policy_bundle, read_policy_file
from aver.lazy_pattern import lazy_pattern
from aver.text import escape_invisible

COMMAND_MAX = 4096
"""Characters of a command that can be allowed for good. A person must be able to read the rule."""

LOCK_SECONDS = 10.0

_HEADER = """\
// Commands and tools that a person allowed for good. `aver policy allow` adds rules, `aver policy forget` removes them.
// A permit with @allow stands for a person's approval: it does not undo what no approval undoes.
"""

_PLAIN_WORD = r"[A-Za-z0-9_@%+:,./-][A-Za-z0-9_@%+=:,./-]*"
_PLAIN_COMMAND = lazy_pattern(rf"(?![A-Za-z_0-9]*\+?=){_PLAIN_WORD}(?:[ \t]+{_PLAIN_WORD})*")
"""Words of characters that no shell reads. The first word is no assignment."""

_GUARDED = ' || context.effects.contains("secret") || (resource is Aver::Path && !resource.classes.isEmpty())'
"""A part of a condition: the action has to do with a secret, or with a guarded file."""

_NOT_IN_ID = re.compile(r"[^a-z0-9]+")


def shape_command(command: str) -> str:
    """Return the one form of a command that rules compare."""
    text = command.strip(" \t\n")  # Not more: a shell takes other blanks for letters.
    return " ".join(text.split()) if _PLAIN_COMMAND.fullmatch(text) else text


def find_command(action: Action, facts: Facts, known: KnownAgents) -> str:
    """Return the form of the command that an action runs in its workspace; empty if it is, or may be, another call."""
    intent = find_intent(action)
    if intent is not None and intent.command:
        # No shell reads these words. Quoted as they are here, a shell would read the same.
        words = quote_words(action.arguments[intent.command]) or ""
        is_here = action.arguments.get(intent.directory) in ("", ".", action.workspace)
        return shape_command(words) if is_here and len(words) <= COMMAND_MAX else ""
    profile = known.find_profile(action.tool)
    if profile is None or not profile.takes_command or profile.takes_several or facts.annotations:
        return ""
    if action.files or action.diff is not None or action.type not in ("shell_exec", "command", "tool_call"):
        return ""
    command = action.arguments.get("command")
    others = {name: value for name, value in action.arguments.items() if name != "command" and value}
    if others.get("cwd") == action.workspace:
        del others["cwd"]
    if not isinstance(command, str) or len(command) > COMMAND_MAX:
        return ""
    if any(normalise_name(name) not in HARMLESS_ARGUMENTS for name in others):
        return ""
    return shape_command(command)


@dataclass(frozen=True, slots=True)
class StandingRule:
    """A rule that allows one command or one tool in one workspace for good."""

    id: str
    text: str
    about: str
    """The command or the tool, as the annotation `@allow` names it."""


def build_command_rule(command: str, workspace: str, by: str) -> StandingRule:
    """Build the rule that allows a command in a workspace. Raises BadInput for one that cannot be allowed for good."""
    shape = shape_command(command)
    if not shape or len(shape) > COMMAND_MAX:
        raise BadInput(f"a command of 1 to {COMMAND_MAX} characters can be allowed for good")
    return _build_rule(f"context.command == {_quote(shape)}", shape, workspace, by)


def build_tool_rule(tool: str, workspace: str, by: str, known: KnownAgents) -> StandingRule:
    """Build the rule that allows every call of a tool in a workspace. Raises BadInput for a tool that Aver knows."""
    if not tool or known.find_profile(tool) is not None or known.is_mcp_caller(tool):
        words = f"{tool!r} can do many things, so it cannot be allowed for good as a whole"
        raise BadInput(words, advice="allow a command: aver policy allow 'npm ci'")
    # Of a tool nobody knows what it will be given: not a secret, and nothing that is guarded.
    return _build_rule(f"context.tool == {_quote(tool)}", tool, workspace, by, _GUARDED)


def _build_rule(condition: str, about: str, workspace: str, by: str, but: str = "") -> StandingRule:
    if not os.path.isabs(workspace):
        raise BadInput("a rule needs the workspace that it is for: an absolute directory")
    # The rule is a plain file, and is sealed with every decision.
    if mask({"command": about}).count or mask(about).count:
        raise BadInput("this holds a secret, and a rule would show it", advice="put the secret into a file or variable")
    mark = hashlib.sha256(f"{about}\n{workspace}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    name = _NOT_IN_ID.sub("-", about.lower()).strip("-")[:40].strip("-")
    rule_id = "-".join(part for part in ("allow", name, mark) if part)
    shown = escape_invisible(" ".join(about.split()))
    reason = f"allowed for good by {by}: {shown if len(shown) <= 200 else shown[:199] + '…'}"
    text = (
        f"@id({_quote(rule_id)})\n@reason({_quote(reason)})\n@allow({_quote(about)})\n"
        "permit (principal, action, resource)\n"
        f"when {{ {condition} && context.workspace == {_quote(workspace)} }}\n"
        f'unless {{ context.labels.contains("secret"){but} }};\n'
    )
    build_policy_bundle({ALLOWED_FILE: text})  # Never write what could not be read: that would refuse everything.
    return StandingRule(rule_id, text, about)


def _quote(text: str) -> str:
    """Return a string of Cedar. Everything but printable ASCII is written by its code point."""
    parts = (f"\\{char}" if char in '"\\' else char if " " <= char <= "~" else f"\\u{{{ord(char):x}}}" for char in text)
    return f'"{"".join(parts)}"'


# --- the file


def add_rule(home: Path, rule: StandingRule) -> bool:
    """Write a rule into the file. Returns False if it is there already."""
    with _edit_file(home) as (path, text):
        if any(known.id == rule.id for known in _split(text)):
            return False
        changed = f"{text.rstrip()}\n\n{rule.text}" if text else f"{_HEADER}\n{rule.text}"
        build_policy_bundle({ALLOWED_FILE: changed})
        replace_file(path, changed.encode())
    return True


def remove_rule(home: Path, name: str, workspace: str) -> list[StandingRule]:
    """Remove the rule with this id, or all rules for this command or tool in a workspace. Returns those removed.

    Raises NotFound if there is none.
    """
    with _edit_file(home) as (path, text):
        found = [
            rule
            for rule in _split(text)
            if rule.id == name or (rule.about == shape_command(name) and _quote(workspace) in rule.text)
        ]
        if not found:
            raise NotFound(f"no rule of {path} allows {name!r} in {workspace}", advice="aver policy show lists them")
        changed = text
        for rule in found:
            changed = changed.replace(rule.text.strip(), "")
        changed = re.sub(r"\n{3,}", "\n\n", changed).rstrip() + "\n"
        if any(rule.id not in {gone.id for gone in found} for rule in _split(text)):
            build_policy_bundle({ALLOWED_FILE: changed})
            replace_file(path, changed.encode())
        else:
            path.unlink()  # A file without rules is no policy.
    return found


def _split(text: str) -> Iterator[StandingRule]:
    """Yield the rules in the text of the file."""
    from aver.gate.policy.rules import read_policy_rules, split_rules

    policies = read_policy_rules({ALLOWED_FILE: text}).policies if text else {}
    for statement in split_rules(text):
        about = policies.get(statement.id, {}).get("annotations", {}).get("allow") or ""
        yield StandingRule(statement.id, statement.text, about)


@contextmanager
def _edit_file(home: Path) -> Iterator[tuple[Path, str]]:
    """Give the file's path and its text now; empty if there is no file. No other command edits it meanwhile."""
    path = home / ALLOWED_FILE
    try:
        handle = open_lock_file(home / f"{ALLOWED_FILE}.lock")
    except OSError as error:
        raise Unavailable(f"cannot lock {path}: {error.strerror}") from error
    try:
        lock(handle, timeout=LOCK_SECONDS)
        yield path, read_policy_file(path) if os.path.lexists(path) else ""
    except BlockingIOError as error:
        raise Unavailable(f"another command is changing {path}", advice="try again") from error
    finally:
        os.close(handle)

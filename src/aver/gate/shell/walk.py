"""Walking through a script: what runs, where, with which input, and in which directories it may stand by then.

No command is run, so both ways of every branch are walked. A directory is followed through `cd`: after `cd a && b` it
is `a`; after `cd a; b` it may also be the one before, because `cd` may have failed. Where that becomes too much, the
directory is unknown, and so is every relative path from there on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from aver.gate.effects.paths import PathRoots
from aver.gate.shell.environment import is_secret_name, judge_assignment, judge_subscript
from aver.gate.shell.expand import (
    expand_to_text,
    expand_word,
    find_reliable_variables,
    list_word_scripts,
    list_word_variables,
)
from aver.gate.shell.invocation import Invocation, StandardInput
from aver.gate.shell.model import NESTING_MAX, Word
from aver.gate.shell.parser.cross_check import require_agreement
from aver.gate.shell.parser.grammar import ScriptReader
from aver.gate.shell.parser.syntax import (
    AndOr,
    Assignment,
    Branches,
    CommandNode,
    FunctionDefinition,
    Group,
    Loop,
    Pipeline,
    RawWord,
    Redirect,
    Script,
    SimpleCommand,
    TestCommand,
)
from aver.gate.shell.parser.words import UnreadableCommand
from aver.gate.shell.pipes import predict_output
from aver.gate.shell.programs.lookup import is_known_program, judge_invocation
from aver.gate.shell.report import EffectReport
from aver.gate.shell.state import ShellState, StatesAfter, merge_states

__all__ = ["ScriptWalk"]

_DESCRIPTOR = re.compile(r"[0-9]+-?|-")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]*)")
_INPUT_OPERATORS = frozenset(("<", "<<", "<<-", "<<<", "<>"))


class ScriptWalk:
    """A walk through one text. Scripts inside it that are texts of their own get walks of their own."""

    __slots__ = ("_calling", "_read", "_set_once", "functions", "ground", "report", "text")

    def __init__(self, text: str, ground: PathRoots, report: EffectReport) -> None:
        self.text = text
        self.ground = ground
        self.report = report
        self.functions: dict[str, CommandNode] = {}
        self._calling: set[str] = set()
        self._set_once: frozenset[str] | None = None
        self._read = Script(())

    def whole(self, state: ShellState, inside: tuple[str, ...] = (), feed: StandardInput | None = None) -> None:
        """Read the text and walk through it. What cannot be read is unclear, what the second parser sees too."""
        reader = ScriptReader(self.text)
        reader.words_read = self.report.words_read
        try:
            script = reader.whole()
        except UnreadableCommand as error:
            self.report.unclear(error.code, error.message)
            return
        finally:
            self.report.words_read = reader.words_read
        try:
            require_agreement(reader, self.report)
        except UnreadableCommand as error:
            self.report.unclear(error.code, error.message)
        self._read = script
        self._walk_script(script, state, inside, feed)

    # --- what handlers call

    def judge_words(self, words: tuple[Word, ...], call: Invocation) -> StatesAfter:
        """Words are a command. They have been expanded."""
        if not words:
            return call.state, call.state
        inherited = (call.state, call.walk, call.input, call.via, call.inside, call.assignments, call.redirects)
        call = Invocation("", words[1:], words[0], *inherited)
        if len(call.via) + len(call.inside) > NESTING_MAX:
            call.unclear("too-much", f"started through more than {NESTING_MAX} others")
            return call.state, call.state
        return judge_invocation(call)

    def judge_script(self, text: str, call: Invocation) -> None:
        """A text is a script of its own, such as that of `sh -c`."""
        ScriptWalk(text, self.ground, self.report).whole(
            ShellState(call.state.cwds), (*call.inside, *call.via), call.input
        )

    def judge_function_call(self, call: Invocation) -> StatesAfter:
        """A function of this script is called."""
        if call.program in self._calling:
            call.report_effect("process")
            call.unclear("too-much", f"the function {call.program} calls itself")
            return call.state, call.state
        self._calling.add(call.program)
        body = self.functions[call.program]
        inside = (*call.inside, *call.via, "function")
        outcome = self._walk_node(body, ShellState(call.state.cwds), inside, call.input)
        self._calling.discard(call.program)
        return outcome

    # --- lists

    def _walk_script(
        self, script: Script, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None = None
    ) -> StatesAfter:
        outcome: StatesAfter = (state, state)
        for index, item in enumerate(script.items):
            if index in script.background:
                self._walk_node(item, state, (*inside, "background"), feed)
                outcome = (state, state)
            else:
                outcome = self._walk_node(item, state, inside, feed)
            state = merge_states(*outcome) or state
        return outcome

    def _walk_node(
        self, node: CommandNode, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None = None
    ) -> StatesAfter:
        if len(inside) > NESTING_MAX:
            self.report.unclear("too-much", f"nested deeper than {NESTING_MAX} levels")
            return state, state
        match node:
            case SimpleCommand():
                return self._walk_simple_command(node, state, inside, feed)
            case Pipeline():
                return self._walk_pipeline(node, state, inside, feed)
            case AndOr():
                return self._walk_and_or(node, state, inside, feed)
            case Group():
                return self._walk_group(node, state, inside, feed)
            case Branches():
                return self._walk_branches(node, state, inside, feed)
            case Loop():
                return self._walk_loop(node, state, inside, feed)
            case FunctionDefinition():
                self.functions[node.name] = node.body
                self._calling.add(node.name)
                self._walk_node(node.body, ShellState(state.cwds), (*inside, "function"))
                self._calling.discard(node.name)
                return state, state
            case TestCommand():
                self._walk_test(node, state, inside)
                return state, state

    def _walk_test(self, node: TestCommand, state: ShellState, inside: tuple[str, ...]) -> None:
        call = Invocation("[[", (), Word("[["), state, self)
        for word in self._expand_words(node.words, state, inside):
            judge_subscript(call, word)
        for name in node.openings:
            if is_known_program(name):
                call.unclear("shell", f"a shell that does not know this test would run {name}")
        for raw in node.compared:
            for word in expand_word(raw, state, self.ground.home):
                for value in word.values:
                    call.report_guarded_path("write", value, word)
        self._judge_redirects(node.redirects, state, inside)

    def _walk_and_or(
        self, node: AndOr, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None
    ) -> StatesAfter:
        good, bad = self._walk_node(node.first, state, inside, feed)
        for operator, item in node.rest:
            begin = good if operator == "&&" else bad
            next_good, next_bad = self._walk_node(item, begin or state, inside, feed)
            if begin is None:
                continue
            if operator == "&&":
                good, bad = next_good, merge_states(bad, next_bad)
            else:
                good, bad = merge_states(good, next_good), next_bad
        return good, bad

    def _walk_pipeline(
        self, node: Pipeline, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None
    ) -> StatesAfter:
        inside = (*inside, "pipeline")
        after: ShellState | None = state
        for index, stage in enumerate(node.stages):
            outcome = self._walk_node(stage, state, inside, feed)
            if index + 1 < len(node.stages):
                feed = self._predict_stage_output(stage, state, feed)
            after = merge_states(*outcome)
        # Some shells run the last stage themselves, so that a `cd` in it stays.
        whole = merge_states(state, after)
        return whole, whole

    def _predict_stage_output(self, stage: CommandNode, state: ShellState, feed: StandardInput | None) -> StandardInput:
        if not isinstance(stage, SimpleCommand):
            return StandardInput("other")
        words = [word for raw in stage.words for word in expand_word(raw, state, self.ground.home)]
        return predict_output(words, self._find_input(stage.redirects, state) or feed)

    def _walk_group(
        self, node: Group, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None
    ) -> StatesAfter:
        feed = self._judge_redirects(node.redirects, state, inside) or feed
        if node.kind == "braces":
            return self._walk_script(node.body, state, (*inside, "braces"), feed)
        self._walk_script(node.body, state, (*inside, "subshell"), feed)
        return state, state

    def _walk_branches(
        self, node: Branches, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None
    ) -> StatesAfter:
        self._expand_words(node.words, state, inside)
        feed = self._judge_redirects(node.redirects, state, inside) or feed
        ends: list[ShellState | None] = []
        for condition in node.conditions:
            state = merge_states(*self._walk_script(condition, state, (*inside, "branch"), feed)) or state
        for body in node.bodies:
            ends.append(merge_states(*self._walk_script(body, state, (*inside, "branch"), feed)))
        whole: ShellState | None = state
        for end in ends:
            whole = merge_states(whole, end)
        return whole, whole

    def _walk_loop(
        self, node: Loop, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None
    ) -> StatesAfter:
        feed = self._judge_redirects(node.redirects, state, inside) or feed
        if node.variable:
            state = self._set_loop_variable(node, state, inside)
        inside = (*inside, "loop")
        end = self._walk_loop_round(node, state, inside, feed)
        if end is not None and end.cwds != state.cwds:
            # The next round begins where this one ended, and so on.
            end = self._walk_loop_round(node, replace(state, cwds=(None,)), inside, feed)
        whole = merge_states(state, end)
        return whole, whole

    def _walk_loop_round(
        self, node: Loop, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None
    ) -> ShellState | None:
        if node.condition is not None:
            state = merge_states(*self._walk_script(node.condition, state, inside, feed)) or state
        return merge_states(*self._walk_script(node.body, state, inside, feed))

    def _set_loop_variable(self, node: Loop, state: ShellState, inside: tuple[str, ...]) -> ShellState:
        words = self._expand_words(node.words, state, inside) if node.words is not None else [Word("$@")]
        known = all(word.is_known for word in words) and len(words) > 0
        values = tuple(dict.fromkeys(value for word in words for value in word.values)) if known else ()
        pattern = any(word.is_pattern for word in words)
        judge_assignment(Invocation("", (), Word("for"), state, self), node.variable, Word(f"${node.variable}", values))
        return self._set_variable(state, node.variable, Word(f"${node.variable}", values, is_pattern=pattern))

    # --- simple commands

    def _walk_simple_command(
        self, node: SimpleCommand, state: ShellState, inside: tuple[str, ...], feed: StandardInput | None
    ) -> StatesAfter:
        words = self._expand_words(node.words, state, inside)
        assigned = [(given.name, self._expand_assignment(given, state, inside)) for given in node.assignments]
        feed = self._judge_redirects(node.redirects, state, inside) or feed
        call = Invocation("", (), Word(""), state, self, feed, (), inside)
        call.assignments = tuple(f"{name}={value.shown}" for name, value in assigned)
        call.redirects = tuple(f"{r.descriptor}{r.operator}{r.target.source}" for r in node.redirects)
        for name, value in assigned:
            if name != "IFS" or not words or words[0].value != "read":  # `IFS= read -r line` is how lines are read
                judge_assignment(call, name, value)
                judge_subscript(call, value)
        if words:
            return self.judge_words(tuple(words), call)
        for name, value in assigned:
            state = self._set_variable(state, name, value)
        return state, state

    def _expand_assignment(self, given: Assignment, state: ShellState, inside: tuple[str, ...]) -> Word:
        words = self._expand_words((given.value,), state, inside)
        return words[0] if len(words) == 1 and given.is_whole else Word(given.value.source)

    def _expand_words(self, raws: Iterable[RawWord], state: ShellState, inside: tuple[str, ...]) -> list[Word]:
        """Words expanded; what runs in them is walked, what they reveal is noted."""
        words: list[Word] = []
        for raw in raws:
            if len(raw.parts) > 1 or raw.parts[0].kind != "text":
                self._walk_substitutions(raw, state, inside)
            words += expand_word(raw, state, self.ground.home)
        return words

    def _walk_substitutions(self, raw: RawWord, state: ShellState, inside: tuple[str, ...]) -> None:
        for script, is_process in list_word_scripts(raw):
            self._walk_script(script, state, (*inside, "substitution"), StandardInput("other") if is_process else None)
        for name in list_word_variables(raw):
            if is_secret_name(name):
                self.report.effect("secret", (f"${name}",), f"${name}")

    def _set_variable(self, state: ShellState, name: str, word: Word) -> ShellState:
        """The state in which a variable holds a word, if that can be relied on."""
        if self._set_once is None:
            self._set_once = find_reliable_variables(self._read, self.text)
        variables = dict(state.variables)
        variables.pop(name, None)
        if word.is_known and name in self._set_once:
            variables[name] = word
        return replace(state, variables=variables)

    # --- redirections

    def _judge_redirects(
        self, redirects: tuple[Redirect, ...], state: ShellState, inside: tuple[str, ...]
    ) -> StandardInput | None:
        """Judge redirections. Returns what the command will read, where one of them says so."""
        for redirect in redirects:
            for raw in (redirect.target, redirect.body):
                if raw is not None:
                    self._walk_substitutions(raw, state, inside)
            if redirect.operator not in ("<<", "<<-", "<<<"):
                for word in expand_word(redirect.target, state, self.ground.home):
                    self._judge_redirect(redirect, word, state)
        return self._find_input(redirects, state) if redirects else None

    def _judge_redirect(self, redirect: Redirect, word: Word, state: ShellState) -> None:
        operator = redirect.operator
        if operator in (">&", "<&") and word.value is not None and _DESCRIPTOR.fullmatch(word.value):
            return
        name = Word(f"{redirect.descriptor}{operator}")
        call = Invocation("the shell", (), name, state, self)
        if socket := _SOCKET.match(word.prefix):
            self.report.add_host("network", socket[1], call.quote_words(word))
            self.report.add_host("egress", socket[1], call.quote_words(word))
            return
        if operator in ("<", "<>"):
            call.report_path("read", word)
        if operator != "<":
            call.report_path("write", word)

    def _find_input(self, redirects: tuple[Redirect, ...], state: ShellState) -> StandardInput | None:
        found: StandardInput | None = None
        for redirect in redirects:
            if redirect.operator in _INPUT_OPERATORS and redirect.descriptor in ("", "0"):
                raw = redirect.body or redirect.target
                if redirect.operator in ("<", "<>"):
                    is_pipe = any(part.kind == "process" for part in raw.parts)
                    found = StandardInput("other" if is_pipe else "file", raw.source)
                else:
                    text = expand_to_text(raw, state, self.ground.home)
                    found = StandardInput("other") if text is None else StandardInput("text", text)
        return found

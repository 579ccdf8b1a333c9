"""Walking through a script: what runs, where, with which input, and in which directories it may stand by then.

No command is run, so both ways of every branch are walked. A directory is followed through `cd`: after `cd a && b` it
is `a`; after `cd a; b` it may also be the one before, because `cd` may have failed. Where that becomes too much, the
directory is unknown, and so is every relative path from there on.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from aver.gate.commands.call import Call, Input
from aver.gate.commands.environment import is_secret_name, looks_like_code, sets_variable
from aver.gate.commands.expand import expand, scripts_in, text_of, variables_in
from aver.gate.commands.flows import printed_by
from aver.gate.commands.judge import is_known, judge
from aver.gate.commands.lexer import Unreadable
from aver.gate.commands.model import NESTING_MAX, Word
from aver.gate.commands.reader import Reader
from aver.gate.commands.report import Report
from aver.gate.commands.second import agree
from aver.gate.commands.state import Outcome, State, merged
from aver.gate.commands.syntax import (
    AndOr,
    Assignment,
    Branches,
    Function,
    Group,
    Loop,
    Node,
    Pipeline,
    RawWord,
    Redirect,
    Script,
    SimpleCommand,
    TestCommand,
)
from aver.gate.commands.variables import set_once
from aver.gate.places import Ground

__all__ = ["Walk"]

_DESCRIPTOR = re.compile(r"[0-9]+-?|-")
_SOCKET = re.compile(r"/dev/(?:tcp|udp)/([^/]*)")
_READING = frozenset(("<", "<<", "<<-", "<<<", "<>"))


class Walk:
    """A walk through one text. Scripts inside it that are texts of their own get walks of their own."""

    __slots__ = ("_calling", "_read", "_set_once", "functions", "ground", "report", "text")

    def __init__(self, text: str, ground: Ground, report: Report) -> None:
        self.text = text
        self.ground = ground
        self.report = report
        self.functions: dict[str, Node] = {}
        self._calling: set[str] = set()
        self._set_once: frozenset[str] | None = None
        self._read = Script(())

    def whole(self, state: State, inside: tuple[str, ...] = (), feed: Input | None = None) -> None:
        """Read the text and walk through it. What cannot be read is unclear, what the second parser sees too."""
        reader = Reader(self.text)
        reader.words_read = self.report.words_read
        try:
            script = reader.whole()
        except Unreadable as error:
            self.report.unclear(error.code, error.message)
            return
        finally:
            self.report.words_read = reader.words_read
        try:
            agree(reader, self.report)
        except Unreadable as error:
            self.report.unclear(error.code, error.message)
        self._read = script
        self._script(script, state, inside, feed)

    # --- what handlers call

    def run_words(self, words: tuple[Word, ...], call: Call) -> Outcome:
        """Words are a command. They have been expanded."""
        if not words:
            return call.state, call.state
        inherited = (call.state, call.walk, call.input, call.via, call.inside, call.assignments, call.redirects)
        call = Call("", words[1:], words[0], *inherited)
        if len(call.via) + len(call.inside) > NESTING_MAX:
            call.unclear("too-much", f"started through more than {NESTING_MAX} others")
            return call.state, call.state
        return judge(call)

    def run_text(self, text: str, call: Call) -> None:
        """A text is a script of its own, such as that of `sh -c`."""
        Walk(text, self.ground, self.report).whole(State(call.state.cwds), (*call.inside, *call.via), call.input)

    def call_function(self, call: Call) -> Outcome:
        """A function of this script is called."""
        if call.program in self._calling:
            call.does("process")
            call.unclear("too-much", f"the function {call.program} calls itself")
            return call.state, call.state
        self._calling.add(call.program)
        body = self.functions[call.program]
        inside = (*call.inside, *call.via, "function")
        outcome = self._node(body, State(call.state.cwds), inside, call.input)
        self._calling.discard(call.program)
        return outcome

    # --- lists

    def _script(self, script: Script, state: State, inside: tuple[str, ...], feed: Input | None = None) -> Outcome:
        outcome: Outcome = (state, state)
        for index, item in enumerate(script.items):
            if index in script.background:
                self._node(item, state, (*inside, "background"), feed)
                outcome = (state, state)
            else:
                outcome = self._node(item, state, inside, feed)
            state = merged(*outcome) or state
        return outcome

    def _node(self, node: Node, state: State, inside: tuple[str, ...], feed: Input | None = None) -> Outcome:
        if len(inside) > NESTING_MAX:
            self.report.unclear("too-much", f"nested deeper than {NESTING_MAX} levels")
            return state, state
        match node:
            case SimpleCommand():
                return self._simple(node, state, inside, feed)
            case Pipeline():
                return self._pipeline(node, state, inside, feed)
            case AndOr():
                return self._and_or(node, state, inside, feed)
            case Group():
                return self._group(node, state, inside, feed)
            case Branches():
                return self._branches(node, state, inside, feed)
            case Loop():
                return self._loop(node, state, inside, feed)
            case Function():
                self.functions[node.name] = node.body
                self._calling.add(node.name)
                self._node(node.body, State(state.cwds), (*inside, "function"))
                self._calling.discard(node.name)
                return state, state
            case TestCommand():
                self._test(node, state, inside)
                return state, state

    def _test(self, node: TestCommand, state: State, inside: tuple[str, ...]) -> None:
        call = Call("[[", (), Word("[["), state, self)
        for word in self._work_out(node.words, state, inside):
            looks_like_code(call, word)
        for name in node.openings:
            if is_known(name):
                call.unclear("shell", f"a shell that does not know this test would run {name}")
        for raw in node.compared:
            for word in expand(raw, state, self.ground.home):
                for value in word.values:
                    call.touches_if_guarded("write", value, word)
        self._redirects(node.redirects, state, inside)

    def _and_or(self, node: AndOr, state: State, inside: tuple[str, ...], feed: Input | None) -> Outcome:
        good, bad = self._node(node.first, state, inside, feed)
        for operator, item in node.rest:
            begin = good if operator == "&&" else bad
            next_good, next_bad = self._node(item, begin or state, inside, feed)
            if begin is None:
                continue
            if operator == "&&":
                good, bad = next_good, merged(bad, next_bad)
            else:
                good, bad = merged(good, next_good), next_bad
        return good, bad

    def _pipeline(self, node: Pipeline, state: State, inside: tuple[str, ...], feed: Input | None) -> Outcome:
        inside = (*inside, "pipeline")
        after: State | None = state
        for index, stage in enumerate(node.stages):
            outcome = self._node(stage, state, inside, feed)
            if index + 1 < len(node.stages):
                feed = self._printed(stage, state, feed)
            after = merged(*outcome)
        # Some shells run the last stage themselves, so that a `cd` in it stays.
        whole = merged(state, after)
        return whole, whole

    def _printed(self, stage: Node, state: State, feed: Input | None) -> Input:
        if not isinstance(stage, SimpleCommand):
            return Input("other")
        words = [word for raw in stage.words for word in expand(raw, state, self.ground.home)]
        return printed_by(words, self._input_of(stage.redirects, state) or feed)

    def _group(self, node: Group, state: State, inside: tuple[str, ...], feed: Input | None) -> Outcome:
        feed = self._redirects(node.redirects, state, inside) or feed
        if node.kind == "braces":
            return self._script(node.body, state, (*inside, "braces"), feed)
        self._script(node.body, state, (*inside, "subshell"), feed)
        return state, state

    def _branches(self, node: Branches, state: State, inside: tuple[str, ...], feed: Input | None) -> Outcome:
        self._work_out(node.words, state, inside)
        feed = self._redirects(node.redirects, state, inside) or feed
        ends: list[State | None] = []
        for condition in node.conditions:
            state = merged(*self._script(condition, state, (*inside, "branch"), feed)) or state
        for body in node.bodies:
            ends.append(merged(*self._script(body, state, (*inside, "branch"), feed)))
        whole: State | None = state
        for end in ends:
            whole = merged(whole, end)
        return whole, whole

    def _loop(self, node: Loop, state: State, inside: tuple[str, ...], feed: Input | None) -> Outcome:
        feed = self._redirects(node.redirects, state, inside) or feed
        if node.variable:
            state = self._with_loop_variable(node, state, inside)
        inside = (*inside, "loop")
        end = self._round(node, state, inside, feed)
        if end is not None and end.cwds != state.cwds:
            # The next round begins where this one ended, and so on.
            end = self._round(node, replace(state, cwds=(None,)), inside, feed)
        whole = merged(state, end)
        return whole, whole

    def _round(self, node: Loop, state: State, inside: tuple[str, ...], feed: Input | None) -> State | None:
        if node.condition is not None:
            state = merged(*self._script(node.condition, state, inside, feed)) or state
        return merged(*self._script(node.body, state, inside, feed))

    def _with_loop_variable(self, node: Loop, state: State, inside: tuple[str, ...]) -> State:
        words = self._work_out(node.words, state, inside) if node.words is not None else [Word("$@")]
        known = all(word.is_known for word in words) and len(words) > 0
        values = tuple(dict.fromkeys(value for word in words for value in word.values)) if known else ()
        pattern = any(word.is_pattern for word in words)
        sets_variable(Call("", (), Word("for"), state, self), node.variable, Word(f"${node.variable}", values))
        return self._with(state, node.variable, Word(f"${node.variable}", values, is_pattern=pattern))

    # --- simple commands

    def _simple(self, node: SimpleCommand, state: State, inside: tuple[str, ...], feed: Input | None) -> Outcome:
        words = self._work_out(node.words, state, inside)
        assigned = [(given.name, self._assigned(given, state, inside)) for given in node.assignments]
        feed = self._redirects(node.redirects, state, inside) or feed
        call = Call("", (), Word(""), state, self, feed, (), inside)
        call.assignments = tuple(f"{name}={value.shown}" for name, value in assigned)
        call.redirects = tuple(f"{r.descriptor}{r.operator}{r.target.source}" for r in node.redirects)
        for name, value in assigned:
            if name != "IFS" or not words or words[0].value != "read":  # `IFS= read -r line` is how lines are read
                sets_variable(call, name, value)
                looks_like_code(call, value)
        if words:
            return self.run_words(tuple(words), call)
        for name, value in assigned:
            state = self._with(state, name, value)
        return state, state

    def _assigned(self, given: Assignment, state: State, inside: tuple[str, ...]) -> Word:
        words = self._work_out((given.value,), state, inside)
        return words[0] if len(words) == 1 and given.is_whole else Word(given.value.source)

    def _work_out(self, raws: Iterable[RawWord], state: State, inside: tuple[str, ...]) -> list[Word]:
        """Words expanded; what runs in them is walked, what they reveal is noted."""
        words: list[Word] = []
        for raw in raws:
            if len(raw.parts) > 1 or raw.parts[0].kind != "text":
                self._look_into(raw, state, inside)
            words += expand(raw, state, self.ground.home)
        return words

    def _look_into(self, raw: RawWord, state: State, inside: tuple[str, ...]) -> None:
        for script, is_process in scripts_in(raw):
            self._script(script, state, (*inside, "substitution"), Input("other") if is_process else None)
        for name in variables_in(raw):
            if is_secret_name(name):
                self.report.effect("secret", (f"${name}",), f"${name}")

    def _with(self, state: State, name: str, word: Word) -> State:
        """The state in which a variable holds a word, if that can be relied on."""
        if self._set_once is None:
            self._set_once = set_once(self._read, self.text)
        variables = dict(state.variables)
        variables.pop(name, None)
        if word.is_known and name in self._set_once:
            variables[name] = word
        return replace(state, variables=variables)

    # --- redirections

    def _redirects(self, redirects: tuple[Redirect, ...], state: State, inside: tuple[str, ...]) -> Input | None:
        """Judge redirections. Returns what the command will read, where one of them says so."""
        for redirect in redirects:
            for raw in (redirect.target, redirect.body):
                if raw is not None:
                    self._look_into(raw, state, inside)
            if redirect.operator not in ("<<", "<<-", "<<<"):
                for word in expand(redirect.target, state, self.ground.home):
                    self._redirect(redirect, word, state)
        return self._input_of(redirects, state) if redirects else None

    def _redirect(self, redirect: Redirect, word: Word, state: State) -> None:
        operator = redirect.operator
        if operator in (">&", "<&") and word.value is not None and _DESCRIPTOR.fullmatch(word.value):
            return
        name = Word(f"{redirect.descriptor}{operator}")
        call = Call("the shell", (), name, state, self)
        if socket := _SOCKET.match(word.prefix):
            self.report.host("network", socket[1], call.cited(word))
            self.report.host("egress", socket[1], call.cited(word))
            return
        if operator in ("<", "<>"):
            call.touches("read", word)
        if operator != "<":
            call.touches("write", word)

    def _input_of(self, redirects: tuple[Redirect, ...], state: State) -> Input | None:
        found: Input | None = None
        for redirect in redirects:
            if redirect.operator in _READING and redirect.descriptor in ("", "0"):
                raw = redirect.body or redirect.target
                if redirect.operator in ("<", "<>"):
                    is_pipe = any(part.kind == "process" for part in raw.parts)
                    found = Input("other" if is_pipe else "file", raw.source)
                else:
                    text = text_of(raw, state, self.ground.home)
                    found = Input("other") if text is None else Input("text", text)
        return found

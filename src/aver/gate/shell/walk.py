"""The walk through a script: which programs run, in which directory, and with which standard input.

Aver runs no command, so it cannot know which branch a script takes. It walks both. It follows the directory through
`cd`: in `cd a && b`, `b` runs in `a`. In `cd a; b`, `b` may also run in the old directory, because `cd` may fail. If
there are too many possible directories, the directory is unknown, and so is every relative path after it.

The state travels through the walk as a value, never as an attribute. A walk method takes the state before a node, and
returns two states: one after success, one after failure. A subshell, a pipeline stage or a background job gets the
state, and its own changes to it are dropped.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from aver.gate.effects.file_writes import WRITES_MAX, WRITING_PROGRAMS, find_file_writes
from aver.gate.effects.paths import PathRoots
from aver.gate.shell.arithmetic import find_risky_arithmetic
from aver.gate.shell.environment import (
    is_secret_name,
    judge_assignment,
    judge_indirect_assignments,
    judge_subscript,
)
from aver.gate.shell.expand import expand_to_text, expand_word, list_word_scripts
from aver.gate.shell.invocation import Invocation, StandardInput, predict_output
from aver.gate.shell.model import (
    NESTING_MAX,
    SHORT_TEXT_MAX,
    CommandReport,
    ShellState,
    StatesAfter,
    Word,
    merge_states,
)
from aver.gate.shell.parser.cross_check import require_agreement
from aver.gate.shell.parser.grammar import ScriptReader
from aver.gate.shell.parser.syntax import (
    AndOr,
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
from aver.gate.shell.programs.apply import is_known_program, judge_invocation
from aver.gate.shell.reliable_names import find_reliable_variables, find_sure_functions
from aver.lazy_pattern import lazy_pattern

_DESCRIPTOR = lazy_pattern(r"[0-9]+-?|-")
_SOCKET = lazy_pattern(r"/dev/(?:tcp|udp)/([^/]*)")
_INPUT_OPERATORS = frozenset(("<", "<<", "<<-", "<<<", "<>"))


class ScriptWalk:
    """A walk through one script text. The text of `sh -c`, `eval` and similar gets a walk of its own.

    All walks of one command share one report. Functions and variables belong to one walk.
    """

    __slots__ = ("_active_functions", "_reliable", "_script", "_sure", "functions", "path_roots", "report", "text")

    def __init__(self, text: str, path_roots: PathRoots, report: CommandReport) -> None:
        self.text = text
        self.path_roots = path_roots
        self.report = report
        self.functions: dict[str, CommandNode] = {}
        """Functions that the script has defined so far, by name."""
        self._active_functions: set[str] = set()
        """Functions whose body is being walked. A call to one of them is recursion."""
        self._reliable: frozenset[str] | None = None
        """Variables whose value Aver may rely on; None until the first assignment asks for them."""
        self._script = Script(())
        self._sure: frozenset[str] | None = None
        """Functions that are surely defined from their definition on; None until the first call asks for them."""

    def walk_text(self, state: ShellState, inside: tuple[str, ...] = (), stdin: StandardInput | None = None) -> None:
        """Read the text and walk through it. A text that one of the two parsers cannot read is reported as unclear."""
        reader = ScriptReader(self.text)
        # The limit on words counts all scripts of the command together.
        reader.words_read = self.report.words_read
        try:
            script = reader.read_script()
        except UnreadableCommand as error:
            self.report.add_unclear(error.code, error.message)
            return
        finally:
            self.report.words_read = reader.words_read
        # The parsers may disagree. The walk goes on nevertheless, so that the report still lists the effects it can
        # see.
        try:
            require_agreement(reader, self.report)
        except UnreadableCommand as error:
            self.report.add_unclear(error.code, error.message)
        if (word := find_risky_arithmetic(script, self.text)) is not None:
            why = f"the shell computes with {word[:80]}, and would run a command in a subscript of its value"
            self.report.add_unclear("dynamic-code", why, (word[:SHORT_TEXT_MAX],))
        self._script = script
        judge_indirect_assignments(Invocation("", (), Word(""), state, self, stdin, (), inside), self.text)
        self._walk_script(script, state, inside, stdin)

    # --- called by handlers of programs

    def judge_words(self, words: tuple[Word, ...], call: Invocation) -> StatesAfter:
        """Judge expanded words as a command that runs in the same place as `call`."""
        if not words:
            return call.state, call.state
        # The new call has another program, but the same place.
        inherited = (call.state, call.walk, call.stdin, call.via, call.inside, call.assignments, call.redirects)
        call = Invocation("", words[1:], words[0], *inherited, call.environment)
        if len(call.via) + len(call.inside) > NESTING_MAX:
            call.report_unclear("too-much", f"started through more than {NESTING_MAX} others")
            return call.state, call.state
        return judge_invocation(call)

    def judge_script(self, text: str, call: Invocation) -> None:
        """Judge a text as a script of its own, as for `sh -c`. It inherits the directory, but no variables."""
        ScriptWalk(text, self.path_roots, self.report).walk_text(
            ShellState(call.state.cwds, exported=call.state.exported | call.environment),
            (*call.inside, *call.via),
            call.stdin,
        )

    def is_surely_function(self, name: str) -> bool:
        """Whether a name runs a function wherever `functions` has it. In a branch or a subshell it may not."""
        if self._sure is None:
            self._sure = find_sure_functions(self._script)
        return name in self._sure

    def judge_function_call(self, call: Invocation) -> StatesAfter:
        """Judge a call of a function of this script by walking its body in the caller's directory."""
        if call.program in self._active_functions:
            call.report_effect("process")
            call.report_unclear("too-much", f"the function {call.program} calls itself")
            return call.state, call.state
        self._active_functions.add(call.program)
        # A function's arguments are unknown, so its body is walked without the caller's variables.
        body = self.functions[call.program]
        inside = (*call.inside, *call.via, "function")
        state = ShellState(call.state.cwds, exported=call.state.exported | call.environment)
        outcome = self._walk_node(body, state, inside, call.stdin)
        self._active_functions.discard(call.program)
        return outcome

    # --- lists

    def _walk_script(
        self, script: Script, state: ShellState, inside: tuple[str, ...], stdin: StandardInput | None = None
    ) -> StatesAfter:
        outcome: StatesAfter = (state, state)
        for index, item in enumerate(script.items):
            if index in script.background:
                # A background job runs in a subshell: its `cd` does not change the state here.
                self._walk_node(item, state, (*inside, "background"), stdin)
                outcome = (state, state)
            else:
                outcome = self._walk_node(item, state, inside, stdin)
            # After `;` the next command runs in either case. After `exit` neither state exists; walk on all the same.
            state = merge_states(*outcome) or state
        return outcome

    def _walk_node(
        self, node: CommandNode, state: ShellState, inside: tuple[str, ...], stdin: StandardInput | None = None
    ) -> StatesAfter:
        # The parser limits the nesting of one script. This limit holds through `sh -c` and functions as well.
        if len(inside) > NESTING_MAX:
            self.report.add_unclear("too-much", f"nested deeper than {NESTING_MAX} levels")
            return state, state
        match node:
            case SimpleCommand():
                return self._walk_simple_command(node, state, inside, stdin)
            case Pipeline():
                return self._walk_pipeline(node, state, inside, stdin)
            case AndOr():
                good, bad = self._walk_node(node.first, state, inside, stdin)
                for operator, item in node.rest:
                    begin = good if operator == "&&" else bad
                    # An item that is never reached (`exit && b`) is walked for its effects, but its states do not
                    # count.
                    next_good, next_bad = self._walk_node(item, begin or state, inside, stdin)
                    if begin is None:
                        continue
                    if operator == "&&":
                        good, bad = next_good, merge_states(bad, next_bad)
                    else:
                        good, bad = merge_states(good, next_good), next_bad
                return good, bad
            case Group():
                stdin = self._judge_redirects(node.redirects, state, inside) or stdin
                self._note_writes(node.redirects, None, state, stdin)
                if node.kind == "braces":
                    return self._walk_script(node.body, state, (*inside, "braces"), stdin)
                self._walk_script(node.body, state, (*inside, "subshell"), stdin)
                return state, state
            case Branches():
                return self._walk_branches(node, state, inside, stdin)
            case Loop():
                return self._walk_loop(node, state, inside, stdin)
            case FunctionDefinition():
                # Aver predicts what known programs print (`echo x | sh`), and a function of that name prints anything.
                if is_known_program(node.name):
                    why = f"{node.name} means something else from here on"
                    self.report.add_unclear("shell", why, (node.name,))
                # Walk the body at its definition too, so that a function without a call hides nothing.
                self.functions[node.name] = node.body
                self._active_functions.add(node.name)
                self._walk_node(node.body, ShellState(state.cwds, exported=state.exported), (*inside, "function"))
                self._active_functions.discard(node.name)
                return state, state
            case TestCommand():
                self._walk_test(node, state, inside)
                return state, state

    def _walk_test(self, node: TestCommand, state: ShellState, inside: tuple[str, ...]) -> None:
        # The test itself does nothing. Its substitutions count, and the way in which other shells read it.
        call = Invocation("[[", (), Word("[["), state, self)
        for word in self._expand_words(node.words, state, inside):
            judge_subscript(call, word)
        # A shell without `[[` would run a name after `&&` or `(`, and would write to a file after `>`.
        for name in node.openings:
            if is_known_program(name):
                call.report_unclear("shell", f"a shell that does not know this test would run {name}")
        for raw in node.compared:
            for word in expand_word(raw, state, self.path_roots.home):
                for value in word.values:
                    call.report_guarded_path("write", value, word)
        self._judge_redirects(node.redirects, state, inside)

    def _walk_pipeline(
        self, node: Pipeline, state: ShellState, inside: tuple[str, ...], stdin: StandardInput | None
    ) -> StatesAfter:
        inside = (*inside, "pipeline")
        after: ShellState | None = state
        for index, stage in enumerate(node.stages):
            # Every stage starts from the state before the pipeline, because it runs in a subshell.
            outcome = self._walk_node(stage, state, inside, stdin)
            if index + 1 < len(node.stages):
                # The output of this stage is the input of the next one.
                if isinstance(stage, SimpleCommand):
                    words = [word for raw in stage.words for word in expand_word(raw, state, self.path_roots.home)]
                    stdin = predict_output(words, self._find_input(stage.redirects, state) or stdin)
                else:
                    stdin = StandardInput("other")
            after = merge_states(*outcome)
        # Some shells run the last stage without a subshell, so its `cd` may count.
        whole = merge_states(state, after)
        return whole, whole

    def _walk_branches(
        self, node: Branches, state: ShellState, inside: tuple[str, ...], stdin: StandardInput | None
    ) -> StatesAfter:
        self._expand_words(node.words, state, inside)
        stdin = self._judge_redirects(node.redirects, state, inside) or stdin
        self._note_writes(node.redirects, None, state, stdin)
        inside = (*inside, "branch")
        # Conditions run one after the other. Each body may follow, and so may none of them.
        for condition in node.conditions:
            state = merge_states(*self._walk_script(condition, state, inside, stdin)) or state
        whole: ShellState | None = state
        for body in node.bodies:
            whole = merge_states(whole, merge_states(*self._walk_script(body, state, inside, stdin)))
        return whole, whole

    def _walk_loop(
        self, node: Loop, state: ShellState, inside: tuple[str, ...], stdin: StandardInput | None
    ) -> StatesAfter:
        stdin = self._judge_redirects(node.redirects, state, inside) or stdin
        self._note_writes(node.redirects, None, state, stdin)
        if node.variable:
            words = self._expand_words(node.words, state, inside) if node.words is not None else [Word("$@")]
            # One unknown word makes the variable unknown.
            known = all(word.is_known for word in words) and len(words) > 0
            values = tuple(dict.fromkeys(value for word in words for value in word.values)) if known else ()
            pattern = any(word.is_pattern for word in words)
            judge_assignment(
                Invocation("", (), Word("for"), state, self), node.variable, Word(f"${node.variable}", values)
            )
            listing: tuple[str, ...] = ()
            if not known and all(word.is_known or word.listing for word in words):
                listing = tuple(dict.fromkeys(path for word in words for path in (*word.values, *word.listing)))
            value = Word(f"${node.variable}", values, is_pattern=pattern, listing=listing)
            state = self._set_variable(state, node.variable, value)
        inside = (*inside, "loop")
        end: ShellState | None = None
        # If a round changes directory, the next one starts where it ended. Aver then walks a second time with an
        # unknown directory, instead of following every round.
        for begin in (state, replace(state, cwds=(None,))):
            if node.condition is not None:
                begin = merge_states(*self._walk_script(node.condition, begin, inside, stdin)) or begin
            end = merge_states(*self._walk_script(node.body, begin, inside, stdin))
            if end is None or end.cwds == state.cwds:
                break
        whole = merge_states(state, end)
        return whole, whole

    # --- simple commands

    def _walk_simple_command(
        self, node: SimpleCommand, state: ShellState, inside: tuple[str, ...], stdin: StandardInput | None
    ) -> StatesAfter:
        words = self._expand_words(node.words, state, inside)
        assigned: list[tuple[str, Word]] = []
        for given in node.assignments:
            # An array, or an addition with `+=`, has no value that Aver knows.
            values = self._expand_words((given.value,), state, inside)
            whole = len(values) == 1 and given.is_whole
            assigned.append((given.name, values[0] if whole else Word(given.value.source)))
        stdin = self._judge_redirects(node.redirects, state, inside) or stdin
        call = Invocation("", (), Word(""), state, self, stdin, (), inside)
        # A finding quotes assignments and redirections as written.
        call.assignments = tuple(f"{name}={value.short_text}" for name, value in assigned)
        call.redirects = tuple(f"{r.descriptor}{r.operator}{r.target.source}" for r in node.redirects)
        if node.redirects or (words and words[0].value in WRITING_PROGRAMS):
            self._note_writes(node.redirects, words, state, stdin)
        doubtful: set[str] = set()
        for name, value in assigned:
            if name != "IFS" or not words or words[0].value != "read":  # `IFS= read -r line` is ordinary
                if not judge_assignment(call, name, value):
                    doubtful.add(name)
                judge_subscript(call, value)
        if words:
            call.environment = frozenset(doubtful)
            call.name, call.words = words[0], tuple(words[1:])
            return judge_invocation(call)
        # Without a program, assignments change the shell itself. Before a program they hold for that program alone.
        for name, value in assigned:
            state = self._set_variable(state, name, value)
        return state, state

    def _note_writes(
        self,
        redirects: tuple[Redirect, ...],
        words: list[Word] | None,
        state: ShellState,
        stdin: StandardInput | None,
    ) -> None:
        """Note the writes whose text is shown, so that they can be judged like an edit.

        `words` are those of a simple command; None for a group or a loop, of which the text is not known.
        """
        outputs = [
            (redirect.operator, redirect.descriptor, word)
            for redirect in redirects
            if ">" in redirect.operator
            for word in expand_word(redirect.target, state, self.path_roots.home)
            if redirect.operator != ">&" or word.value is None or not _DESCRIPTOR.fullmatch(word.value)
        ]
        self.report.noted += len(outputs)
        if len(self.report.writes) <= WRITES_MAX:  # One more than are followed: then none counts as shown.
            self.report.writes += find_file_writes(words, outputs, stdin, state, self.path_roots)

    def _expand_words(self, raws: Iterable[RawWord], state: ShellState, inside: tuple[str, ...]) -> list[Word]:
        """Expand words. Also walk the substitutions in them, and report secret variables that they use."""
        words: list[Word] = []
        for raw in raws:
            if len(raw.parts) > 1 or raw.parts[0].kind != "text":  # a literal word has nothing to walk
                self._walk_substitutions(raw, state, inside)
            words += expand_word(raw, state, self.path_roots.home)
        return words

    def _walk_substitutions(self, raw: RawWord, state: ShellState, inside: tuple[str, ...]) -> None:
        for script, is_process in list_word_scripts(raw):
            self._walk_script(script, state, (*inside, "substitution"), StandardInput("other") if is_process else None)
        for part in raw.parts:
            if part.kind in ("variable", "unknown") and part.text and is_secret_name(part.text):
                self.report.add_effect("secret", (f"${part.text}",), f"${part.text}")

    def _set_variable(self, state: ShellState, name: str, word: Word) -> ShellState:
        """Return the state after an assignment. An unreliable variable becomes unknown."""
        # Found at the first assignment: most scripts have none, and the search walks the whole script.
        if self._reliable is None:
            self._reliable = find_reliable_variables(self._script, self.text)
        variables = dict(state.variables)
        variables.pop(name, None)
        if (word.is_known or word.listing) and name in self._reliable:
            variables[name] = word
        return replace(state, variables=variables)

    # --- redirections

    def _judge_redirects(
        self, redirects: tuple[Redirect, ...], state: ShellState, inside: tuple[str, ...]
    ) -> StandardInput | None:
        """Judge redirections. Returns the standard input that they set, or None."""
        for redirect in redirects:
            for raw in (redirect.target, redirect.body):
                if raw is not None:
                    self._walk_substitutions(raw, state, inside)
            operator = redirect.operator
            if operator in ("<<", "<<-", "<<<"):
                continue  # these have a text, not a file
            call = Invocation("the shell", (), Word(f"{redirect.descriptor}{operator}"), state, self)
            for word in expand_word(redirect.target, state, self.path_roots.home):
                if operator in (">&", "<&") and word.value is not None and _DESCRIPTOR.fullmatch(word.value):
                    continue  # `2>&1` copies a descriptor
                # bash opens a connection for `/dev/tcp/HOST/PORT`.
                if socket := _SOCKET.match(word.prefix):
                    self.report.add_host("network", socket[1], call.quote_words(word))
                    self.report.add_host("egress", socket[1], call.quote_words(word))
                    continue
                if operator in ("<", "<>"):
                    call.report_path("read", word)
                if operator != "<":
                    self.report.redirected += 1
                    call.report_path("write", word)
        return self._find_input(redirects, state) if redirects else None

    def _find_input(self, redirects: tuple[Redirect, ...], state: ShellState) -> StandardInput | None:
        found: StandardInput | None = None
        for redirect in redirects:  # the last one wins
            if redirect.operator in _INPUT_OPERATORS and redirect.descriptor in ("", "0"):
                raw = redirect.body or redirect.target
                if redirect.operator in ("<", "<>"):
                    is_pipe = any(part.kind == "process" for part in raw.parts)
                    found = StandardInput("other" if is_pipe else "file", raw.source)
                else:
                    text = expand_to_text(raw, state, self.path_roots.home)
                    found = StandardInput("other") if text is None else StandardInput("text", text)
        return found

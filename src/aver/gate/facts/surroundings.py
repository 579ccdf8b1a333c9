"""Gathers what the gate knows besides the action: the session's past, and what the disk shows.

The gate decides by an action and by facts, and reads nothing itself. This module reads for it:

    links      where paths of the action lead by symbolic links; for a pattern, the most sensitive file that it matches
    absent     which files that the action writes are not there yet
    written    the change that a command makes, where the command shows all of it
    code       what the code does that the action would run: scripts, and files that were changed unseen

`gather_facts` is for a decision that is sealed. `look_around` does the same for any past: `aver policy explain` uses
it, to say what a hook would decide. `gather_disk_facts` is the part of it that comes after the effects were found.
Aver reads plain files of the workspace that are not guarded, and no others.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from pathlib import Path
from typing import Any

from aver import clock, log
from aver.fast_dataclass import NamedTuple
from aver.files.regular import NotRegularFile, open_regular
from aver.gate.action import Action, Facts
from aver.gate.decide import Gate
from aver.gate.decision_record import decision_chain
from aver.gate.effects.effects import Effects, find_effects
from aver.gate.effects.file_writes import TEXT_MAX
from aver.gate.effects.paths import (
    POLICY_ENV,
    TREE_ENV,
    WORKSPACE_ENV,
    PathRoots,
    build_path_roots,
    has_glob,
    locate_path,
)
from aver.gate.effects.shown_changes import FileState, gather_change_facts, mark_creations
from aver.gate.effects.workspace_code import (
    ABSENT,
    CODE_SIZE_MAX,
    CODE_TOTAL_MAX,
    CodeQuestion,
    CodeSurroundings,
    list_code,
    look_into,
    refuse_look,
)
from aver.gate.facts.session import load_session_facts
from aver.gate.own_tools import find_declaration
from aver.ledger import Head, Ledger

GLOB_MATCHES_MAX = 5000
GLOB_LEVELS_MAX = 3
"""A pattern is expanded up to so many matches, and with so many directories in it that are patterns themselves."""

LISTED_MAX = 5000
"""Entries of directories that are looked at for guarded files that a listing may show."""

_UNLISTED_DIRECTORIES = frozenset((".git", "node_modules", ".venv", "venv", "__pycache__", ".tox", "target"))
"""Directories of packages, of git and of build output: they are large, and their secrets are nobody's own."""

_ENVIRONMENT_NAMES = ("HOME", "AVER_HOME", "AVER_LEDGER")


class KnownFacts(NamedTuple):
    """The facts about an action, and its effects, if they were found on the way."""

    facts: Facts
    effects: Effects | None


def gather_facts(
    ledger: Ledger,
    action: Action,
    gate: Gate,
    annotations: Mapping[str, Any],
    *,
    head: Head | None = None,
    meaning: Mapping[str, Any] | None = None,
) -> KnownFacts:
    """Gather what the gate knows besides the action. The session's past is read up to `head`, or up to now."""
    past = load_session_facts(ledger, head or ledger.head(decision_chain(action.session)), action, clock.now())
    past = replace(past, annotations=annotations) if annotations else past
    past = replace(past, meaning=meaning) if meaning else past
    return look_around(past, action, gate, ledger.config.home)


def look_around(past: Facts, action: Action, gate: Gate, home: Path) -> KnownFacts:
    """Return the facts of a session's past, with what the settings and the disk say. `home` is `AVER_HOME`."""
    environment = {name: os.environ[name] for name in _ENVIRONMENT_NAMES if os.environ.get(name)}
    environment["AVER_HOME"] = str(home)
    if gate.rules_at:
        environment[POLICY_ENV] = gate.rules_at
    declared = find_declaration(gate.tools, action.tool, gate.known)
    facts = replace(past, declared=declared, environment=environment)
    if not os.path.isabs(action.workspace):  # No path of it can be followed.
        return KnownFacts(facts, None)
    environment.update(find_workspace_names(action.workspace))
    links: dict[str, str] = {}
    roots = build_path_roots(action.workspace, environment, gate.known)

    def follow(targets: Iterable[str], listed: Collection[str]) -> Mapping[str, str]:
        """Return those of the paths that lead elsewhere by symbolic links, and where they lead."""
        for target in targets:
            if not os.path.isabs(target):
                continue
            try:
                leads_to = _resolve_glob(target, roots) if has_glob(target) else _resolve_path(target, roots.workspace)
                if target in listed and leads_to is None:
                    leads_to = _resolve_listing(target, roots)
            except ValueError:  # No system has a file of this name.
                continue
            if leads_to is not None and leads_to != os.path.normpath(target):
                links[target] = leads_to
        return links

    # Links are followed while effects are found: so a command is parsed once, and not again to know its paths.
    effects = find_effects(action, facts, trusted=gate.trusted, known=gate.known, follow=follow)
    facts = replace(facts, links=links) if links else facts
    return gather_disk_facts(action, facts, effects, gate, partial(look_at_file, roots=roots))


def gather_disk_facts(
    action: Action, facts: Facts, effects: Effects, gate: Gate, look: Callable[[str], FileState]
) -> KnownFacts:
    """Gather what the disk says about the files that an action writes and the code that it runs.

    `look` finds the state of a file that is written.
    """
    if gate.caution == "balanced" and effects.classes & {"write", "scratch"}:
        changes = gather_change_facts(effects, action.workspace, look)
        facts = replace(facts, absent=changes.absent, written=changes.written)
        effects = mark_creations(effects, action, facts)
    questions = list_code(effects, facts.unseen, facts.absent)
    if questions:
        roots = build_path_roots(action.workspace, facts.environment, gate.known)
        with log.log_time("gate", "code looked into"):
            facts = replace(facts, code=look_into_code(questions, action, facts.environment, gate, roots))
    return KnownFacts(facts, effects)


TREE_LEVELS_MAX = 64
"""Directories above the workspace in which Aver looks for the git work tree."""


def find_workspace_names(workspace: str) -> dict[str, str]:
    """Return the other name of a workspace that is a link, and the git work tree that holds it, for the facts."""
    names: dict[str, str] = {}
    try:
        real = os.path.realpath(workspace)
        if real != os.path.normpath(workspace):
            names[WORKSPACE_ENV] = real
        # Up to the first directory with a `.git`. A work tree may also have a file of that name.
        tree = real
        for _ in range(TREE_LEVELS_MAX):
            if os.path.lexists(os.path.join(tree, ".git")):
                if tree not in (real, "/"):
                    names[TREE_ENV] = tree
                break
            above = os.path.dirname(tree)
            if tree == above:
                break  # The root: there is nothing above it.
            tree = above
    except (OSError, ValueError):
        pass
    return names


class FileReading(NamedTuple):
    """The outcome of reading a file: its bytes, or why there are none."""

    raw: bytes | None
    why: str = ""
    is_there: bool = True


def read_plain_file(path: str, roots: PathRoots, limit: int, *, for_effect: str) -> FileReading:
    """Read a plain file of at most `limit` bytes, if nothing about it is guarded for this effect.

    A guarded file must not be read, not even to look for something in it. A file in a temporary directory may only be
    read.
    """
    try:
        if not os.path.lexists(path):
            return FileReading(None, "it is not there", is_there=False)
        # Judge the real path: a link in the workspace may lead to a guarded file, or out of the workspace.
        place = locate_path(_resolve_path(path, roots.workspace), None, roots)
        zones = ("workspace", "temporary") if for_effect == "read" else ("workspace",)
        if place.classes_for(for_effect) or place.where not in zones:
            return FileReading(None, "it is guarded, or lies outside the workspace")
        with open_regular(os.path.realpath(path), follow=False) as file:
            raw = file.read(limit + 1)  # One byte more shows that the file is too large.
    except (FileNotFoundError, NotADirectoryError):  # A link that leads nowhere.
        return FileReading(None, "it is not there", is_there=False)
    except NotRegularFile:
        return FileReading(None, "it is a directory into which a command wrote, or no plain file")
    except (OSError, ValueError):  # Aver may not read it, or no system has a file of this name.
        return FileReading(None, "it cannot be read")
    return FileReading(raw) if len(raw) <= limit else FileReading(None, f"it has more than {limit} bytes")


def look_at_file(path: str, roots: PathRoots) -> FileState:
    """Look at a file that an action would write."""
    found = read_plain_file(path, roots, TEXT_MAX, for_effect="write")
    try:
        # A link that leads nowhere is there: a write through it makes a file elsewhere.
        is_there = found.is_there or os.path.lexists(path)
        text = None if found.raw is None else found.raw.decode()
        return FileState(is_there, text, is_directory=text is None and os.path.isdir(path))
    except ValueError:  # It is no text, or no system has a file of this name.
        return FileState(is_there=True)


def look_into_code(
    questions: Iterable[CodeQuestion], action: Action, environment: Mapping[str, str], gate: Gate, roots: PathRoots
) -> dict[str, Mapping[str, Any]]:
    """Read the code that an action would run, and return what it was found to do, by key."""

    def judge_script(text: str, cwd: str) -> str:
        from aver.gate.effects.shell_script import explain_script

        return explain_script(text, cwd, action.workspace, environment, gate.known)

    def has_module(name: str, directory: str) -> bool:
        # A directory without `__init__.py` loses against a package of this name that is installed.
        from importlib.machinery import all_suffixes

        files = (f"{directory}/{start}{ending}" for start in (name, f"{name}/__init__") for ending in all_suffixes())
        return name.isidentifier() and any(map(os.path.isfile, files))

    workspace = CodeSurroundings(roots, judge_script, has_module, reads_outside=gate.caution == "balanced")
    found: dict[str, Mapping[str, Any]] = {}
    room = CODE_TOTAL_MAX
    for question in questions:
        if question.path:
            reading = read_plain_file(question.path, roots, CODE_SIZE_MAX, for_effect="read")
        else:
            reading = FileReading(question.text.encode("utf-8", "surrogatepass"))
        if reading.raw is None:
            found[question.key] = refuse_look(reading.why) if reading.is_there else ABSENT
            continue
        room -= len(reading.raw)
        too_much = refuse_look("this would run more code than Aver looks into")
        found[question.key] = look_into(question, reading.raw, workspace) if room >= 0 else too_much
    return found


def _resolve_path(path: str, workspace: str) -> str:
    """Return where a path leads. The workspace may be a link itself: paths in it keep the name by which it is known."""
    leads_to, real = os.path.realpath(path), os.path.realpath(workspace)
    if leads_to == real:
        return workspace
    inside = real.rstrip("/") + "/"  # Both are real paths: none has a dot, a link, or a slash too many in it.
    return os.path.join(workspace, leads_to.removeprefix(inside)) if leads_to.startswith(inside) else leads_to


def _resolve_glob(pattern: str, roots: PathRoots) -> str | None:
    """Return the most sensitive of the files that a pattern matches; empty where there are too many to look at.

    Outside of the workspace patterns are not expanded: any match there counts as guarded.
    """
    import glob

    if locate_path(pattern, None, roots).where not in ("workspace", "temporary"):
        return None
    if sum(map(has_glob, pattern.split("/"))) > GLOB_LEVELS_MAX:
        return ""
    worst, found = 0, None
    # The gate sees one path for a pattern, so it must be the worst: private or secret (3), outside (2), guarded (1).
    for count, match in enumerate(glob.iglob(pattern)):
        if count == GLOB_MATCHES_MAX:
            return ""
        leads_to = _resolve_path(match, roots.workspace)
        place = locate_path(leads_to, None, roots)
        is_bad = place.where in ("private", "unknown") or place.classes_for("read")
        is_inside = place.where in ("workspace", "temporary")
        weight = 3 if is_bad else 2 if not is_inside else 1 if place.classes else 0
        if weight > worst:
            worst, found = weight, leads_to
    return found


def _resolve_listing(pattern: str, roots: PathRoots) -> str | None:
    """Return a guarded file that a listing may show, at any depth; empty where there are too many files to look at."""
    if locate_path(pattern, None, roots).where not in ("workspace", "temporary"):
        return None
    names = pattern.split("/")
    top = "/".join(names[: next(number for number, name in enumerate(names) if has_glob(name))])
    wanted = names[-1].casefold()
    waiting, count = [top or "/"], 0
    while waiting:
        try:
            entries = list(os.scandir(waiting.pop()))
        except OSError:
            continue  # A command cannot list it either.
        for entry in entries:
            count += 1
            if count > LISTED_MAX:
                return ""
            if entry.is_dir(follow_symlinks=False):
                waiting += [entry.path] if entry.name not in _UNLISTED_DIRECTORIES else []
            elif fnmatchcase(entry.name.casefold(), wanted):
                place = locate_path(_resolve_path(entry.path, roots.workspace), None, roots)
                if place.where in ("private", "unknown") or place.classes_for("read"):
                    return place.path
    return None

"""Handlers of programs that copy, move, link, pack and unpack files, and that change permissions."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aver.gate.effects.findings import FINDINGS_MAX
from aver.gate.effects.paths import locate_path
from aver.gate.effects.shown_changes import is_ordinary_place
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.apply import apply_arguments, apply_options
from aver.gate.shell.programs.spec import parse_spec, read_arguments
from aver.lazy_pattern import lazy_pattern

_COPY = (
    "-[dDrRafinuvpTLPHsxlbcCXNSU] -S= -t= -Z? -m= -o= -g= --suffix= --target-directory= --backup? --reflink?"
    " --sparse= --preserve? --no-preserve= --mode= --owner= --group= --strip-program=program --directory --context?"
    " --archive --attributes-only --copy-contents --dereference --no-dereference --force --interactive --link"
    " --no-clobber --parents --recursive --remove-destination --strip-trailing-slashes --symbolic-link"
    " --no-target-directory --update? --verbose --one-file-system --debug --exchange --no-copy --compare --strip"
    " --preserve-timestamps --preserve-context --keep-directory-symlink gnu"
)
_SETUID_MODE = re.compile(r"(?:[ugoa]*[+=][rwxXt]*s[rwxXt]*,?.*)|0?[4267][0-7]{3}")
_PLAIN_MODE = lazy_pattern(
    r"(?:(?:[ugoa]*[-+]x|u[+=][rwxX]+|[ugoa]*\+r|[go]+-[rwx]+|[go]+=(?:r|rx|x)?)(?:,(?!$)|$))+|0?[4-7][0145][0145]"
)
"""Modes that give nobody but the owner the right to write, and that leave the owner at least the right to read."""
_PLAIN_CHMOD_OPTIONS = frozenset(("-v", "-c", "-f", "--verbose", "--changes", "--quiet", "--silent"))
_CHMOD = (
    "-[RvcfhHLP] --reference=read --from= --preserve-root --no-preserve-root --recursive --verbose --changes --silent"
    " --quiet --dereference --no-dereference gnu"
)
_HYPHEN_MODE = lazy_pattern(r"-[rwxXstugoa,+=0-7]")
_WHOLE_CONTENTS = re.compile(r"[.*?]*")


def copy(call: Invocation) -> None:
    """Judge `cp`, `mv` and `install`: sources, then the target."""
    given = apply_options(call, parse_spec(_COPY))
    if call.program == "install" and given.has_option("-d", "--directory"):
        for word in given.operands:
            call.report_path("write", word)
        return
    targets = list(given.option_values("-t", "--target-directory"))
    sources = list(given.operands)
    if not targets and len(sources) > 1:
        targets = [sources.pop()]
    stays = all(call.is_in_workspace(target) for target in targets)
    for source in sources:
        call.report_path("read", source)
        if call.program in ("mv", "gmv"):
            # A file that gets another name inside the workspace is not lost.
            call.report_path("write" if stays else "delete", source)
    # `cp -r dir/. target` copies contents whose names Aver does not know.
    spills = any(
        _WHOLE_CONTENTS.fullmatch(value.rstrip("/").rpartition("/")[2]) for source in sources for value in source.values
    )
    for target in targets:
        call.report_copying(target, sources)
        if spills:
            call.report_unpacking(target)
    is_plain = not given.unlisted and {option.name for option, _, _ in given.options} <= _PLAIN_COPY_OPTIONS
    if is_plain and len(sources) == len(targets) == 1 and call.program in ("cp", "mv", "gcp", "gmv"):
        call.note_move("copy" if call.program in ("cp", "gcp") else "move", sources[0], targets[0])


_PLAIN_COPY_OPTIONS = frozenset(
    (
        *("-p", "-v", "-n", "-i", "-f", "-u", "-T", "--preserve", "--verbose", "--no-clobber", "--interactive"),
        *("--force", "--update", "--no-target-directory"),
    )
)
"""Options with which one file gets one copy or one new name, and nothing else."""


_DD_SETTINGS = frozenset(
    [
        "bs",
        "cbs",
        "ibs",
        "obs",
        "count",
        "conv",
        "iflag",
        "oflag",
        "seek",
        "oseek",
        "skip",
        "iseek",
        "status",
        "files",
        "fillchar",
        "speed",
    ]
)


def dd(call: Invocation) -> None:
    for word in call.words:
        name, equals, _ = word.prefix.partition("=")
        if name == "of" and equals:
            call.report_path("write", word.drop_first(3))
        elif name == "if" and equals:
            call.report_path("read", word.drop_first(3))
        elif equals and name not in _DD_SETTINGS:
            call.report_unclear("unknown-option", f"{name[:40]}= of dd is not in the tables", word)
        elif not equals and not word.is_known:
            call.report_unclear("unknown-target", f"{word.short_text} may become of=", word)


def chmod(call: Invocation) -> None:
    """Judge `chmod`, `chown` and `chgrp`."""
    # A mode may begin with a hyphen, as in `chmod -x FILE`. Then it is no option, and the next word is a file.
    modes = [word for word in call.words if call.program == "chmod" and _HYPHEN_MODE.match(word.prefix)]
    call = replace(call, words=tuple(word for word in call.words if word not in modes))
    given = apply_options(call, parse_spec(_CHMOD))
    operands = given.operands
    if not given.has_option("--reference") and not modes and operands:
        modes, operands = operands[:1], operands[1:]
    for mode in modes:
        if call.program == "chmod" and (mode.value is None or _SETUID_MODE.fullmatch(mode.value)):
            call.report_effect("privilege", mode)
    is_plain = (
        call.program == "chmod"
        and bool(modes)
        and all(mode.value is not None and _PLAIN_MODE.fullmatch(mode.value) for mode in modes)
        and not given.unlisted
        and {option.name for option, _, _ in given.options} <= _PLAIN_CHMOD_OPTIONS
    )
    for word in operands:
        call.report_path("file-state" if is_plain and _is_ordinary_file(call, word) else "write", word)
        for path in word.values:
            # Rights outside the workspace belong to the system.
            zones = {locate_path(path, cwd, call.path_roots).where for cwd in call.state.cwds}
            if not zones <= {"workspace", "temporary", "unknown"}:
                call.report_effect("system", word, target=path)


def _is_ordinary_file(call: Invocation, word: Word) -> bool:
    """Whether a word names a file of the workspace that is no tool, no setting, and not guarded."""
    places = [locate_path(value, cwd, call.path_roots) for value in word.values for cwd in call.state.cwds]
    inside = f"{call.path_roots.workspace}/"
    return (
        bool(places)
        and not word.is_pattern
        and all(
            place.where == "workspace"
            and not place.classes
            and place.path.startswith(inside)
            and is_ordinary_place(place.path[len(inside) :])
            for place in places
        )
    )


def ln(call: Invocation) -> None:
    """Judge a link. Its target counts as read, because opening the link opens the target."""
    marks = (
        "-[sfnrvTLPidFhb] -S= -t= --suffix= --target-directory= --backup? --symbolic --force --no-dereference"
        " --relative"
        " --verbose --no-target-directory --logical --physical --interactive --directory gnu"
    )
    given = apply_options(call, parse_spec(marks))
    *targets, link = given.operands or [Word("")]
    places = [*given.option_values("-t", "--target-directory")]
    if places or not targets:
        targets, link = list(given.operands), places[0] if places else Word(".", (".",), ".")
    call.report_path("write", link)
    for target in targets:
        is_relative = target.value is not None and not target.value.startswith(("/", "~"))
        if not (is_relative and given.has_option("-s", "--symbolic") and link.value is not None):
            call.report_path("read", target)
            continue
        # A relative target starts at the directory of the link. If the link names a directory, it starts there.
        for directory in (link.value, link.value.rpartition("/")[0] or ("/" if link.value.startswith("/") else ".")):
            path = f"{directory}/{target.value}"
            call.report_path("read", Word(target.text, (path,), path))


# --- archives

_TAR = (
    "gnu (-c -x -t -r -u -A -d -v -z -j -J -Z -p -k -m -h -l -n -o -O -P -S -U -w -W -a -B -G -i -M -R -s)"
    " -f= -C= -T= -X=read -I=program -F=run -L= -N= -b= -g=edit -H= -K= -V= (--create --extract --get --list"
    " --append --update --catenate --concatenate --diff --compare --delete --verbose --gzip --gunzip --ungzip"
    " --bzip2 --xz --lzip --lzma --zstd --auto-compress --same-permissions --preserve-permissions"
    " --keep-old-files --skip-old-files --overwrite --touch --dereference --no-same-owner --no-same-permissions"
    " --same-owner --to-stdout --sparse --verify --totals --wildcards --no-wildcards --anchored --ignore-case"
    " --exclude-vcs --exclude-vcs-ignores --numeric-owner --one-file-system --no-recursion --recursion --null"
    " --sort? --checkpoint? --force-local --no-xattrs --xattrs --absolute-names --no-mac-metadata"
    " --keep-newer-files --unlink-first --remove-files!delete --show-transformed-names --utc) --file="
    " --directory= --files-from= --exclude-from=read --use-compress-program=program --info-script=run"
    " --new-volume-script=run --to-command=run --rsh-command=program --rmt-command=program"
    " --checkpoint-action= --exclude= --exclude-ignore= --exclude-tag= --transform= --xform="
    " --strip-components= --mode= --owner= --group= --mtime= --format= --label= --listed-incremental=edit"
    " --newer= --warning= --blocking-factor= --pax-option= --index-file=write --owner-map=read --group-map=read"
    " --quoting-style= --occurrence? --add-file="
)
_OLD_STYLE = re.compile(r"[A-Za-z]+")


def tar(call: Invocation) -> None:
    # From here on there is only one style of options.
    call = replace(call, words=tuple(_add_hyphens(call.words)))
    given = read_arguments(parse_spec(_TAR), call.words)
    for value in given.option_values("--checkpoint-action"):
        action = value.value
        if action is None or action.startswith("exec="):
            call.judge_script_word(value.drop_first(5) if action else value, "tar --checkpoint-action")
    apply_arguments(call, parse_spec(_TAR), given.without_operands())
    archives = [*given.option_values("-f", "--file")]
    directories = [*given.option_values("-C", "--directory")]
    for archive in archives:
        # `tar -f host:file` opens a connection, unless `--force-local` says otherwise.
        if archive.value is not None and ":" in archive.value and not given.has_option("--force-local"):
            call.report_host(archive)
    local = [archive for archive in archives if archive.value != "-"]
    if given.has_option("-x", "--extract", "--get") and not given.has_option("-O", "--to-stdout"):
        for archive in local:
            call.report_path("read", archive)
        for directory in directories:
            call.report_unpacking(directory)
        if not directories:
            call.report_unpacking(None)
        # Without `-P`, tar keeps to the directory.
        if given.has_option("-P", "--absolute-names"):
            call.report_unclear("unknown-target", "the archive itself says where it is unpacked to")
    elif given.has_option("-t", "--list", "-x", "--extract", "--get", "-d", "--diff", "--compare"):
        for archive in local:
            call.report_path("read", archive)
        if given.has_option("-O", "--to-stdout"):
            _report_shown_members(call, given.operands)
    else:
        for archive in local:
            call.report_path("write", archive)
        _report_packed_files(call, given.operands, directories)
    for listed in given.option_values("-T", "--files-from"):
        call.report_path("read", listed)
        call.report_unclear("unknown-target", f"what is packed stands in {listed.short_text}", listed)


def _report_shown_members(call: Invocation, members: Sequence[Word]) -> None:
    """Report the guarded files among those that an archive prints: a copy of a secret is one, too."""
    for word in members:
        for value in word.values:
            call.report_guarded_path("read", value, word)


def _report_packed_files(call: Invocation, operands: Sequence[Word], directories: Sequence[Word]) -> None:
    """Report the packed files. With several `-C`, each file may lie in any of the directories."""
    if len(operands) * len(directories) > FINDINGS_MAX:
        call.report_unclear("too-much", "more files and directories than are looked at")
        return
    for word in operands:
        if not directories:
            call.report_path("read", word)
        for directory in directories:
            if directory.value is None or word.value is None or word.value.startswith(("/", "~")):
                call.report_path("read", word)
            else:
                joined = f"{directory.value}/{word.value}"
                call.report_path("read", Word(word.text, (joined,), joined, word.is_pattern))


def _add_hyphens(words: Sequence[Word]) -> list[Word]:
    """Turn the old style `tar xzf a.tgz` into `tar -x -z -f a.tgz`. Values follow in the order of their letters."""
    if not words or words[0].value is None or not _OLD_STYLE.fullmatch(words[0].value):
        return list(words)
    values = iter(words[1:])
    spelled: list[Word] = []
    for letter in words[0].value:
        name = f"-{letter}"
        spelled.append(Word(words[0].text, (name,), name))
        option = parse_spec(_TAR).options.get(name)
        if option is not None and option.takes and (value := next(values, None)) is not None:
            spelled.append(value)
    return [*spelled, *values]


def unzip(call: Invocation) -> None:
    given = apply_options(call, parse_spec("-[lvtZpzonqufjabCLXDKMUWVTs1] -d= -x= -P= -O= -I="))
    for word in given.operands[:1]:
        call.report_path("read", word)
    if given.has_option("-p"):
        _report_shown_members(call, given.operands[1:])
    if not given.has_option("-l", "-v", "-t", "-Z", "-p", "-z"):
        directories = list(given.option_values("-d"))
        call.report_unpacking(directories[0] if directories else None)

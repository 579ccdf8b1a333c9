"""`tar` and `unzip`: what they pack, and where they unpack to."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import FINDINGS_MAX, Word
from aver.gate.shell.programs.apply import apply_arguments
from aver.gate.shell.programs.spec import parse_spec, read_arguments

__all__ = ["tar", "unzip"]

_TAR = (
    "strict (-c -x -t -r -u -A -d -v -z -j -J -Z -p -k -m -h -l -n -o -O -P -S -U -w -W -a -B -G -i -M -R -s)"
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
    call = replace(call, words=tuple(_add_hyphens(call.words)))
    given = read_arguments(parse_spec(_TAR), call.words)
    for value in given.values("--checkpoint-action"):
        action = value.value
        if action is None or action.startswith("exec="):
            call.judge_script_word(value.after(5) if action else value, "tar --checkpoint-action")
    apply_arguments(call, parse_spec(_TAR), given.without_operands())
    archives = [*given.values("-f", "--file")]
    directories = [*given.values("-C", "--directory")]
    for archive in archives:
        if archive.value is not None and ":" in archive.value and not given.has("--force-local"):
            call.report_host(archive)
    here = [archive for archive in archives if archive.value != "-"]
    if given.has("-x", "--extract", "--get") and not given.has("-O", "--to-stdout"):
        for archive in here:
            call.report_path("read", archive)
        for directory in directories:
            call.report_unpacking(directory)
        if not directories:
            call.report_unpacking(None)
        if given.has("-P", "--absolute-names"):
            call.unclear("unknown-target", "the archive itself says where it is unpacked to")
    elif given.has("-t", "--list", "-x", "--extract", "--get", "-d", "--diff", "--compare"):
        for archive in here:
            call.report_path("read", archive)
    else:
        for archive in here:
            call.report_path("write", archive)
        _report_packed_files(call, given.operands, directories)
    for listed in given.values("-T", "--files-from"):
        call.report_path("read", listed)
        call.unclear("unknown-target", f"what is packed stands in {listed.shown}", listed)


def _report_packed_files(call: Invocation, operands: Sequence[Word], directories: Sequence[Word]) -> None:
    """Files are packed, each of which may lie in any of the directories gone to."""
    if len(operands) * len(directories) > FINDINGS_MAX:
        call.unclear("too-much", "more files and directories than are looked at")
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
    """`tar xzf a.tgz` as `tar -x -z -f a.tgz`: in the old style, values follow in the order of their letters."""
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
    given = read_arguments(
        parse_spec("-d= -x= -P= -O= -I= (-l -v -t -Z -p -z -o -n -q -u -f -j -a -b -C -L -X)"), call.words
    )
    for word in given.operands[:1]:
        call.report_path("read", word)
    if not given.has("-l", "-v", "-t", "-Z", "-p", "-z"):
        directories = list(given.values("-d"))
        call.report_unpacking(directories[0] if directories else None)

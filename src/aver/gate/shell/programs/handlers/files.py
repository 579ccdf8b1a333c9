"""Programs that copy, move, link and change files, and who may use them."""

from __future__ import annotations

import re

from aver.gate.effects.paths import locate_path
from aver.gate.shell.invocation import Invocation
from aver.gate.shell.model import Word
from aver.gate.shell.programs.apply import apply_options
from aver.gate.shell.programs.spec import parse_spec, read_arguments

__all__ = ["chmod", "copy", "dd", "ln"]

_COPY = (
    "-S= -t= -Z? -m= -o= -g= -d -D -r -R -a -f -i -n -u -v -p -T --suffix= --target-directory= --backup? --reflink?"
    " --sparse= --preserve? --no-preserve= --mode= --owner= --group= --strip-program=program --directory --context?"
)
_SETUID_MODE = re.compile(r"(?:[ugoa]*[+=][rwxXt]*s[rwxXt]*,?.*)|0?[4267][0-7]{3}")
_WHOLE_CONTENTS = re.compile(r"[.*?]*")


def copy(call: Invocation) -> None:
    """`cp`, `mv`, `install`: sources, then where they go to."""
    given = apply_options(call, parse_spec(_COPY))
    if call.program == "install" and given.has("-d", "--directory"):
        for word in given.operands:
            call.report_path("write", word)
        return
    targets = list(given.values("-t", "--target-directory"))
    sources = list(given.operands)
    if not targets and len(sources) > 1:
        targets = [sources.pop()]
    stays = all(call.is_in_workspace(target) for target in targets)
    for source in sources:
        call.report_path("read", source)
        if call.program in ("mv", "gmv"):
            # A file that only gets another name in the workspace is not lost.
            call.report_path("write" if stays else "delete", source)
    spills = any(
        _WHOLE_CONTENTS.fullmatch(value.rstrip("/").rpartition("/")[2]) for source in sources for value in source.values
    )
    for target in targets:
        call.report_copying(target, sources)
        if spills:
            call.report_unpacking(target)


def dd(call: Invocation) -> None:
    for word in call.words:
        name, equals, _ = word.prefix.partition("=")
        if name == "of" and equals:
            call.report_path("write", word.after(3))
        elif name == "if" and equals:
            call.report_path("read", word.after(3))
        elif not equals and not word.is_known:
            call.unclear("unknown-target", f"{word.shown} may become of=", word)


def chmod(call: Invocation) -> None:
    """`chmod`, `chown`, `chgrp`: who may use files."""
    given = read_arguments(parse_spec("(-R -v -c -f -h -H -L -P) --reference=read --from= --preserve-root"), call.words)
    for value in given.values("--reference"):
        call.report_path("read", value)
    operands = given.operands
    if not given.has("--reference") and operands:
        mode, operands = operands[0], operands[1:]
        if call.program == "chmod" and (mode.value is None or _SETUID_MODE.fullmatch(mode.value)):
            call.report_effect("privilege", mode)
    elif not operands and given.unlisted:
        return
    for word in operands:
        call.report_path("write", word)
        for path in word.values:
            if any(locate_path(path, cwd, call.ground).where == "outside" for cwd in call.state.cwds):
                call.report_effect("system", word, target=path)


def ln(call: Invocation) -> None:
    """A link: to what it leads is as good as read, since whoever opens the link opens that."""
    given = read_arguments(
        parse_spec("-S= -t= --suffix= --target-directory= --backup? -s -f -n -r -v -T -L -P"), call.words
    )
    *targets, link = given.operands or [Word("")]
    places = [*given.values("-t", "--target-directory")]
    if places or not targets:
        targets, link = list(given.operands), places[0] if places else Word(".", (".",), ".")
    call.report_path("write", link)
    for target in targets:
        is_relative = target.value is not None and not target.value.startswith(("/", "~"))
        if not (is_relative and given.has("-s") and link.value is not None):
            call.report_path("read", target)
            continue
        # A relative link leads from where it lies, which is the directory of the link, or the link if that is one.
        for directory in (link.value, link.value.rpartition("/")[0] or ("/" if link.value.startswith("/") else ".")):
            path = f"{directory}/{target.value}"
            call.report_path("read", Word(target.text, (path,), path))

"""Programs that copy, move, link and change files, and who may use them."""

from __future__ import annotations

import re

from aver.gate.commands.apply import apply_options
from aver.gate.commands.call import Call
from aver.gate.commands.model import Word
from aver.gate.commands.options import read_arguments, spec_from
from aver.gate.places import locate

__all__ = ["chmod", "copy", "dd", "ln"]

_COPY = (
    "-S= -t= -Z? -m= -o= -g= -d -D -r -R -a -f -i -n -u -v -p -T --suffix= --target-directory= --backup? --reflink?"
    " --sparse= --preserve? --no-preserve= --mode= --owner= --group= --strip-program=program --directory --context?"
)
_SETS_ID = re.compile(r"(?:[ugoa]*[+=][rwxXt]*s[rwxXt]*,?.*)|0?[4267][0-7]{3}")
_WHOLE_CONTENTS = re.compile(r"[.*?]*")


def copy(call: Call) -> None:
    """`cp`, `mv`, `install`: sources, then where they go to."""
    given = apply_options(call, spec_from(_COPY))
    if call.program == "install" and given.has("-d", "--directory"):
        for word in given.operands:
            call.touches("write", word)
        return
    targets = list(given.values("-t", "--target-directory"))
    sources = list(given.operands)
    if not targets and len(sources) > 1:
        targets = [sources.pop()]
    stays = all(call.is_in_workspace(target) for target in targets)
    for source in sources:
        call.touches("read", source)
        if call.program in ("mv", "gmv"):
            # A file that only gets another name in the workspace is not lost.
            call.touches("write" if stays else "delete", source)
    spills = any(
        _WHOLE_CONTENTS.fullmatch(value.rstrip("/").rpartition("/")[2]) for source in sources for value in source.values
    )
    for target in targets:
        call.copies_into(target, sources)
        if spills:
            call.unpacks_into(target)


def dd(call: Call) -> None:
    for word in call.words:
        name, equals, _ = word.prefix.partition("=")
        if name == "of" and equals:
            call.touches("write", word.after(3))
        elif name == "if" and equals:
            call.touches("read", word.after(3))
        elif not equals and not word.is_known:
            call.unclear("unknown-target", f"{word.shown} may become of=", word)


def chmod(call: Call) -> None:
    """`chmod`, `chown`, `chgrp`: who may use files."""
    given = read_arguments(spec_from("(-R -v -c -f -h -H -L -P) --reference=read --from= --preserve-root"), call.words)
    for value in given.values("--reference"):
        call.touches("read", value)
    operands = given.operands
    if not given.has("--reference") and operands:
        mode, operands = operands[0], operands[1:]
        if call.program == "chmod" and (mode.value is None or _SETS_ID.fullmatch(mode.value)):
            call.does("privilege", mode)
    elif not operands and given.unlisted:
        return
    for word in operands:
        call.touches("write", word)
        for path in word.values:
            if any(locate(path, cwd, call.ground).where == "outside" for cwd in call.state.cwds):
                call.does("system", word, target=path)


def ln(call: Call) -> None:
    """A link: to what it leads is as good as read, since whoever opens the link opens that."""
    given = read_arguments(
        spec_from("-S= -t= --suffix= --target-directory= --backup? -s -f -n -r -v -T -L -P"), call.words
    )
    *targets, link = given.operands or [Word("")]
    places = [*given.values("-t", "--target-directory")]
    if places or not targets:
        targets, link = list(given.operands), places[0] if places else Word(".", (".",), ".")
    call.touches("write", link)
    for target in targets:
        is_relative = target.value is not None and not target.value.startswith(("/", "~"))
        if not (is_relative and given.has("-s") and link.value is not None):
            call.touches("read", target)
            continue
        # A relative link leads from where it lies, which is the directory of the link, or the link if that is one.
        for directory in (link.value, link.value.rpartition("/")[0] or ("/" if link.value.startswith("/") else ".")):
            path = f"{directory}/{target.value}"
            call.touches("read", Word(target.text, (path,), path))

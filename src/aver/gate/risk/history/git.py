"""Asking git about a history without running anything that the repository names.

A repository's `config` can name programs for almost every occasion: pager, aliases, external diff, textconv, hooks,
fsmonitor, signature checks, ssh, filters, credential helpers; it can include other files, and name remotes from which
missing objects are fetched by any program. So git never sees it. It is given a directory of our own as its repository,
with a `config` of ours, and the real one's objects to read from. Nor does git see the user's or the system's settings,
or any environment but what is set here. Besides, only plumbing is called, with external diffs and textconv off.

What git prints is read as it comes, within bounds; a git that says nothing for long is ended.

What a commit would change: the difference between HEAD and git's index, read without the repository's settings.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from aver.errors import BadInput, NotFound, Unavailable
from aver.gate.action import DIFF_MAX
from aver.gate.risk.history.repository import Repository, open_repository

__all__ = ["DIFF_OPTIONS", "GitReader", "open_git", "staged_diff"]


CHUNK = 256 * 1024

SILENCE_MAX = 60.0
"""Seconds without a byte from git. On the largest histories it thinks for some seconds."""

LINE_MAX = 4 * 1024 * 1024
"""Bytes of a line of output after which its end is dropped."""

COMPLAINT_MAX = 400
"""Characters of git's complaint that are repeated."""

DIFF_OPTIONS = (
    *("-r", "--root", "-p", "--unified=0", "--find-renames", "-l400", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=none"),
)

_CONFIG_TEXT = """\
[core]
\trepositoryformatversion = {version}
\tbare = true
\thooksPath = /dev/null
\tattributesFile = /dev/null
\tcommitGraph = false
\tmultiPackIndex = false
\tbigFileThreshold = 8m
\tquotePath = true
[diff]
\trenames = true
[protocol]
\tallow = never
"""


class GitReader:
    """One repository, to be asked. Made by `asking`."""

    def __init__(self, repository: Repository, directory: Path, index: Path | None) -> None:
        self.repository = repository
        self._directory = directory
        self._program = _find_git_program(repository.root)
        self._environment = {
            "PATH": os.defpath,
            "HOME": str(directory),
            "LC_ALL": "C",
            "GIT_DIR": str(directory),
            "GIT_OBJECT_DIRECTORY": str(repository.objects),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
            "GIT_OPTIONAL_LOCKS": "0",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_ALLOW_PROTOCOL": "none",
            "GIT_PAGER": "cat",
        }
        if index is not None:
            self._environment["GIT_INDEX_FILE"] = str(index)

    def lines(self, *arguments: str, given: Iterable[str] = ()) -> Iterator[list[str]]:
        """What git prints, as lists of lines. `given` are lines for its standard input."""
        with tempfile.TemporaryFile(dir=self._directory) as words, tempfile.TemporaryFile(dir=self._directory) as asked:
            asked.writelines(f"{line}\n".encode("ascii") for line in given)
            asked.seek(0)
            with self._start_process(arguments, asked, words) as process:
                assert process.stdout is not None
                yield from _read_stream_lines(process.stdout)
                status = process.wait()
            if status:
                words.seek(0)
                complaint = words.read(COMPLAINT_MAX).decode("utf-8", "replace").strip() or f"it ended with {status}"
                raise BadInput(f"git cannot read {self.repository.root}: {complaint!a}")

    @contextmanager
    def _start_process(
        self, arguments: tuple[str, ...], asked: IO[bytes], words: IO[bytes]
    ) -> Iterator[subprocess.Popen[bytes]]:
        command = [self._program, "--no-pager", "--literal-pathspecs", *arguments]
        try:
            process = subprocess.Popen(
                command, stdin=asked, stdout=subprocess.PIPE, stderr=words, env=self._environment, cwd=self._directory
            )
        except OSError as error:
            raise Unavailable(f"cannot run git: {error.strerror}") from error
        try:
            yield process
        finally:
            process.kill()
            process.wait()
            assert process.stdout is not None
            process.stdout.close()


@contextmanager
def open_git(repository: Repository, *, index: Path | None = None) -> Iterator[GitReader]:
    """Git, set up to be asked about a repository, and about one of its indexes."""
    with tempfile.TemporaryDirectory(prefix="aver-git-") as name:
        directory = Path(name)
        (directory / "refs").mkdir()
        (directory / "HEAD").write_text(f"{repository.head}\n", "ascii")
        config = _CONFIG_TEXT.format(version=1 if len(repository.head) == 64 else 0)
        if len(repository.head) == 64:
            config += "[extensions]\n\tobjectFormat = sha256\n"
        (directory / "config").write_text(config, "ascii")
        if repository.shallow:
            (directory / "shallow").write_text("".join(f"{commit}\n" for commit in repository.shallow), "ascii")
        yield GitReader(repository, directory, index)


def _find_git_program(root: Path) -> str:
    """The system's git: not one that lies in the repository, or in whatever directory we happen to be in."""
    places = [place for place in os.get_exec_path() if os.path.isabs(place) and not _is_inside(place, root)]
    found = shutil.which("git", path=os.pathsep.join(places))
    if found is None or _is_inside(found, root):
        raise Unavailable("git is not installed", advice="install git; without it no history can be read")
    return found


def _is_inside(path: str, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(root)


def _read_stream_lines(stream: IO[bytes]) -> Iterator[list[str]]:
    """A stream's lines as they come. One longer than `LINE_MAX` loses its end."""
    begun = b""
    while chunk := _read_chunk(stream):
        first, *others = chunk.split(b"\n")
        if len(begun) < LINE_MAX:
            begun += first
        if others:
            *whole, last = others
            yield [line.decode("utf-8", "surrogateescape") for line in (begun, *whole)]
            begun = last
    if begun:
        yield [begun.decode("utf-8", "surrogateescape")]


def _read_chunk(stream: IO[bytes]) -> bytes:
    ready, _, _ = select.select([stream], [], [], SILENCE_MAX)
    if not ready:
        raise Unavailable(f"git has said nothing for {SILENCE_MAX:.0f} seconds")
    return os.read(stream.fileno(), CHUNK)


_STAGED_DIFF_OPTIONS = (
    *("--cached", "-p", "--unified=3", "--find-renames", "-l400", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=none"),
)


def staged_diff(workspace: str | Path) -> tuple[str, Path]:
    """The staged change, and the root that its paths begin at. Inside a hook it is what the commit at hand would be."""
    repository = open_repository(workspace)
    lines: list[str] = []
    size = 0
    with open_git(repository, index=_find_index(repository)) as git:
        for some in git.lines("diff-index", *_STAGED_DIFF_OPTIONS, repository.head, "--"):
            size += sum(map(len, some)) + len(some)
            if size > DIFF_MAX:
                raise BadInput(f"what is staged has more than {DIFF_MAX} characters", advice="commit it in parts")
            lines += some
    text = "".join(f"{line}\n" for line in lines)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace"), repository.root


def _find_index(repository: Repository) -> Path:
    """The index that git would commit: during `git commit FILE` not the usual one, and git says which."""
    given = os.environ.get("GIT_INDEX_FILE")
    index = repository.root / given if given else repository.index
    if not Path(os.path.realpath(index.parent)).is_relative_to(os.path.realpath(repository.index.parent)):
        raise BadInput(f"GIT_INDEX_FILE names {given!r}, which is not in this repository")
    if not index.is_file():
        raise NotFound(f"{repository.root} has nothing staged", advice="git add what the commit is to hold")
    return index

"""Runs git on a history without running anything that the repository names.

A repository's `config` can name programs for almost everything: pager, aliases, external diff, textconv, hooks,
fsmonitor, signature checks, ssh, filters, credential helpers. It can include other files, and name remotes from which
git fetches missing objects. Aver therefore never shows it to git:

1. git gets an empty directory as its repository, with Aver's own `config`, and reads only the objects of the real one.
2. git sees neither the user's nor the system's settings, and only the environment that is set here.
3. Aver calls only plumbing commands, with external diffs and textconv off.

Output is read in bounded pieces. Aver ends a git that prints nothing for too long.

`staged_diff` reads the difference between HEAD and the index in the same way, `uncommitted_change` that between HEAD
and the files.
"""

from __future__ import annotations

import os
import select
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from aver.errors import BadInput, NotFound, Unavailable
from aver.gate.action import DIFF_MAX
from aver.gate.risk.history.repository import Repository, open_repository

CHUNK = 256 * 1024

SILENCE_MAX = 60.0
"""Seconds without output after which Aver ends git. On the largest histories git needs some seconds to start."""

LINE_MAX = 4 * 1024 * 1024
"""Bytes of a line of output. The rest of a longer line is dropped."""

COMPLAINT_MAX = 400
"""Characters of git's error output that a message repeats."""

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
    """Runs git commands on one repository. `open_git` creates it."""

    def __init__(
        self, repository: Repository, directory: Path, index: Path | None, *, work_tree: Path | None = None
    ) -> None:
        self.repository = repository
        self._directory = directory
        # Use the system's git. A git inside the repository or in a relative PATH entry does not count.
        root = repository.root
        directories = [path for path in os.get_exec_path() if os.path.isabs(path) and not _is_inside(path, root)]
        found = shutil.which("git", path=os.pathsep.join(directories))
        if found is None or _is_inside(found, root):
            raise Unavailable("git is not installed", advice="install git; without it no history can be read")
        self._program = found
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
        if work_tree is not None:
            self._environment["GIT_WORK_TREE"] = str(work_tree)

    def read_output(
        self, *arguments: str, given: Iterable[str] = (), directory: Path | None = None
    ) -> Iterator[list[str]]:
        """Run git and yield its output as lists of lines. `given` are lines for its standard input.

        git runs in `directory`, or in its own empty one.

        Raises BadInput if git fails, Unavailable if it cannot be run or does not answer.
        """
        # Files instead of pipes for input and errors: git can never block on them while Aver reads its output.
        with (
            tempfile.TemporaryFile(dir=self._directory) as errors,
            tempfile.TemporaryFile(dir=self._directory) as stdin,
        ):
            stdin.writelines(f"{line}\n".encode("ascii") for line in given)
            stdin.seek(0)
            command = [self._program, "--no-pager", "--literal-pathspecs", *arguments]
            try:
                process = subprocess.Popen(
                    command,
                    stdin=stdin,
                    stdout=subprocess.PIPE,
                    stderr=errors,
                    env=self._environment,
                    cwd=directory or self._directory,
                )
            except OSError as error:
                raise Unavailable(f"cannot run git: {error.strerror}") from error
            assert process.stdout is not None
            try:
                yield from _read_stream_lines(process.stdout)
                status = process.wait()
            finally:
                # The caller may stop early: then git must not go on.
                process.kill()
                process.wait()
                process.stdout.close()
            if status:
                errors.seek(0)
                complaint = errors.read(COMPLAINT_MAX).decode("utf-8", "replace").strip() or f"it ended with {status}"
                raise BadInput(f"git cannot read {self.repository.root}: {complaint!a}")


@contextmanager
def open_git(
    repository: Repository, *, index: Path | None = None, work_tree: Path | None = None
) -> Iterator[GitReader]:
    """Prepare git for a repository, and for one of its indexes and the files around it, if given."""
    with tempfile.TemporaryDirectory(prefix="aver-git-") as name:
        directory = Path(name)
        # git takes a directory with `refs`, `HEAD` and objects for a repository.
        (directory / "refs").mkdir()
        (directory / "HEAD").write_text(f"{repository.head}\n", "ascii")
        config = _CONFIG_TEXT.format(version=1 if len(repository.head) == 64 else 0)
        if len(repository.head) == 64:
            config += "[extensions]\n\tobjectFormat = sha256\n"
        (directory / "config").write_text(config, "ascii")
        if repository.shallow:
            (directory / "shallow").write_text("".join(f"{commit}\n" for commit in repository.shallow), "ascii")
        yield GitReader(repository, directory, index, work_tree=work_tree)


def _is_inside(path: str, root: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(root)


def _read_stream_lines(stream: IO[bytes]) -> Iterator[list[str]]:
    """Yield the lines of a stream as they come. A line longer than `LINE_MAX` loses its end."""
    partial = b""
    while True:
        ready, _, _ = select.select([stream], [], [], SILENCE_MAX)
        if not ready:
            raise Unavailable(f"git has said nothing for {SILENCE_MAX:.0f} seconds")
        chunk = os.read(stream.fileno(), CHUNK)
        if not chunk:
            break
        first, *others = chunk.split(b"\n")
        if len(partial) < LINE_MAX:
            partial += first
        if others:
            *whole, last = others
            yield [line.decode("utf-8", "surrogateescape") for line in (partial, *whole)]
            partial = last
    if partial:
        yield [partial.decode("utf-8", "surrogateescape")]


_STAGED_DIFF_OPTIONS = (
    *("--cached", "-p", "--unified=3", "--find-renames", "-l400", "--no-ext-diff", "--no-textconv", "--no-color"),
    *("--src-prefix=a/", "--dst-prefix=b/", "--no-relative", "--submodule=short", "--ignore-submodules=none"),
)


def collect_lines(chunks: Iterable[Sequence[str]], subject: str, *, advice: str = "") -> list[str]:
    """Return the lines of a change as git writes it. Raises `BadInput` for more than `DIFF_MAX` characters."""
    lines: list[str] = []
    size = 0
    for chunk in chunks:
        size += sum(map(len, chunk)) + len(chunk)
        if size > DIFF_MAX:
            raise BadInput(f"{subject} has more than {DIFF_MAX} characters", advice=advice)
        lines += chunk
    return lines


def join_lines(lines: Iterable[str]) -> str:
    """Return lines of git as one text. Bytes that are not UTF-8 become escapes, so that JSON can hold it."""
    text = "".join(f"{line}\n" for line in lines)
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def staged_diff(workspace: str | Path) -> tuple[str, Path]:
    """Return the staged change, and the directory that its paths are relative to.

    Inside a git hook this is the change that the current commit would make.
    """
    repository = open_repository(workspace)
    # During `git commit FILE`, GIT_INDEX_FILE names another index than usual. It must lie in the same repository.
    given = os.environ.get("GIT_INDEX_FILE")
    index = repository.root / given if given else repository.index
    if not Path(os.path.realpath(index.parent)).is_relative_to(os.path.realpath(repository.index.parent)):
        raise BadInput(f"GIT_INDEX_FILE names {given!r}, which is not in this repository")
    if not index.is_file():
        raise NotFound(f"{repository.root} has nothing staged", advice="run git add first")
    with open_git(repository, index=index) as git:
        chunks = git.read_output("diff-index", *_STAGED_DIFF_OPTIONS, repository.head, "--")
        lines = collect_lines(chunks, "the staged change", advice="commit it in parts")
    return join_lines(lines), repository.root


def uncommitted_change(workspace: str | Path) -> tuple[str, str]:
    """Return the commit of HEAD, and the change of the files since: a diff, then one line for each untracked file.

    The change is empty where there is none. Files that `.gitignore` excludes are left out. Raises `NotFound` where
    there is no repository, and `BadInput` where it cannot be read.
    """
    repository = open_repository(workspace)
    with tempfile.TemporaryDirectory(prefix="aver-index-") as name:
        # git may write a fresh index while it compares. It gets a copy: the repository stays as it is. The copy keeps
        # the time of the index, by which git knows that a file may have changed in the same second.
        index = Path(name) / "index"
        if repository.index.is_file():
            shutil.copy2(repository.index, index)
        with open_git(repository, index=index, work_tree=repository.root) as git:
            options = [option for option in _STAGED_DIFF_OPTIONS if option != "--cached"]
            commands = (
                # Else a file that was only touched would count as changed.
                ("", ("update-index", "-q", "--refresh")),
                ("", ("diff-index", *options, repository.head, "--")),
                ("untracked ", ("ls-files", "--others", "--exclude-standard")),
            )
            chunks = (
                [f"{mark}{line}" for line in chunk]
                for mark, command in commands
                for chunk in git.read_output(*command, directory=repository.root)
            )
            lines = collect_lines(chunks, "the uncommitted change")
    return repository.head, join_lines(lines)

"""Options by which a build writes its output over sources: `vitepress build --outDir src`, `psalm --report=src/x.php`.

The tables of commands list the options of many tools, and those that write a file have the effect `write`. Some rows
say that a tool has more options than they list. An option of such a tool is judged here, by its name:

    strong    the name says that its value is a file or directory for output: `--outDir`, `--report-file`
    wide      the name speaks of output: `--output-format`, `--junit`. Its value counts only if it is attached by `=`
              and is a path by its form, as in `--output-format=json:conftest.py`

    >>> from aver.gate.effects.paths import PathRoots
    >>> roots = PathRoots(workspace="/work")
    >>> list_named_outputs(["build", "--out-dir", "src", "--report=a/b.xml", "--reporter=dot"])
    ['src', 'a/b.xml']
"""

from __future__ import annotations

from collections.abc import Sequence

from aver.lazy_pattern import lazy_pattern

_STRONG_NAME = lazy_pattern(
    r"(?:[a-z]{0,30}(?:out|output|dist|dest|destination|site|reports?|results?|coverage|artifacts?|build|generated?)"
    r"(?:dir|directory|file|path|folder|root|location)|out|output|dest|destination|dist|outfile|outdir|logfile|logpath|(?:generate|set)baseline)"
)
_WIDE_NAME = lazy_pattern(
    r"[a-z]{0,30}(?:out|report|log|save|dump|emit|result|export|baseline|snapshot|trace|prof|artifact|write|junit|html|xml"
    r"|json|generate)[a-z]{0,30}"
)
_FORMATS = frozenset(
    (
        *("csv", "dot", "github", "html", "human", "human-verbose", "json", "junit", "line", "list", "machine"),
        *("machine-verbose", "sarif", "spec", "stdout", "stylish", "table", "tap", "text", "xml", "yaml"),
    )
)
"""Values of `--output` that say how, and not where to."""
_PATH = lazy_pattern(r"[\w@+~][\w@+~./-]{0,200}|\.{1,2}/[\w@+~./-]{1,200}")
_SEPARATORS = lazy_pattern(r"[:,;]")


def list_named_outputs(arguments: Sequence[str]) -> list[str]:
    """Return the values of options that are files or directories for output by the options' names."""
    found: list[str] = []
    for number, word in enumerate(arguments):
        if not word.startswith("--"):
            continue
        name, attached, value = word[2:].partition("=")
        name = name.replace("-", "").replace("_", "").lower()
        if _STRONG_NAME.fullmatch(name):
            following = arguments[number + 1] if number + 1 < len(arguments) else ""
            found += [value] if attached else [following] if not following.startswith("-") else []
        elif attached and _WIDE_NAME.fullmatch(name):
            # A format may stand before the path: `json:report.json`.
            pieces = _SEPARATORS.split(value)
            found += [piece for piece in pieces if _PATH.fullmatch(piece) and ("/" in piece or "." in piece)]
    return [value for value in found if value and value not in _FORMATS]

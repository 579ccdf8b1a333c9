"""Which files are source code, and what a comment looks like in them.

The model was fitted to source files. Tests and docs stand aside because they seldom break anything; configuration,
vendored code and files of an unknown kind stand aside because nothing was measured on them, which is not the same:
whoever decides must know that a change has parts that no number speaks for.

A path is only looked at as text. Nothing here touches the disk.

    >>> kind_of("src/app.py"), kind_of("tests/test_app.py"), kind_of("package.json")
    ('source', 'test', 'configuration')
"""

from __future__ import annotations

from functools import lru_cache
from typing import Literal

__all__ = ["CommentStyle", "Kind", "comment_style", "is_source", "kind_of"]

Kind = Literal["source", "test", "docs", "configuration", "vendored", "unknown"]

CommentStyle = Literal["hash", "slash", "dash", "semicolon", "percent", "markup", "hash and slash"]
"""By what a comment line begins: `#`, `//` or `/*`, `--`, `;`, `%`, `<!--`."""


def _words(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_ENDINGS: dict[CommentStyle, frozenset[str]] = {
    "hash": _words(
        "py pyi pyx pxd pyw rb rake sh bash zsh fish ksh pl pm t r jl nim ex exs tcl cr coffee ps1 psm1 awk",
        "graphql gql",
    ),
    "slash": _words(
        "c h cc cpp cxx c++ hh hpp hxx inl m mm java js jsx mjs cjs ts tsx mts cts go rs swift kt kts scala cs fs fsx",
        "dart zig v groovy gradle vue svelte astro proto sol cu cuh glsl vert frag hlsl wgsl d css scss sass less styl",
    ),
    "dash": _words("sql lua hs elm ada adb ads vhd vhdl"),
    "semicolon": _words("lisp cl clj cljs cljc el scm ss rkt asm s"),
    "percent": _words("erl hrl"),
    "markup": _words("html htm xhtml jinja j2 jinja2 erb ejs hbs mustache twig"),
    "hash and slash": _words("php phtml tf hcl nix"),
}
_STYLES = {ending: style for style, endings in _ENDINGS.items() for ending in endings}

_DOC_ENDINGS = _words(
    "md markdown mdx rst txt adoc asciidoc tex textile org pod rdoc 1 3 5 7 8 pdf png jpg jpeg gif webp ico svg"
)
_DOC_NAMES = _words(
    "readme license licence copying notice authors contributors changelog changes history news todo maintainers",
    "codeowners security contributing code_of_conduct",
)
_DOC_TOPS = _words("doc docs documentation man")

_TEST_DIRECTORIES = _words(
    "test tests __tests__ __mocks__ __snapshots__ spec specs testdata test-data test_data fixtures e2e cypress"
)
_TEST_STEM_ENDINGS = ("_test", "_tests", ".test", ".spec", "_spec", "-test", "-spec", ".e2e", ".cy", ".stories")

_VENDORED_DIRECTORIES = _words(
    "vendor vendored _vendor third_party third-party thirdparty node_modules bower_components site-packages dist"
)
_GENERATED_ENDINGS = (
    *(".min.js", ".min.css", ".bundle.js", ".min.mjs", "_pb2.py", "_pb2.pyi", "_pb2_grpc.py", ".pb.go", ".pb.cc"),
    *(".pb.h", ".pb.validate.go", "_generated.go", ".generated.ts", ".generated.js", ".g.dart", ".designer.cs"),
)

_CONFIGURATION_ENDINGS = _words(
    "json json5 jsonc yaml yml toml ini cfg conf config lock xml properties env plist editorconfig mod sum work",
    "csproj vcxproj sln props targets cmake mk bazel bzl gn gni service desktop rc ipynb csv tsv snap po pot",
)
_CONFIGURATION_NAMES = _words(
    "makefile gnumakefile dockerfile containerfile vagrantfile procfile gemfile rakefile justfile jenkinsfile build",
    "workspace cmakelists.txt requirements.txt constraints.txt setup.cfg manifest.in go.mod go.sum cargo.lock",
)
_CONFIGURATION_TOPS = _words(".github .circleci .gitlab .vscode .idea .husky .cargo .devcontainer")


@lru_cache(maxsize=8192)
def kind_of(path: str) -> Kind:
    """What kind of file a path names, by its directories, name and ending. It is relative to the workspace."""
    parts = [part for part in path.lower().replace("\\", "/").split("/") if part not in ("", ".")]
    if not parts or ".." in parts or path.startswith("/") or not path.isprintable():
        return "unknown"  # Where it would end up depends on the disk, or on whoever applies it.
    *directories, name = parts
    stem, dot, ending = name.rpartition(".")
    if not _VENDORED_DIRECTORIES.isdisjoint(directories) or name.endswith(_GENERATED_ENDINGS):
        return "vendored"
    if (
        name in _CONFIGURATION_NAMES
        or name.startswith((".", "dockerfile."))
        or not _CONFIGURATION_TOPS.isdisjoint(directories)
    ):
        return "configuration"
    code = bool(dot) and ending in _STYLES
    if _is_test(directories, name, stem if dot else name, code):
        return "test"
    if directories and directories[0] in _DOC_TOPS:
        return "docs"
    if code:
        return "source"
    if ending in _DOC_ENDINGS or (stem if dot else name) in _DOC_NAMES:
        return "docs"
    return "configuration" if dot and ending in _CONFIGURATION_ENDINGS else "unknown"


def _is_test(directories: list[str], name: str, stem: str, code: bool) -> bool:
    if not _TEST_DIRECTORIES.isdisjoint(directories):
        return True
    return code and (name == "conftest.py" or stem.startswith("test_") or stem.endswith(_TEST_STEM_ENDINGS))


def is_source(path: str) -> bool:
    return kind_of(path) == "source"


@lru_cache(maxsize=1024)
def comment_style(path: str) -> CommentStyle:
    """How comments are written in a source file."""
    return _STYLES.get(path.rpartition(".")[2].lower(), "slash")

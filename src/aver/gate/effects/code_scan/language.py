"""The language of a file, by the ending of its name.

>>> find_language("src/app.py"), find_language("notes.md"), find_language("Makefile")
('python', 'prose', 'unknown')
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

CodeLanguage = Literal["python", "javascript", "shell", "script", "source", "prose", "data", "unknown"]
"""`script`: languages with backquotes that run commands. `source`: all other languages. `prose`: text in which only
lines of an interactive Python session are code. `data`: nothing runs it."""


def _word_set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_ENDINGS: Mapping[CodeLanguage, frozenset[str]] = {
    "python": _word_set("py pyi pyx pxd pyw"),
    "javascript": _word_set("js jsx mjs cjs ts tsx mts cts vue svelte astro html htm xhtml mdx ejs coffee"),
    "shell": _word_set("sh bash zsh ksh"),
    "script": _word_set("rb rake erb pl pm t php phtml lua r jl cr tcl ex exs awk"),
    "source": _word_set(
        "c h cc cpp cxx c++ hh hpp hxx inl m mm java go rs swift kt scala cs fs fsx dart zig v groovy proto sol cu cuh",
        "glsl vert frag hlsl wgsl d css scss sass less styl sql hs elm ada adb ads vhd vhdl lisp cl clj cljs cljc el",
        "scm ss rkt erl hrl nim graphql gql jinja j2 jinja2 hbs mustache twig",
    ),
    "prose": _word_set("md markdown rst txt adoc asciidoc tex textile org pod rdoc"),
    # No program is loaded from a compressed file or a checksum. Python imports from `zip` and from `tar` around one.
    "data": _word_set("png jpg jpeg gif webp ico svg pdf csv tsv gz tgz bz2 tbz2 xz txz zst md5 sha1 sha256 sha512"),
}
_LANGUAGE_BY_ENDING = {ending: language for language, endings in _ENDINGS.items() for ending in endings}


def find_language(path: str) -> CodeLanguage:
    """Return the language of a file by its name."""
    name = path.rpartition("/")[2].lower()
    stem, dot, ending = name.rpartition(".")
    return _LANGUAGE_BY_ENDING.get(ending, "unknown") if dot and stem else "unknown"

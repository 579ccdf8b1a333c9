"""Settings files as people write them: JSON, JSON with comments, and TOML, drawn by hypothesis."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

NAMES = st.sampled_from(["a", "b", "c", "mcpServers", "servers", "other server", 'qu"ote', "é", "//x", "/*", "x.y"])
SCALARS = st.none() | st.booleans() | st.integers(-9, 9) | st.sampled_from(["", "x", "{", '"', "\\", "// no", "é\n\t"])
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=8,
)
OBJECTS = st.dictionaries(NAMES, VALUES, max_size=4)
SPACES = st.sampled_from(["", " ", "\n", "\n  ", "\n\t", "\r\n    ", "  "])
COMMENTS = st.sampled_from(["/* c */", '// } , "\n', '/* " { */', "// c\r\n"])


@st.composite
def gaps(draw: st.DrawFn, *, comments: bool) -> str:
    """What may stand between two tokens."""
    parts = [draw(SPACES)]
    if comments and draw(st.integers(0, 4)) == 0:
        parts += [draw(COMMENTS), draw(SPACES)]
    return "".join(parts)


@st.composite
def json_texts(draw: st.DrawFn, *, comments: bool) -> str:
    """An object in any layout, with or without comments and commas at the end."""

    def gap() -> str:
        return draw(gaps(comments=comments))

    def text(value: Any) -> str:
        if isinstance(value, dict):
            members = [f"{gap()}{json.dumps(name)}{gap()}:{gap()}{text(one)}{gap()}" for name, one in value.items()]
            return "{" + listed(members) + "}"
        if isinstance(value, list):
            return "[" + listed([f"{gap()}{text(one)}{gap()}" for one in value]) + "]"
        return json.dumps(value, ensure_ascii=draw(st.booleans()))

    def listed(parts: list[str]) -> str:
        if not parts:
            return gap()
        return ",".join(parts) + ("," + gap() if comments and draw(st.integers(0, 3)) == 0 else "")

    start = draw(st.sampled_from(["", "\ufeff"]))
    return start + gap() + text(draw(OBJECTS)) + gap()


LINES = st.sampled_from(
    [
        "# a comment",
        "",
        'model = "x"  # [not a table]',
        "path = 'C:\\x'",
        "many = [\n  1, # ] one\n  2,\n]",
        'text = """\n[mcp_servers.aver]\n# not a comment\n"""',
        "raw = '''\n[x]\n'''",
        "inline = { a = 1, b = [1, 2] }",
        'dotted.name."and quoted" = true',
        "  indented = 1979-05-27",
    ]
)
HEADERS = st.sampled_from(
    [
        "[mcp_servers]",
        "[mcp_servers.other]",
        '[mcp_servers."with space"]',
        "[ profiles . work ] # note",
        "[[list]]",
        "[mcp_servers.averse]",
        "[tools]",
    ]
)


@st.composite
def toml_texts(draw: st.DrawFn) -> str:
    """A document of tables with settings and comments. Not all of them are valid; the tests take those that are."""
    blocks = []
    for index in range(draw(st.integers(0, 4))):
        lines = [draw(HEADERS)] if index else []
        lines += draw(st.lists(LINES, max_size=4))
        blocks.append("\n".join(lines))
    text = "\n".join(blocks) + draw(st.sampled_from(["", "\n", "\n\n", "\n# the end\n"]))
    return text.replace("\n", draw(st.sampled_from(["\n", "\r\n"])))

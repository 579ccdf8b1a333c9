"""The parts that all HTML pages of Aver share: style, script, Content-Security-Policy, escaping.

The script folds and filters the page of a session; a page reads whole without it. The Content-Security-Policy allows
exactly this style and this script, by their digests. So nothing that a page shows can act as style or script.
"""

from __future__ import annotations

import base64
import hashlib
from html import escape
from typing import Any

from aver.text import escape_unprintable

PAGE_STYLE = """
:root { color-scheme: light dark;
  --back: #fbfaf8; --card: #ffffff; --text: #1d1c1a; --soft: #5f5b55; --line: #dedad3; --accent: #3451a4;
  --good: #1c6b36; --bad: #a8201a; --warn: #7d5200; --good-back: #e6f4e9; --bad-back: #fbe9e7; --warn-back: #faf0d7;
  --code: #f4f2ee; --asked: #eef1fa; }
@media (prefers-color-scheme: dark) { :root {
  --back: #151517; --card: #1c1c1f; --text: #e8e6e2; --soft: #a8a49c; --line: #35353a; --accent: #9db4ff;
  --good: #7fd197; --bad: #ff9a90; --warn: #ecc468; --good-back: #15301d; --bad-back: #3a1a18; --warn-back: #332a12;
  --code: #232327; --asked: #20263a; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--back); color: var(--text);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif; }
a { color: var(--accent); }
:focus-visible { outline: 2px solid var(--accent); outline-offset: 2px; border-radius: 3px; }
.skip { position: absolute; left: -999px; }
.skip:focus { left: 1rem; top: .5rem; background: var(--card); padding: .25rem .5rem; }
header, main, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
header { padding-top: 2rem; }
h1 { font-size: 1.6rem; line-height: 1.25; margin: 0 0 .25rem; overflow-wrap: anywhere; }
h2 { font-size: 1.1rem; margin: 0; }
main > section { margin: 1.75rem 0; }
h3 { font-size: 1rem; margin: 1rem 0 .25rem; overflow-wrap: anywhere; }
p { margin: .35rem 0; overflow-wrap: anywhere; }
.meta, .aside, time, .place { color: var(--soft); }
.meta code { font-size: .9em; }
ul.totals { list-style: none; padding: 0; margin: .75rem 0; display: flex; flex-wrap: wrap; gap: .4rem; }
ul.totals li { background: var(--card); border: 1px solid var(--line); border-radius: 999px; padding: .05rem .7rem;
  font-size: .875rem; }
.badge { display: inline-block; border-radius: 6px; padding: .3rem .75rem; font-weight: 600; }
.verified { color: var(--good); background: var(--good-back); }
.qualified, .empty { color: var(--warn); background: var(--warn-back); }
.failed { color: var(--bad); background: var(--bad-back); }
.tools { position: sticky; top: 0; z-index: 1; background: var(--back); border-bottom: 1px solid var(--line);
  padding: .6rem 0; margin-top: 1rem; display: flex; flex-wrap: wrap; gap: .4rem; align-items: center; }
.tools[hidden] { display: none; }
.tools button, .tools input { font: inherit; font-size: .875rem; color: inherit; background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: .2rem .65rem; }
.tools button[aria-pressed=true] { border-color: var(--accent); color: var(--accent); font-weight: 600; }
.tools input { flex: 1 1 10rem; min-width: 8rem; }
.turn { margin: 1.5rem 0; }
.asked { background: var(--asked); border-left: 4px solid var(--accent); border-radius: 0 8px 8px 0;
  padding: .6rem 1rem; }
.asked pre { background: none; padding: 0; border: 0; margin: 0; font: inherit; font-weight: 500; }
.asked .place { font-size: .8rem; }
ol.steps { list-style: none; margin: .5rem 0 0; padding: 0; }
li.step { display: grid; grid-template-columns: 4.5rem minmax(0, 1fr); gap: 0 .75rem; padding: .5rem 0;
  border-bottom: 1px solid var(--line); }
li.step[hidden] { display: none; }
li.step > time { font-size: .8rem; padding-top: .2rem; font-variant-numeric: tabular-nums; }
.line { margin: 0; overflow-wrap: anywhere; }
.mark { font-weight: 700; }
.success .mark { color: var(--good); }
.failure .mark, .blocked .mark, .blocked .sum, .error { color: var(--bad); }
.pending .mark, .partial .mark, .unknown .sum, .unreadable .sum { color: var(--warn); }
.sum { font-weight: 600; }
.note .sum, .session .sum { font-weight: 400; color: var(--soft); }
.aside { font-size: .85rem; }
.said pre { background: none; border: 0; padding: 0; font: inherit; }
.prompt .said { background: var(--asked); border-left: 3px solid var(--accent); border-radius: 0 6px 6px 0;
  padding: .1rem .75rem; }
.note .said, .session .said { color: var(--soft); font-size: .9rem; }
.thinking { color: var(--soft); font-style: italic; }
.thinking pre { background: none; border: 0; padding: 0 0 0 .75rem; border-left: 2px solid var(--line);
  border-radius: 0; font: inherit; color: var(--soft); }
pre { margin: .4rem 0; padding: .55rem .75rem; background: var(--code); border: 1px solid var(--line);
  border-radius: 6px; font: .82rem/1.5 ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace;
  white-space: pre-wrap; overflow-wrap: anywhere; tab-size: 4; }
pre.diff { padding: .4rem 0; overflow-x: auto; white-space: pre; overflow-wrap: normal; }
pre.diff span { display: block; padding: 0 .75rem; min-width: max-content; }
.added { background: var(--good-back); color: var(--good); }
.removed { background: var(--bad-back); color: var(--bad); }
pre.diff .file { font-weight: 600; }
pre.diff .place { color: var(--soft); }
.label { font-size: .8rem; color: var(--soft); margin: .3rem 0; }
details > summary { cursor: pointer; color: var(--soft); font-size: .85rem; overflow-wrap: anywhere; }
q { font-style: italic; }
details.agent { border-left: 3px solid var(--line); padding-left: .9rem; margin: .25rem 0 .5rem; }
details.agent > summary { font-size: 1rem; font-weight: 600; color: var(--text); padding: .3rem 0; }
details.seal { margin-top: .25rem; }
details.seal > summary { font-size: .75rem; }
dl { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0 .9rem; margin: .3rem 0;
  font-size: .8rem; }
dt { color: var(--soft); }
dd { margin: 0; overflow-wrap: anywhere; }
code { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "Liberation Mono", monospace; }
.gate { font-size: .88rem; border-left: 3px solid var(--line); padding-left: .6rem; color: var(--soft); }
.gate.denies { border-color: var(--bad); color: var(--bad); }
.differs, .differs > summary { color: var(--warn); font-size: .88rem; }
#verdict { background: var(--card); border: 1px solid var(--line); border-radius: 8px; padding: 1rem 1.25rem;
  margin: 2rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .88rem; margin-top: .75rem; }
th, td { text-align: left; vertical-align: top; padding: .2rem .75rem .2rem 0; border-top: 1px solid var(--line);
  overflow-wrap: anywhere; }
th { font-weight: 600; white-space: nowrap; }
td:nth-child(2), td.name { white-space: nowrap; }
td code { font-size: .82rem; }
td.passed { color: var(--good); } td.failed { color: var(--bad); background: none; }
td.warning, td.matters { color: var(--warn); } td.not_checked { color: var(--soft); } td.matters { color: var(--warn); }
footer { color: var(--soft); font-size: .85rem; padding-bottom: 3rem; }
@media (max-width: 40rem) { li.step { grid-template-columns: minmax(0, 1fr); } header { padding-top: 1.25rem; }
  header, main, footer { padding-left: .9rem; padding-right: .9rem; } details.agent { padding-left: .5rem; }
  table:not(.sessions) thead { position: absolute; clip-path: inset(50%); }
  table:not(.sessions) tr { display: block; border-top: 1px solid var(--line); padding: .3rem 0; }
  table:not(.sessions) :is(th, td) { display: block; border: 0; padding: 0; white-space: normal; } }
.lists { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(18rem, 100%), 1fr));
  gap: 0 2rem; margin: 1rem 0; }
.lists h2 { font-size: 1.1rem; margin: .5rem 0; }
.lists ul { margin: 0; padding-left: 1.1rem; }
.lists li { margin: .35rem 0; overflow-wrap: anywhere; }
.wide { overflow-x: auto; }
table.sessions td { font-variant-numeric: tabular-nums; }
h2.session { margin: 2rem 0 0; font-size: 1.25rem; overflow-wrap: anywhere; }
@media print { .tools, .skip { display: none !important; }
  :root { color-scheme: light; --back: #fff; --card: #fff; --text: #1d1c1a; --soft: #5f5b55; --line: #dedad3;
    --accent: #3451a4; --good: #1c6b36; --bad: #a8201a; --warn: #7d5200; --good-back: #e6f4e9; --bad-back: #fbe9e7;
    --warn-back: #faf0d7; --code: #f4f2ee; --asked: #eef1fa; }
  body { background: #fff; color: #000; font-size: 10.5pt; }
  header, main, footer { max-width: none; padding-left: 0; padding-right: 0; }
  li.step, tr, .badge, .lists li { break-inside: avoid; } h1, h2 { break-after: avoid; }
  details:not(.seal)::details-content { content-visibility: visible; display: block; height: auto; }
  pre.diff { white-space: pre-wrap; overflow-wrap: anywhere; } pre.diff span { min-width: 0; }
  * { print-color-adjust: exact; -webkit-print-color-adjust: exact; } @page { margin: 16mm 14mm; } }
"""

PAGE_SCRIPT = """
"use strict";
(function () {
  var tools = document.querySelector(".tools");
  var steps = Array.prototype.slice.call(document.querySelectorAll("li.step"));
  var buttons = Array.prototype.slice.call(tools.querySelectorAll("button[data-only]"));
  var input = tools.querySelector("input");
  var only = "";
  function apply() {
    var words = input.value.trim().toLowerCase();
    steps.forEach(function (step) {
      var fits = !only || step.classList.contains(only);
      step.hidden = !fits || (words !== "" && step.textContent.toLowerCase().indexOf(words) < 0);
    });
    buttons.forEach(function (button) {
      button.setAttribute("aria-pressed", String(button.getAttribute("data-only") === only));
    });
  }
  buttons.forEach(function (button) {
    button.addEventListener("click", function () { only = button.getAttribute("data-only"); apply(); });
  });
  input.addEventListener("input", apply);
  tools.querySelector("button[data-fold]").addEventListener("click", function (event) {
    var open = event.currentTarget.getAttribute("aria-pressed") !== "true";
    event.currentTarget.setAttribute("aria-pressed", String(open));
    document.querySelectorAll("details.long").forEach(function (part) { part.open = open; });
  });
  tools.hidden = false;
})();
"""


def _csp_hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        f"style-src {_csp_hash(PAGE_STYLE)}",
        f"script-src {_csp_hash(PAGE_SCRIPT)}",
        "base-uri 'none'",
        "form-action 'none'",
    )
)
"""The page loads nothing, and no script runs but the one above."""


def escape_text(text: Any) -> str:
    """The text, escaped for an element or an attribute. Unprintable characters are written out."""
    return escape(escape_unprintable(str(text).replace("\r", ""), keep="\n\t"), quote=True)


def begin_page(title: str, mark: str = "") -> str:
    """The beginning of a page, up to its body. `mark` is an element of the head that says what the file is."""
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
{mark}
<meta http-equiv="Content-Security-Policy" content="{CONTENT_SECURITY_POLICY}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<title>{escape_text(title)}</title>
<style>{PAGE_STYLE}</style>
</head>
<body>
"""

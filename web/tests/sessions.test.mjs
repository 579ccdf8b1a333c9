// Pure parts of the page's second half, run by their sources: node --test web/tests

import assert from "node:assert/strict";
import { test } from "node:test";
import { headPath, markDiff, splitRows, textOf } from "../src/parts/diff_rows.ts";
import { parseTerminal } from "../src/parts/terminal_text.ts";
import { arrangeStory, isWanted, rowHeight } from "../src/parts/timeline_rows.ts";
import { ROWS_MAX, visibleRange } from "../src/parts/virtual_rows.ts";
import { visible } from "../src/parts/visible.ts";
import { joinShares } from "../src/sessions/acts.ts";
import { countChangedLines, readDiff } from "../src/sessions/changed_lines.ts";
import { actionLine } from "../src/sessions/decisions.ts";
import { changedPaths, diffOfFile } from "../src/sessions/files.ts";
import { formatMoney, labelledTexts, shortenArguments, valueText } from "../src/sessions/labels.ts";
import { OUTCOMES_MIN, reliability, riskClass, wilson } from "../src/sessions/risk.ts";
import { readStep } from "../src/sessions/step.ts";
import { describeCheck } from "../src/sessions/trace.ts";
import { readJson, toJson } from "../src/verify/json.ts";
import { Sealed } from "../src/verify/sealed.ts";

const seal = { hash: "h", signature: "", signature_pq: "", signed_at: "2026-01-01T00:00:00+00:00", signed_by: "s" };
const step = (content) => readStep(new Sealed(typeof content === "string" ? content : JSON.stringify(content), seal, "claude-code.x"));

test("the head of a diff has the whole path that the record names", () => {
  assert.equal(headPath("+++ b/home/ada/a.py", ["/home/ada/a.py"]), "/home/ada/a.py");
  assert.equal(headPath("+++ b/src/a.py", ["/home/ada/a.py"]), "src/a.py");
  assert.equal(headPath("+++ b/src/a.py", []), "src/a.py");
  assert.equal(headPath("+++ b//etc/hosts", []), "/etc/hosts");
  assert.equal(headPath("+++ /dev/null", ["/home/ada/a.py"]), "/dev/null");
  assert.equal(headPath("--- a/home/ada/a.py", ["/home/ada/a.py"]), "");
});

test("an unreadable record is a step that says so", () => {
  for (const text of ["{", "[]", "\ud800", '{"a":1,"a":2}', "1".repeat(5)]) {
    const found = step(text);
    assert.equal(found.what, "unreadable", text);
    assert.match(found.summary, /cannot be read/);
  }
});

test("sections of any type are read", () => {
  for (const value of [null, 1, "x", [], { a: [] }, true]) {
    const names = ["trigger", "context", "reasoning", "authority", "execution", "outcome", "type", "sequence", "domain", "id"];
    assert.doesNotThrow(() => step(Object.fromEntries(names.map((name) => [name, value]))));
  }
});

test("a number is written as the record writes it", () => {
  assert.equal(valueText(readJson('{"a": 1.50, "b": 12345678901234567890, "c": [1e-7, -0]}')), '{"a": 1.50, "b": 12345678901234567890, "c": [1e-7, -0]}');
  assert.equal(shortenArguments(readJson('{"n": 10000000000000000000000001}')), '{"n": 10000000000000000000000001}');
});

test("money below a cent is not nothing", () => {
  assert.deepEqual([0, 0.004, 0.01, 2.5].map(formatMoney), ["$0.00", "<$0.01", "$0.01", "$2.50"]);
});

test("outputs come first, and the same text once", () => {
  const value = toJson({ code: 3, stderr: "bad\nworse", stdout: "a\nb", content: "head\na\nb" });
  assert.deepEqual(labelledTexts(value).map(({ name, text }) => [name, text]), [["", "head\na\nb"], ["stderr", "bad\nworse"], ["", "code 3"]]);
});

const DIFF = "--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,3 @@\n one\n--- two\n-three four five\n+++ two\n+three 4 five\n";

test("a hunk's header says which lines are its own", () => {
  assert.deepEqual(countChangedLines(DIFF), [2, 2]);
  assert.deepEqual(readDiff(DIFF).map(({ sort, old, next }) => [sort, old, next]), [
    ["file", null, null], ["file", null, null], ["place", null, null],
    ["same", 1, 1], ["removed", 2, null], ["removed", 3, null], ["added", null, 2], ["added", null, 3],
  ]);
});

test("changed words are marked inside the line, and no text is lost", () => {
  const lines = markDiff(DIFF);
  const added = lines.at(-1);
  assert.deepEqual(added.pieces.filter((piece) => piece.isChanged).map((piece) => piece.text), ["4"]);
  assert.deepEqual(lines.map(textOf), readDiff(DIFF).map((line) => line.text));
  const rows = splitRows(lines);
  assert.deepEqual(rows.at(-1).map(textOf), ["three four five", "three 4 five"]);
});

test("the marks are those of the most characters that both lines have in order", () => {
  const common = (one, other) => {
    if (!one.length || !other.length) return 0;
    if (one[0] === other[0]) return one[0].length + common(one.slice(1), other.slice(1));
    return Math.max(common(one.slice(1), other), common(one, other.slice(1)));
  };
  const words = ["ab", "ab", "c", " ", "-", "é1"];
  const line = (seed) => Array.from({ length: seed % 9 }, (_, at) => words[(seed >> at) % words.length]).join("-");
  for (let seed = 1; seed < 400; seed++) {
    const texts = [line(seed), line(seed * 7)];
    const marked = markDiff(`@@ -1,1 +1,1 @@\n-${texts[0]}\n+${texts[1]}\n`).slice(1);
    assert.deepEqual(marked.map(textOf), texts);
    const kept = marked.map(({ pieces }) => pieces.filter((piece) => !piece.isChanged).map((piece) => piece.text).join(""));
    const best = common(...texts.map((text) => text.match(/[\p{L}\p{N}]+|\s+|[^]/gu) ?? []));
    // A pair with little in common has no marks.
    if (marked.some(({ pieces }) => pieces.some((piece) => piece.isChanged))) assert.deepEqual([kept[0], kept[0].length], [kept[1], best]);
    else assert.ok(texts[0] === texts[1] || best < 0.3 * Math.max(...texts.map((text) => text.length)));
  }
});

test("a very long line is marked whole, and quickly", () => {
  const [one, other] = ["a ".repeat(200_000), "b ".repeat(200_000)];
  const lines = markDiff(`@@ -1,1 +1,1 @@\n-${one}\n+${other}\n`);
  assert.ok(lines.every((line) => line.pieces.length === 1));
});

test("a diff of many long lines has marks in the first ones only, so that the page goes on", () => {
  const pair = `-${"+-*/x".repeat(180)}\n+${"-+*/y".repeat(180)}\n`;
  const lines = markDiff(`@@ -1,400 +1,400 @@\n${pair.repeat(400)}`);
  const marked = lines.filter((line) => line.pieces.length > 1).length;
  assert.ok(marked > 0 && marked <= 10, String(marked));
});

test("colours are carried out, and nothing else", () => {
  assert.deepEqual(parseTerminal("a\x1b[32mgreen\x1b[0m\x1b[1;91mx"), [{ text: "a" }, { text: "green", front: 2 }, { text: "x", front: 9, isBold: true }]);
  const text = "1\x1b[2J2\x1b]8;;http://evil.example\x07link\x1b]8;;\x07\r3\r\n4";
  const pieces = parseTerminal(text);
  assert.ok(pieces.filter((piece) => piece.isMark).length >= 4);
  assert.equal(pieces.filter((piece) => !piece.isMark).map((piece) => piece.text).join(""), "12link3\n4");
});

test("no text is hidden by its colours", () => {
  assert.deepEqual(parseTerminal("\x1b[30;40mhidden\x1b[8mconcealed"), [{ text: "hidden", front: 0 }, { text: "concealed", front: 0 }]);
  assert.deepEqual(parseTerminal("\x1b[38;2;255;0;0mred\x1b[48;5;231;38;5;231mwhite"), [{ text: "red", front: 9 }, { text: "white", front: 15 }]);
});

test("broken escapes stay text", () => {
  for (const text of ["\x1b", "\x1b[", "\x1b[9999999999999999999m!", "\x1b[38;5m!", "\x1b]never ends", "\x1b[:::::m!"]) {
    assert.doesNotThrow(() => parseTerminal(text));
  }
  assert.ok(parseTerminal("\x1b[31m".repeat(20_000)).length < 10);
  assert.ok(parseTerminal("\x1b[31ma\x1b[0mb".repeat(5_000)).length <= 4_001);
});

test("at most 120 rows are drawn, and the window is full", () => {
  const tops = Float64Array.from({ length: 100_001 }, (_, at) => at * 36);
  for (const [top, height] of [[0, 900], [1_800_000, 900], [3_600_000 - 900, 900], [0, 1e6], [-50, 900], [1e9, 900]]) {
    const [from, to] = visibleRange(tops, top, height);
    assert.ok(to - from <= ROWS_MAX, `${top} ${height}`);
    if (height === 900 && top >= 0 && top < 1e8) assert.ok(tops[from] <= top && tops[to] >= Math.min(top + height, tops[100_000]), `${top}`);
  }
  assert.deepEqual(visibleRange(Float64Array.of(0), 0, 900), [0, 0]);
});

const entry = (place, more = {}, changes = {}) => ({
  depth: 0, chain: "c", place, decision: null, additions: [], agent: "",
  step: { ...step("{"), what: "call", sequence: place, status: "success", summary: "Bash: ls", call: "Bash", ...more },
  ...changes,
});
const finding = (sequence, code = "HASH_MISMATCH") => ({ check: "hash", status: "failed", code, words: "w", place: { chain: "c", sequence, source: null }, proof: null });

test("a break stands at its place, and rows after it are marked", () => {
  const rows = arrangeStory([entry(0), entry(1), entry(2)], () => [finding(1)]);
  assert.deepEqual(rows.map((row) => [row.sort, row.isAfterBreak]), [["command", false], ["break", true], ["command", true], ["command", true]]);
});

test("missing records are one row that counts them", () => {
  const rows = arrangeStory([entry(0), { ...entry(1), step: { ...entry(1).step, sequence: 6 } }, { ...entry(2), step: { ...entry(2).step, sequence: 7 } }], () => [finding(1, "SEQUENCE_GAP"), finding(2, "SEQUENCE_GAP")]);
  assert.deepEqual(rows.map((row) => row.words || row.sort), ["command", "records 1 to 5 are missing", "break", "command", "command"]);
});

test("a cut end is a card after the last row, and a cap", () => {
  const rows = arrangeStory([entry(0)], () => [finding(33, "TRUNCATED"), finding(33, "TRUNCATED")]);
  assert.deepEqual(rows.map((row) => row.words || row.sort), ["command", "break", "The end was cut: w"]);
  assert.deepEqual(arrangeStory([entry(0)], () => [finding(33, "ROLLBACK")]).map((row) => row.sort), ["command", "break"]);
});

test("figures lead to their rows", () => {
  const rows = arrangeStory([entry(0, { lines: [1, 0] }), entry(1, { status: "failure" }), entry(2, { status: "blocked" })], () => []);
  const counts = Object.fromEntries(["call", "edit", "failure", "denial", "command"].map((wanted) => [wanted, rows.filter((row) => isWanted(row, wanted)).length]));
  assert.deepEqual(counts, { call: 3, edit: 1, failure: 1, denial: 1, command: 2 });
});

test("a prompt is as tall as its lines, and one that was cut has a line more", () => {
  const prompt = (asked) => arrangeStory([entry(0, { what: "prompt", asked })], () => [])[0];
  assert.equal(rowHeight(prompt("one"), 800, false), 38);
  assert.ok(rowHeight(prompt("a\nb\nc"), 800, false) === 38 + 44);
  assert.equal(rowHeight(prompt("x\n".repeat(199)), 800, false), 16 + 200 * 22);
  assert.equal(rowHeight(prompt("字".repeat(100)), 800, false), rowHeight(prompt("x".repeat(200)), 800, false));
  assert.equal(rowHeight(arrangeStory([entry(0, { what: "prompt", asked: "one", askedLeft: 3 })], () => [])[0], 800, false), 38 + 22);
  assert.equal(rowHeight(arrangeStory([entry(0)], () => [])[0], 800, true), 56);
});

test("files are named by effects, or by the summary", () => {
  assert.deepEqual(changedPaths(entry(0, { sideEffects: ["edited a b.py", "ran x", "wrote c.py"] }).step), ["a b.py", "c.py"]);
  assert.deepEqual(changedPaths(entry(0, { summary: "Edit: x.py (+2/-1)" }).step), ["x.py"]);
  const two = "--- a/x.py\n+++ b/x.py\n@@ -1 +1 @@\n-a\n+b\n--- a/y.py\n+++ b/y.py\n@@ -1 +1 @@\n-c\n+d\n";
  assert.match(diffOfFile(two, "y.py"), /^--- a\/y\.py/);
  assert.equal(diffOfFile(two, "z.py"), two);
});

test("too few outcomes say nothing", () => {
  const cases = Array.from({ length: OUTCOMES_MIN }, (_, at) => ({ score: at / OUTCOMES_MIN, outcome: at % 3 ? "well" : "failed" }));
  assert.equal(reliability(cases.slice(1)), null);
  const bins = reliability(cases);
  assert.equal(bins.reduce((sum, bin) => sum + bin.count, 0), OUTCOMES_MIN);
  assert.deepEqual(wilson(0, 0), [0, 1]);
  const [low, high] = wilson(0, 10);
  assert.ok(low === 0 && high > 0.2 && high < 0.35);
});

test("two shares are joined bit by bit", () => {
  const share = (outputs, more = {}) => ({ action_id: "a", request_sha256: "r", program_id: "p", server_id: 0, outputs, ...more });
  const commit = (one, other) => ({ result: toJson({ request_sha256: "r", program_id: "p", commit: { policy0: one, policy1: other } }) });
  const [one, other] = [{ allow_pre: 0, need_confirm: 1, patch0: 0, patch1: 1 }, { allow_pre: 1, need_confirm: 1, patch0: 0, patch1: 0 }];
  const { allow, confirm, patch, isOfThisAct } = joinShares(commit(share(one), share(other)), "a");
  assert.deepEqual([allow, confirm, patch, isOfThisAct], [1, 0, 2, true]);
  assert.equal(joinShares(commit(share(one), share(other, { action_id: "b" })), "a").isOfThisAct, false);
  assert.equal(joinShares(commit(share(one), share({ ...other, allow_pre: 2 })), "a").allow, null);
  assert.equal(joinShares(commit(share(one), {}), "a"), null);
});

test("checks of evidence in words", () => {
  const words = (text) => describeCheck(readJson(text));
  assert.equal(words('{"exit_code": ["==", 1]}'), "exit code == 1");
  assert.equal(words('{"json": {"pointer": "/a", "is": [">=", 1.50]}}'), "JSON at /a >= 1.50");
  assert.equal(words('{"tests": {"format": "tap", "counts": {"passed": ["==", 2], "failed": ["==", 1]}}}'), "passed == 2, failed == 1 (tap)");
  assert.match(words('{"magic": 1}'), /does not know/);
});

const read = (value) => readJson(JSON.stringify(value));

test("an action is named by its command, its tool or its type, and by what it is about", () => {
  const lines = [
    [{ tool: "Bash", type: "shell_exec", arguments: { command: "pytest -q" } }, "pytest -q"],
    [{ tool: "Edit", type: "code_edit", arguments: { file_path: "a.py" }, files: ["b.py"] }, "Edit a.py"],
    [{ tool: "", type: "file_read", arguments: {}, files: ["shop.py"] }, "read shop.py"],
    [{ tool: "", type: "file_delete", files: ["a", "b", "c"] }, "delete a and 2 more"],
    [{ tool: "PostWebhook", arguments: { domain: "example.com", path: "/", recipient: "a@example.com" } }, "PostWebhook example.com/"],
    [{ tool: "FetchResource", arguments: { domain: "example.com", resource_id: "a/b" } }, "FetchResource example.com/a/b"],
    [{ tool: "SendMessage", arguments: { domain: "example.com", recipient: "bob@example.com" } }, "SendMessage bob@example.com"],
    [{ tool: "Lookup", arguments: { domain: "example.com" } }, "Lookup example.com"],
    [{ tool: "", type: "odd_type" }, "odd type"],
    [{}, "an action"],
  ];
  for (const [action, line] of lines) assert.equal(actionLine(read(action)), line);
});

test("risk is low or high only by the whole interval", () => {
  const classOf = (interval, thresholds) => riskClass({ interval: read(interval), thresholds: read(thresholds) });
  assert.equal(classOf([0.01, 0.05], { pass_below: 0.05, skip_above: null }), "low");
  assert.equal(classOf([0.01, 0.051], { pass_below: 0.05, skip_above: null }), "unsure");
  assert.equal(classOf([0.95, 0.99], { pass_below: 0.05, skip_above: null }), "unsure");
  assert.equal(classOf([0.91, 0.99], { pass_below: 0.05, skip_above: 0.9 }), "high");
  assert.equal(classOf([0.9, 0.99], { pass_below: 0.05, skip_above: 0.9 }), "unsure");
  assert.equal(classOf(null, { pass_below: 0.05, skip_above: null }), "");
});

test("no character of a text stays invisible", () => {
  const texts = [
    ["plain\ttext\n", "plain\ttext\n"],
    ["a\u202eb\u200bc\x1b[0m\r", "a⟨U+202E⟩b⟨U+200B⟩c⟨U+001B⟩[0m⟨U+000D⟩"],
    ["ls\u{e0041}\u{e007f}", "ls⟨U+E0041⟩⟨U+E007F⟩"],
    ["\u115f\u3164\uffa0\u034f\u2800\u180b", "⟨U+115F⟩⟨U+3164⟩⟨U+FFA0⟩⟨U+034F⟩⟨U+2800⟩⟨U+180B⟩"],
    ["x\ufe0f\u{e0100}", "x⟨U+FE0F⟩⟨U+E0100⟩"],
    ["\u26a0\ufe0f\ufe0f", "\u26a0\ufe0f⟨U+FE0F⟩"],
    ["e\u0301\u0302\u0303", "e\u0301\u0302⟨U+0303⟩"],
    ["\ud83d \u{1f600}", "⟨U+D83D⟩ \u{1f600}"],
    ["żółw שלום 漢字", "żółw שלום 漢字"],
  ];
  for (const [given, shown] of texts) assert.equal(visible(given), shown);
});

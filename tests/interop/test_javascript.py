"""Capsules sealed by JavaScript, which writes numbers and times in its own way, verify as they were sealed."""

from __future__ import annotations

import json
import subprocess
from typing import Any

import pytest

from aver import PublicKey, Ring, Sealed, Verdict, canonical_bytes
from aver.capsule.sealed import content_hash
from aver.verdict import ChainJudge, Rules, conclude
from support.node import find_node

SCRIPT = r"""
const crypto = require("node:crypto");
const { publicKey, privateKey } = crypto.generateKeyPairSync("ed25519");
const raw = publicKey.export({ type: "spki", format: "der" }).subarray(-32).toString("hex");

const byCodePoint = (a, b) => {
  const left = Array.from(a, c => c.codePointAt(0)), right = Array.from(b, c => c.codePointAt(0));
  for (let i = 0; i < Math.min(left.length, right.length); i++) if (left[i] !== right[i]) return left[i] - right[i];
  return left.length - right.length;
};
const isFloat = path => path === "reasoning.confidence" || /^reasoning\.options\.\d+\.feasibility$/.test(path);
function canonical(value, path = "") {
  if (Array.isArray(value)) return "[" + value.map((v, i) => canonical(v, `${path}.${i}`)).join(",") + "]";
  if (value !== null && typeof value === "object")
    return "{" + Object.keys(value).sort(byCodePoint)
      .map(k => JSON.stringify(k) + ":" + canonical(value[k], path ? `${path}.${k}` : k)).join(",") + "}";
  if (typeof value === "number" && isFloat(path) && Number.isInteger(value)) return value.toFixed(1);
  return JSON.stringify(value);
}
function capsule(number, previous) {
  return {
    id: crypto.randomUUID(), type: "agent", domain: "agents", parent_id: null,
    sequence: number, previous_hash: previous, spec_version: "1.0",
    trigger: { type: "user_request", source: "js",
      timestamp: new Date(1768478400202 + number).toISOString().replace("Z", "+00:00"),
      request: "h\u00e9llo \u{1F600} \u2028 \u007f <&>", correlation_id: null, user_id: null },
    context: { agent_id: "a", session_id: null,
      environment: { "\u{1F600}": 1, "\uff5e": 2, "e\u0301": 3, "\u00e9": 4 } },
    reasoning: { analysis: "", options: [{ id: "o", description: "d", pros: [], cons: [],
      estimated_impact: {}, feasibility: 1, risks: [], selected: true, rejection_reason: "" }],
      options_considered: ["d"], selected_option: "d", reasoning: "",
      confidence: number === 0 ? 1 : number === 1 ? 0 : 0.5, model: null, prompt_hash: null },
    authority: { type: "autonomous", approver: null, policy_reference: null, chain: [], escalation_reason: null },
    execution: { tool_calls: [], duration_ms: 5, resources_used: {} },
    outcome: { status: "success", result: null, summary: "", error: null, side_effects: [], metrics: METRICS[number] },
  };
}
const METRICS = [{}, { whole: 1.0, big: 9007199254740991 },
  { tiny: 1e-7, small: 0.00001, big: 1e21, huge: 123456789012345680000 },
  { x: [1e-7, { y: 5e-324 }], minus: -0.000001 }];
const sealed = [];
let previous = null;
for (let number = 0; number < METRICS.length; number++) {
  const content = capsule(number, previous);
  const hash = crypto.createHash("sha3-256").update(canonical(content), "utf8").digest("hex");
  const signature = crypto.sign(null, Buffer.from(hash, "ascii"), privateKey).toString("hex");
  const seal = { hash, signature, signature_pq: "", signed_at: new Date().toISOString(), signed_by: raw.slice(0, 16) };
  sealed.push({ ...content, ...seal });
  previous = hash;
}
console.log(JSON.stringify({ key: raw, texts: sealed.map(s => JSON.stringify(s)) }));
"""


@pytest.fixture(scope="module")
def sealed_by_javascript() -> dict[str, Any]:
    result = subprocess.run([find_node(), "-e", SCRIPT], capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def judged(texts: list[str], key: str) -> Verdict:
    judge = ChainJudge(Rules(Ring.pin([PublicKey(key)])), chain="js.x")
    for text in texts:
        judge.judge(Sealed.from_sealed_json(text))
    return conclude("javascript", judge.finish())


def test_all_of_them_are_intact(sealed_by_javascript: dict[str, Any]) -> None:
    texts, key = sealed_by_javascript["texts"], sealed_by_javascript["key"]
    verdict = judged(texts, key)
    assert verdict.first_bad is None
    assert verdict.records == 4
    assert (
        verdict.check("signature").status
        == verdict.check("links").status
        == verdict.check("content").status
        == "passed"
    )
    assert [(f.code, f.place.sequence) for f in verdict.findings] == [("NOT_CANONICAL", 2), ("NOT_CANONICAL", 3)]
    assert verdict.status == "qualified"


def test_whole_numbers_and_milliseconds_are_canonical_as_they_are(sealed_by_javascript: dict[str, Any]) -> None:
    texts, key = sealed_by_javascript["texts"][:2], sealed_by_javascript["key"]
    assert '"confidence":1,' in texts[0]
    assert ".202+00:00" in texts[0]
    assert judged(texts, key).status == "verified"
    sealed = Sealed.from_sealed_json(texts[0])
    assert b'"confidence":1.0,' in sealed.canonical
    assert content_hash(canonical_bytes(sealed.to_dict())) == sealed.hash


def test_changes_are_found_in_them_too(sealed_by_javascript: dict[str, Any]) -> None:
    texts, key = sealed_by_javascript["texts"], sealed_by_javascript["key"]
    for place, (old, new) in enumerate(
        [('"confidence":1,', '"confidence":1.5,'), ('"whole":1,', '"whole":2,'), ("1e-7", "1e-8"), ("5e-324", "1e-323")]
    ):
        assert old in texts[place]
        changed = [*texts[:place], texts[place].replace(old, new), *texts[place + 1 :]]
        verdict = judged(changed, key)
        assert (verdict.first_bad.code, verdict.first_bad.place.sequence) == ("HASH_MISMATCH", place)


def test_numbers_are_the_same_only_as_they_were_sealed(sealed_by_javascript: dict[str, Any]) -> None:
    """1e-7 and 1e-07 are one number and two documents: whoever rewrites the file in Python's way changes its bytes."""
    text, key = sealed_by_javascript["texts"][2], sealed_by_javascript["key"]
    rewritten = json.dumps(json.loads(text))
    assert "1e-07" in rewritten
    judge = ChainJudge(Rules(Ring.pin([PublicKey(key)])), start=None)
    judge.judge(Sealed.from_sealed_json(rewritten))
    assert [finding.code for finding in judge.finish().findings if finding.status == "failed"] == ["HASH_MISMATCH"]

/** One request for an approval: the exact action, why it is asked, who decides, and how to answer. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { DiffView } from "../../parts/diff.tsx";
import { Value } from "../../parts/json.tsx";
import { Loading, Problem, useAnswer } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { Command, Copy, Hex, Text, Time } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { link } from "../../route.ts";
import { readBlob } from "../../records.ts";
import { isDiff } from "../../sessions/changed_lines.ts";
import { commandLine } from "../../sessions/decisions.ts";
import { asObject, asTexts, isTruthy } from "../../sessions/values.ts";
import { liveState, spoken, thing } from "../../state.ts";
import { at } from "../../verify/block.ts";
import { type Json, JsonNumber, type JsonObject, isObject, readJson } from "../../verify/json.ts";
import { cutText } from "../../verify/text.ts";
import type { ApprovalCase } from "../../worker/protocol.ts";
import { ScoreBar } from "../capsule/decision.tsx";
import { CASE_WORDS, CaseState, describeCase, timeLeft } from "./case_line.tsx";
import { readCases, stateOf } from "./cases.ts";
import { PasskeyAnswer } from "./passkey.tsx";

/** Characters of an id that name a request on the command line. */
const ID_SHOWN = 8;

/** The text of a part that is kept beside the record because it is large; null for a part that is in the record. */
async function readApart(value: Json | undefined): Promise<string | null> {
  const digest = isObject(value) && value.size === 1 ? at(value, "blob", "digest") : undefined;
  if (typeof digest !== "string") return null;
  const bytes = await readBlob(digest);
  if (bytes === null) throw new Error("A part of the request is kept beside its record, and is missing, damaged or too large. Do not answer it.");
  return new TextDecoder().decode(bytes);
}

/** The parts of a request: the action, the rest that the digest does not cover, and the diff. */
async function readParts(content: Json): Promise<{ action: JsonObject; beside: JsonObject; diff: string }> {
  const [action, beside, diff] = await Promise.all(["action", "beside", "diff"].map((name) => readApart(at(content, name))));
  const whole = (text: string | null | undefined, name: string) => asObject(text ? readJson(text) : at(content, name));
  const shown = at(content, "diff");
  const bound = whole(action, "action");
  const rest = [...whole(beside, "beside")].filter(([name]) => name !== "description" || !bound.has(name));
  return { action: bound, beside: new Map(rest), diff: diff ?? (typeof shown === "string" ? shown : "") };
}

function Levels({ one }: { one: ApprovalCase }): JSX.Element {
  return (
    <Table label="Levels" heads={["Level", "Who decides", "How many", "From"]}>
      {one.levels.map((level, index) => (
        <tr key={index} class={index + 1 === one.floor ? "current" : ""}>
          <td>{index + 1}{index + 1 === one.floor && stateOf(one) === "pending" ? " (decides now)" : ""}</td>
          <td>{level.approvers.map((name) => {
            const key = one.approvers.find((approver) => approver.identity === name);
            return <p key={name} class="tight"><Text>{name}</Text> {key ? <span class="beside"><Hex>{key.fingerprint}</Hex> <Text>{key.custody}</Text></span> : null}</p>;
          })}</td>
          <td>{level.quorum} of {level.approvers.length}</td>
          <td>{level.after ? `${level.after} s after it was opened` : "at once"}</td>
        </tr>
      ))}
    </Table>
  );
}

function Votes({ one }: { one: ApprovalCase }): JSX.Element {
  if (!one.votes.length) return <p class="soft">Nobody has answered.</p>;
  return (
    <Table label="Answers">
      {one.votes.map((vote) => (
        <tr key={vote.place}>
          <td><Mark name={vote.problem ? "failed" : "verified"} /> <Text>{vote.word}</Text></td>
          <td><Text>{vote.approver || "the gate"}</Text></td>
          <td><Time>{vote.at}</Time></td>
          <td>{vote.problem ? <strong class="bad"><Text>{vote.problem}</Text></strong> : vote.approver ? "the signature holds, by the key that the request names" : ""}</td>
          <td><a href={link("c", one.chain, `p${vote.place}`)}>record</a></td>
        </tr>
      ))}
    </Table>
  );
}

function Answers({ one }: { one: ApprovalCase }): JSX.Element | null {
  const [followed, setFollowed] = useState("");
  const state = stateOf(one);
  useEffect(() => {
    if (followed && state !== "pending") spoken.value = `The request is ${CASE_WORDS[state] ?? state}`;
  }, [state]);
  useEffect(() => {
    if (state !== "pending" || !thing.value?.live || liveState.value.isLive) return undefined;
    // The stream tells of an answer. This is for the time in which it does not.
    const timer = setInterval(readCases, 5_000);
    return () => clearInterval(timer);
  }, [state, liveState.value.isLive]);
  if (state !== "pending") return null;
  const id = one.id.slice(0, ID_SHOWN);
  return (
    <section class="answers">
      <h2>Answer it</h2>
      <p>Run one of these. It shows the whole request again and asks for your passphrase there. This page never asks for one, and takes no key: nobody could tell it from a forged page.</p>
      <p onClick={() => setFollowed("approve")}><Command>{`aver approvals approve ${id}`}</Command></p>
      <p onClick={() => setFollowed("deny")}><Command>{`aver approvals deny ${id} --because "…"`}</Command></p>
      <PasskeyAnswer one={one} />
      {thing.value?.live ? <p class="beside" role="status">This page follows the ledger, and shows the answer when it is there.</p> : <p class="beside">This is a copy: an answer appears in the ledger, not here.</p>}
    </section>
  );
}

/** What would be done: the command or the diff first, then every field that the digest covers. */
function ExactAction({ content }: { content: Json }): JSX.Element {
  const answer = useAnswer(() => readParts(content), [content]);
  if (answer.state === "failed") return <Problem words={answer.words} retry={answer.retry} />;
  if (answer.value === null) return <Loading rows={4} words="Reading the action" />;
  const { action, beside, diff } = answer.value;
  const given = asObject(action.get("arguments"));
  const command = commandLine(given);
  const inner = [...given].filter((entry): entry is [string, string] => typeof entry[1] === "string" && isDiff(entry[1]));
  const fields = new Map([...action].filter(([name]) => name !== "arguments" && name !== "v"));
  const rest = new Map([...given].filter(([name, value]) => !inner.some(([shown]) => shown === name) && !(command && value === command)));
  return (
    <>
      {command ? <pre class="command-line" tabIndex={0} role="region" aria-label="Command"><Text>{command}</Text></pre> : null}
      {diff ? <DiffView diff={diff} /> : null}
      {inner.map(([name, text]) => <DiffView key={name} diff={text} />)}
      {rest.size ? <Value value={rest} /> : null}
      <Value value={fields} />
      {[...beside.values()].some(isTruthy) ? <><h3>Beside it, and not covered by the digest</h3><Value value={beside} /></> : null}
    </>
  );
}

function Why({ one, content }: { one: ApprovalCase; content: Json }): JSX.Element {
  const risk = at(content, "risk");
  const score = at(risk, "score");
  const interval = [at(risk, "low") ?? null, at(risk, "high") ?? null];
  const reasons = asTexts(at(content, "reasons"));
  return (
    <div class="members"><dl>
      <div><dt>reasons</dt><dd>{reasons.length ? <ul class="plain-list">{reasons.map((reason, place) => <li key={place}><Text>{reason}</Text></li>)}</ul> : <span class="soft">none</span>}</dd></div>
      <div><dt>risk</dt><dd>{score instanceof JsonNumber ? <ScoreBar score={score} interval={interval} thresholds={null} /> : <span class="soft">no score</span>}</dd></div>
      <div><dt>rules</dt><dd>{asTexts(at(content, "rules")).map((rule) => <code key={rule}><Text>{rule}</Text></code>)}</dd></div>
      <div><dt>digest of the action</dt><dd><Hex length={64}>{one.digest}</Hex> <Copy text={one.digest} label="copy" /> {one.isSameAction ? <span class="good">computed here: the same</span> : <strong class="bad">another action</strong>}</dd></div>
      <div><dt>opened</dt><dd><Time>{one.opened}</Time></dd></div>
      <div><dt>expires</dt><dd><Time>{one.expires}</Time></dd></div>
      <div><dt>request</dt><dd><code><Text>{one.id}</Text></code> <a href={link("c", one.chain, `p${one.place}`)}>its record</a></dd></div>
    </dl></div>
  );
}

export function Case({ one }: { one: ApprovalCase }): JSX.Element {
  const { content, line } = describeCase(one);
  const state = stateOf(one);
  return (
    <article class="record case">
      <p class="beside"><a href={link("approvals")}>All requests</a></p>
      <h1><code><Text>{cutText(line, 400)}</Text></code></h1>
      <p class="sentence"><CaseState one={one} /> {state === "pending" ? <strong class="countdown">{timeLeft(one.expires)} left; then it is denied</strong> : <Text>{one.reason}</Text>}</p>
      {one.problem ? <Problem words={`The record of this request does not hold: ${one.problem}. Do not answer it.`} /> : null}
      {!one.isSameAction ? <Problem words="The action or the diff in this request is not the one that its digest names. Do not answer it." /> : null}
      {!one.isSignerKnown && !one.problem ? <div class="finding warning"><p>The record of this request was signed by a key that you have not pinned, so the signature was not checked. <a href={link("keys")}>Keys</a></p></div> : null}
      <section class="section"><h2>The exact action</h2><ExactAction content={content} /></section>
      <section class="section"><h2>Why it is asked</h2><Why one={one} content={content} /></section>
      <Answers one={one} />
      <section class="section"><h2>Who decides</h2><Levels one={one} /></section>
      <section class="section"><h2>What was answered</h2><Votes one={one} /></section>
    </article>
  );
}

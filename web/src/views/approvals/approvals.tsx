/** Requests for an approval: the exact action, who decides, and how to answer. The page never asks for a passphrase. */

import type { JSX } from "preact";
import { useEffect, useState } from "preact/hooks";
import { Value } from "../../parts/json.tsx";
import { Empty, Loading, Problem } from "../../parts/states.tsx";
import { Command, Copy, Hex, Text, Time, plural } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { link } from "../../route.ts";
import { connection, contents, liveState, spoken, thing } from "../../state.ts";
import { at } from "../../verify/block.ts";
import { type Json, JsonNumber, isObject, readJson } from "../../verify/json.ts";
import type { ApprovalCase } from "../../worker/protocol.ts";
import { PasskeyAnswer, PasskeyEnrolment } from "./passkey.tsx";
import { cases, casesProblem, now, readCases, stateOf } from "./cases.ts";

/** Characters of an id that name a request on the command line. */
const ID_SHOWN = 8;

const WORDS: Record<string, string> = {
  pending: "waits for an answer",
  approved: "approved, not used yet",
  denied: "denied",
  expired: "expired: denied",
  closed: "closed: denied",
  used: "approved and used",
};

function isRefused(state: string): boolean {
  return ["denied", "expired", "closed"].includes(state);
}

/** How long is left, as minutes and seconds. */
function timeLeft(expires: string): string {
  const seconds = Math.max(0, Math.floor((new Date(expires).getTime() - now.value.getTime()) / 1000));
  const [hours, minutes] = [Math.floor(seconds / 3600), Math.floor((seconds % 3600) / 60)];
  return hours ? `${hours} h ${String(minutes).padStart(2, "0")} min` : `${minutes} min ${String(seconds % 60).padStart(2, "0")} s`;
}

function State({ one }: { one: ApprovalCase }): JSX.Element {
  const state = stateOf(one);
  return <span class={`word ${isRefused(state) ? "failure" : state === "pending" ? "" : "good"}`}>{WORDS[state] ?? state}</span>;
}

function describe(one: ApprovalCase): { content: Json; action: Json | undefined; line: string; diff: string } {
  let content: Json = null;
  try {
    content = at(readJson(one.canonical), "outcome", "result") ?? null;
  } catch {
    // The verdict says why it cannot be read.
  }
  const action = at(content, "action");
  const command = at(action, "arguments", "command");
  const tool = at(action, "tool");
  const diff = at(content, "diff");
  const line = typeof command === "string" ? command : typeof tool === "string" ? tool : "a request";
  return { content, action, line, diff: typeof diff === "string" ? diff : "" };
}

export function CaseLine({ one }: { one: ApprovalCase }): JSX.Element {
  const { line } = describe(one);
  return (
    <a class="case-line" href={link("approvals", one.id)} data-row>
      <code><Text>{line.slice(0, 160)}</Text></code>
      <State one={one} />
      <span class="beside">{stateOf(one) === "pending" ? <>{timeLeft(one.expires)} left</> : <Time>{one.opened}</Time>}</span>
    </a>
  );
}

/** A part of a request that is kept apart as a blob, because it is large. */
function Apart({ value }: { value: Json | undefined }): JSX.Element | null {
  const [text, setText] = useState<string | null>(null);
  const [words, setWords] = useState("");
  const digest = isObject(value) && value.size === 1 ? at(value, "blob", "sha256") ?? at(value, "blob") : undefined;
  useEffect(() => {
    if (typeof digest !== "string") return;
    connection.ask({ type: "blob", digest }).then((bytes) => setText(new TextDecoder().decode(bytes)), (error: Error) => setWords(error.message));
  }, [digest]);
  if (typeof digest !== "string") return null;
  if (words) return <Problem words={words} />;
  return text === null ? <p class="beside">Reading …</p> : <Value value={text} />;
}

function Levels({ one }: { one: ApprovalCase }): JSX.Element {
  return (
    <table class="plain">
      <thead><tr><th scope="col">Level</th><th scope="col">Who decides</th><th scope="col">How many</th><th scope="col">From</th></tr></thead>
      <tbody>
        {one.levels.map((level, index) => (
          <tr key={index} class={index + 1 === one.floor ? "current" : ""}>
            <td>{index + 1}{index + 1 === one.floor && stateOf(one) === "pending" ? " (decides now)" : ""}</td>
            <td>{level.approvers.map((name) => {
              const key = one.approvers.find((approver) => approver.identity === name);
              return <p key={name} class="tight"><Text>{name}</Text> {key ? <span class="beside"><Hex>{key.fingerprint}</Hex> {key.custody}</span> : null}</p>;
            })}</td>
            <td>{level.quorum} of {level.approvers.length}</td>
            <td>{level.after ? `${level.after} s after it was opened` : "at once"}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Votes({ one }: { one: ApprovalCase }): JSX.Element {
  if (!one.votes.length) return <p class="soft">Nobody has answered.</p>;
  return (
    <table class="plain">
      <tbody>
        {one.votes.map((vote) => (
          <tr key={vote.place}>
            <td><Mark name={vote.problem ? "failed" : "verified"} /> {vote.word}</td>
            <td><Text>{vote.approver || "the gate"}</Text></td>
            <td><Time>{vote.at}</Time></td>
            <td>{vote.problem ? <strong class="bad"><Text>{vote.problem}</Text></strong> : vote.approver ? "the signature holds, by the key that the request names" : ""}</td>
            <td><a href={link("c", one.chain, vote.place)}>record</a></td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

function Answers({ one }: { one: ApprovalCase }): JSX.Element | null {
  const [followed, setFollowed] = useState("");
  const state = stateOf(one);
  useEffect(() => {
    if (followed && state !== "pending") spoken.value = `The request is ${WORDS[state] ?? state}`;
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

function Case({ one }: { one: ApprovalCase }): JSX.Element {
  const { content, action, line, diff } = describe(one);
  const state = stateOf(one);
  const reasons = at(content, "reasons");
  const risk = at(content, "risk");
  const score = at(risk, "score");
  const interval = at(risk, "interval");
  const numbers = Array.isArray(interval) ? interval.map((item) => (item instanceof JsonNumber ? item.text : "?")).join(" to ") : "";
  return (
    <article class="record case">
      <p class="beside"><a href={link("approvals")}>All requests</a></p>
      <h1><code><Text>{line.slice(0, 400)}</Text></code></h1>
      <p class="sentence"><State one={one} /> {state === "pending" ? <strong class="countdown">{timeLeft(one.expires)} left; then it is denied</strong> : <Text>{one.reason}</Text>}</p>
      {one.problem ? <Problem words={`The record of this request does not hold: ${one.problem}. Do not answer it.`} /> : null}
      {!one.isSameAction ? <Problem words="The action or the diff in this request is not the one that its digest names. Do not answer it." /> : null}
      {!one.isSignerKnown && !one.problem ? <div class="finding warning"><p>The record of this request was signed by a key that you have not pinned, so the signature was not checked. <a href={link("keys")}>Keys</a></p></div> : null}
      <Answers one={one} />
      <section class="section"><h2>The exact action</h2>{isObject(action) && action.has("blob") ? <Apart value={action} /> : <Value value={action ?? null} />}</section>
      {diff || isObject(at(content, "diff")) ? <section class="section"><h2>Its diff</h2>{diff ? <Value value={diff} /> : <Apart value={at(content, "diff")} />}</section> : null}
      <section class="section">
        <h2>Why it is asked</h2>
        <div class="members"><dl>
          <div><dt>digest</dt><dd><Hex length={64}>{one.digest}</Hex> <Copy text={one.digest} label="copy" /> {one.isSameAction ? <span class="good">computed here: the same</span> : <strong class="bad">another action</strong>}</dd></div>
          <div><dt>risk</dt><dd>{score instanceof JsonNumber ? <span class="figure">{score.text}{numbers ? ` (${numbers})` : ""}</span> : <span class="soft">no score</span>}</dd></div>
          <div><dt>reasons</dt><dd><Value value={reasons ?? null} /></dd></div>
          <div><dt>rules</dt><dd><Value value={at(content, "rules") ?? null} /></dd></div>
          <div><dt>opened</dt><dd><Time>{one.opened}</Time></dd></div>
          <div><dt>expires</dt><dd><Time>{one.expires}</Time></dd></div>
          <div><dt>request</dt><dd><code><Text>{one.id}</Text></code> <a href={link("c", one.chain, one.place)}>its record</a></dd></div>
        </dl></div>
      </section>
      <section class="section"><h2>Who decides</h2><Levels one={one} /></section>
      <section class="section"><h2>What was answered</h2><Votes one={one} /></section>
    </article>
  );
}

export function ApprovalsView({ parts: [id] }: { parts: string[] }): JSX.Element {
  const all = cases.value;
  if (id) {
    const one = all?.find((found) => found.id === id);
    if (one) return <Case one={one} />;
    return all === null ? <Loading rows={6} words="Reading the request" /> : <Problem words={`There is no request ${id} here.`} retry={readCases} />;
  }
  const open = (all ?? []).filter((one) => stateOf(one) === "pending");
  const done = (all ?? []).filter((one) => stateOf(one) !== "pending");
  return (
    <>
      <h1>Approvals</h1>
      {casesProblem.value ? <Problem words={casesProblem.value} retry={readCases} /> : null}
      {all === null && !casesProblem.value ? <Loading rows={6} words="Reading the requests" /> : null}
      {all !== null && !all.length ? <Empty command="aver approvals enrol person:NAME">{contents.value?.chains.some((chain) => chain.id.startsWith("approvals.")) ? "No request for an approval is in it." : "The gate has asked nobody yet."} It asks once a person is enrolled, and a rule or a risk wants an approval.</Empty> : null}
      {open.length ? <section><h2>{plural(open.length, "request")} {open.length === 1 ? "waits" : "wait"} for an answer</h2><div class="cases">{open.map((one) => <CaseLine key={one.id} one={one} />)}</div></section> : null}
      {all?.length && !open.length ? <p class="strip">Nothing waits for you.</p> : null}
      {done.length ? <section><h2>Answered</h2><div class="cases">{done.slice(0, 100).map((one) => <CaseLine key={one.id} one={one} />)}</div></section> : null}
      {all?.length ? <p class="beside">The states are computed here from the records and their signatures. A request that nobody answers in time is denied.</p> : null}
      <PasskeyEnrolment />
    </>
  );
}

/** A trace of the agent protocol: the roles as lanes, the claims with their evidence, challenges, and the audit. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { OfDomain, ReadChain } from "../../parts/of_domain.tsx";
import { Table } from "../../parts/table.tsx";
import { Command, Hex, Text, Time, plural } from "../../parts/text.tsx";
import { Mark, adviceOn, verifyCommand } from "../../parts/verdict.tsx";
import { readBlob } from "../../records.ts";
import { shortenArguments, valueText } from "../../sessions/labels.ts";
import { ROLES, type Trace, type TraceClaim, type TraceEvent, describeCheck, readTrace } from "../../sessions/trace.ts";
import { asList, asObject, asText, lookUp } from "../../sessions/values.ts";
import { link } from "../../state.ts";
import { at } from "../../verify/block.ts";
import { BadInput, type Json, type JsonObject, isObject, readJson } from "../../verify/json.ts";
import { Statements } from "../capsule/statements.tsx";

/** Records of a trace that this view lays out. */
const READ_MAX = 10_000;
/** Events that are shown at first. */
const EVENTS_SHOWN = 200;

export function ProtocolView({ parts: [wanted = ""] }: { parts: string[] }): JSX.Element {
  return (
    <OfDomain domain="protocol" title="Protocol" route="protocol" wanted={wanted} what="trace" empty={["There is no trace of the agent protocol in these records. This makes one:", "aver protocol run TASK.toml"]}>
      {(chain) => (
        <ReadChain key={chain} chain={chain} most={READ_MAX} command={`aver show ${chain} --html trace.html`} read={async (records) => {
          const trace = readTrace(records);
          return { trace, report: await readReport(trace) };
        }}>
          {({ trace, report }) => <TraceOfChain chain={chain} trace={trace} report={report} />}
        </ReadChain>
      )}
    </OfDomain>
  );
}

function TraceOfChain({ chain, trace, report }: { chain: string; trace: Trace; report: JsonObject | null }): JSX.Element {
  return (
    <>
      <p class="sentence"><Text>{asText(trace.task.get("objective")) || chain}</Text></p>
      <p class="beside"><a href={link("chain", chain)}><Text>{chain}</Text></a> · {plural(trace.events.length, "event")} · state <strong><Text>{trace.state}</Text></strong> · profile <Text>{trace.profile}</Text></p>
      <Audit trace={trace} report={report} chain={chain} />
      <h2>Claims</h2>
      {trace.claims.length ? trace.claims.map((claim) => <Claim key={claim.id} claim={claim} chain={chain} report={report} trace={trace} />) : <p class="strip">Nothing is claimed yet.</p>}
      <h2>Events by role</h2>
      <Lanes trace={trace} chain={chain} />
      <h2>Participants</h2>
      <Table label="Participants" heads={["Agent", "Role", "Key", "Held"]}>
        {trace.participants.map((one, place) => <tr key={place}><th scope="row"><Text>{one.agent}</Text></th><td><Text>{one.role}</Text></td><td><Hex>{one.key}</Hex></td><td><Text>{one.held}</Text></td></tr>)}
      </Table>
    </>
  );
}

/** The auditor's report, from the blob beside the audit; null where it is not here. */
async function readReport(trace: Trace): Promise<JsonObject | null> {
  const digest = asText(at(trace.audit?.payload, "report", "blob", "digest"));
  const data = digest ? await readBlob(digest) : null;
  try {
    const report = data === null ? null : readJson(data);
    return isObject(report ?? undefined) ? (report as JsonObject) : null;
  } catch (error) {
    if (error instanceof BadInput) return null;
    throw error;
  }
}

const AUDITS: Record<string, ["verified" | "qualified" | "failed", string]> = {
  pass: ["verified", "The auditor found that everything holds."],
  "pass-with-warnings": ["qualified", "The auditor found no failure, and has warnings."],
  fail: ["failed", "The auditor found that it does not hold."],
};

function Audit({ trace, report, chain }: { trace: Trace; report: JsonObject | null; chain: string }): JSX.Element {
  const { audit } = trace;
  if (audit === null) return <p class="strip">No audit is sealed in this trace. The auditor makes one: <Command>{`aver protocol audit ${chain.replace(/^protocol\./, "")}`}</Command></p>;
  const status = asText(audit.payload.get("status"));
  const [mark, words] = lookUp(AUDITS, status) ?? ["failed" as const, "The audit has a status that is not known."];
  const findings = asList(report?.get("findings") ?? null).filter(isObject);
  return (
    <section class={`band ${mark}`}>
      <h2><Mark name={mark} /> Audit: <Text>{status}</Text></h2>
      <p>{words} By <Text>{audit.agent}</Text>, <Time>{audit.at}</Time>, in <a href={link("c", chain, `p${audit.place}`)}>record {audit.place}</a>.</p>
      <p class="beside">These are the auditor's words. The page checks the seals; whether the evidence holds is judged anew by <Command>{verifyCommand()}</Command></p>
      {report === null ? <p class="beside">The report itself is not here: its blob is missing, damaged or too large.</p> : (
        <div class="columns">
          <div><h3>Checks</h3><table class="checks"><tbody>{asList(report.get("checks")).filter(isObject).map((check, place) => <tr key={place}><th scope="row"><Text>{asText(check.get("name"))}</Text></th><td><Text>{asText(check.get("status"))}</Text></td></tr>)}</tbody></table></div>
          <div><h3>Findings</h3>{findings.length ? <table class="checks"><tbody>{findings.map((finding, place) => <AuditFinding key={place} finding={finding} trace={trace} chain={chain} />)}</tbody></table> : <p>None.</p>}</div>
        </div>
      )}
      {audit.statements.length ? <details><summary>The auditor's signed statement</summary><Statements values={audit.statements} /></details> : null}
    </section>
  );
}

/** Codes whose meaning in a report is narrower than in a verdict. */
const FINDING_WORDS: Record<string, string> = {
  CLAIM_UNPROVEN: "The evidence does not bear it out, or there is none.",
  CLAIM_DISPUTED: "A challenge to it is open, or a person upheld one.",
  NOT_REPRODUCED: "Repeating the execution gave another result.",
  NOT_INDEPENDENT: "Its key lies where the executor's key lies, so that whoever has one may have the other.",
  OUTCOME_UNKNOWN: "Nobody knows how the execution ended.",
};

/** One finding of an audit: about whom or what, and what that means. */
function AuditFinding({ finding, trace, chain }: { finding: JsonObject; trace: Trace; chain: string }): JSX.Element {
  const [code, subject, status] = ["code", "subject", "status"].map((name) => asText(finding.get(name))) as [string, string, string];
  const claim = trace.claims.find((one) => one.id === subject);
  const event = trace.events.find((one) => one.id === subject);
  const explained = adviceOn(code);
  const sign = status === "failed" ? "✕" : status === "warning" ? "!" : "i";
  return (
    <tr>
      <th scope="row"><span class={`check ${status}`} aria-hidden="true">{sign}</span> <Text>{code}</Text></th>
      <td>
        <p class="tight"><Text>{status}</Text>, about {claim ? <>the claim “<Text>{claim.text}</Text>”</> : event ? <Text>{event.summary}</Text> : subject ? <strong><Text>{subject}</Text></strong> : <Text>{asText(finding.get("check"))}</Text>} · event <SequenceLink chain={chain} value={finding.get("sequence") ?? null} /></p>
        <p class="soft tight">{code === "CLAIM_UNPROVEN" && !claim ? "What it expects is not met." : <>{lookUp(FINDING_WORDS, code) ?? explained?.meaning ?? ""} {status === "note" ? "" : (explained?.advice ?? "")}</>}</p>
      </td>
    </tr>
  );
}

function SequenceLink({ chain, value }: { chain: string; value: Json }): JSX.Element {
  const text = (value as { text?: string } | null)?.text ?? "";
  return text ? <a href={link("c", chain, text)}>{text}</a> : <>–</>;
}

const STANDINGS: Record<string, string> = {
  issued: "nobody challenged it",
  disputed: "a challenge is open",
  settled: "every challenge was settled",
  refuted: "a person upheld a challenge",
  retracted: "it was taken back",
};

function Claim({ claim, chain, report, trace }: { claim: TraceClaim; chain: string; report: JsonObject | null; trace: Trace }): JSX.Element {
  const judged = asList(report?.get("claims") ?? null).filter(isObject).find((one) => one.get("id") === claim.id);
  const failing = asList(judged?.get("evidence") ?? null).filter((item) => at(item, "holds") !== true).length;
  const isStanding = claim.standing === "settled" || claim.standing === "issued";
  // Only evidence that the audit recomputed speaks for a claim. That nobody challenged it does not.
  const tone = failing || claim.standing === "refuted" || claim.standing === "retracted" ? "bad" : !isStanding || judged === undefined ? "warn" : "good";
  return (
    <article class={`claim is-${tone}`}>
      <h3><Text>{claim.text}</Text></h3>
      <p class="beside">
        {failing ? <><strong class="bad">does not hold</strong>: by the audit, {failing === 1 ? "a piece" : `${failing} pieces`} of its evidence {failing === 1 ? "does" : "do"} not hold · </> : null}
        <strong class={failing ? "" : tone}><Text>{claim.standing}</Text></strong>: {lookUp(STANDINGS, claim.standing) ?? ""}{judged === undefined ? ", and no audit has judged it" : ""} · about <Text>{claim.about || "an outcome"}</Text> · confidence <span class="figure">{claim.confidence || "–"}</span> · <Text>{claim.agent}</Text> · <a href={link("c", chain, `p${claim.place}`)}>record {claim.place}</a>
      </p>
      {claim.earlier.map((earlier, place) => <p key={place} class="beside earlier">before: <del><Text>{earlier.text}</Text></del></p>)}
      <Evidence items={claim.evidence} judged={asList(judged?.get("evidence") ?? null)} chain={chain} trace={trace} />
      {claim.challenges.map((challenge) => (
        <div key={challenge.id} class="challenge">
          <p><strong>Challenge</strong> by <Text>{challenge.agent}</Text>, <strong class={challenge.standing === "open" ? "warn" : ""}><Text>{challenge.standing}</Text></strong> · <a href={link("c", chain, `p${challenge.place}`)}>record {challenge.place}</a></p>
          <p><Text>{challenge.reason}</Text></p>
          {challenge.rationale ? <p class="beside"><Text>{challenge.rationale}</Text></p> : null}
          <Evidence items={challenge.evidence} judged={[]} chain={chain} trace={trace} />
        </div>
      ))}
    </article>
  );
}

/** Pieces of evidence, with the auditor's word on each where there is one. */
function Evidence({ items, judged, chain, trace }: { items: Json[]; judged: Json[]; chain: string; trace: Trace }): JSX.Element | null {
  if (!items.length) return null;
  return (
    <Table of="plain evidence" label="Evidence" heads={["Evidence", "From", "By the audit"]}>
      {items.map((item, place) => {
        const start = trace.events.find((event) => event.id === at(item, "execution"));
        const word = judged[place];
        const holds = at(word, "holds");
        return (
          <tr key={place}>
            <td><Text>{describeCheck(at(item, "check"))}</Text></td>
            <td>{start ? <a href={link("c", chain, `p${start.place}`)}>execution {start.place}</a> : null} {asText(at(item, "artifact")) ? <Hex>{asText(at(item, "artifact"))}</Hex> : null}</td>
            <td>{word === undefined ? "–" : holds === true ? <span class="good">✓ holds</span> : <><span class="bad">✕ does not hold</span> <Text>{asText(at(word, "reason"))}</Text></>}{word !== undefined && at(word, "found") !== undefined ? <span class="beside"> found <Text>{foundText(at(word, "found") as Json)}</Text></span> : null}</td>
          </tr>
        );
      })}
    </Table>
  );
}

/** A value that the audit found, on one line. */
function foundText(value: Json): string {
  return isObject(value) ? [...value].map(([name, item]) => `${name} ${valueText(item)}`).join(", ") : valueText(value);
}

/** The events in order, each in the lane of its role. */
function Lanes({ trace, chain }: { trace: Trace; chain: string }): JSX.Element {
  const [shown, setShown] = useState(EVENTS_SHOWN);
  const roles = ROLES.filter((role) => trace.events.some((event) => event.role === role));
  return (
    <>
      <Table of="lanes" heads={["Event", ...roles]}>
        {trace.events.slice(0, shown).map((event) => (
          <tr key={event.place} class={event.before !== event.after ? "turn" : ""}>
            <th scope="row"><a href={link("c", chain, `p${event.place}`)}>{event.place}</a> <span class="beside"><Time short>{event.at}</Time></span></th>
            {roles.map((role) => <td key={role} data-role={role} class={role === event.role ? "said" : ""}>{role === event.role ? <EventCell event={event} /> : null}</td>)}
          </tr>
        ))}
      </Table>
      {trace.events.length > shown ? <p><button type="button" onClick={() => setShown(shown + 10 * EVENTS_SHOWN)}>Show more of {plural(trace.events.length, "event")}</button></p> : null}
    </>
  );
}

function EventCell({ event }: { event: TraceEvent }): JSX.Element {
  const { payload } = event;
  const words = ["objective", "text", "reason", "rationale", "justification", "name", "words"].map((name) => asText(payload.get(name))).find(Boolean) ?? "";
  const verdict = asText(payload.get("verdict")) || asText(payload.get("outcome")) || asText(payload.get("status")) || asText(payload.get("code"));
  const code = payload.get("exit_code") as { text?: string } | null | undefined;
  return (
    <>
      <strong><Text>{event.event.replaceAll("_", " ")}</Text></strong>
      {verdict ? <span class="verdict-word"> <Text>{verdict}</Text></span> : null}
      {code?.text ? <span class="verdict-word"> exit code {code.text}</span> : null}
      {asText(payload.get("tool")) ? <> <code><Text>{asText(payload.get("tool"))}</Text></code></> : null}
      {words ? <p><Text>{words.slice(0, 300)}</Text></p> : null}
      {asObject(payload.get("arguments")).size ? <p><code><Text>{shortenArguments(payload.get("arguments") as Json)}</Text></code></p> : null}
      {event.before !== event.after ? <p class="beside"><Text>{`${event.before} → ${event.after}`}</Text></p> : null}
    </>
  );
}

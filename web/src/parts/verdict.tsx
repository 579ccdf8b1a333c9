/** A verdict: a mark with a word, a sentence, and two lists of equal weight: checked, and not checked. */

import type { JSX } from "preact";
import codes from "../../../src/aver/verdict/codes.json" with { type: "json" };
import { lookUp } from "../sessions/values.ts";
import { pins } from "../source/pins.ts";
import { type Judgement, VERIFIED_AT_ONCE, changed, contents, isAlone, isOfActions, judgement, link, placeInChain, stopVerifying, thing, totalRecords, unjudged, verifyThing } from "../state.ts";
import { CHECKS, type Check, DOES_NOT_APPLY, type Finding, type Place, type Verdict, heldOf, integrityOf, verdictDocument } from "../verify/verdict.ts";
import type { KeyFits } from "../worker/protocol.ts";
import { describeCheck } from "./check_words.ts";
import { Command, Copy, Text, Time, count, plural, quoteName } from "./text.tsx";

type MarkName = "verified" | "qualified" | "failed" | "empty" | "not judged" | "working";

const PATHS: Record<MarkName, JSX.Element> = {
  verified: <><circle cx="10" cy="10" r="9" fill="currentColor" /><path d="M5.5 10.5l3 3 6-7" class="ink" /></>,
  qualified: <><circle cx="10" cy="10" r="8" class="line" /><path d="M10 2a8 8 0 0 1 0 16z" fill="currentColor" /></>,
  failed: <><path d="M6.3 1h7.4L19 6.3v7.4L13.7 19H6.3L1 13.7V6.3z" fill="currentColor" /><path d="M6.5 6.5l7 7m0-7l-7 7" class="ink" /></>,
  empty: <circle cx="10" cy="10" r="8" class="line" />,
  "not judged": <circle cx="10" cy="10" r="8" class="line dashed" />,
  working: <circle cx="10" cy="10" r="8" class="line faint" />,
};

/** The shape of a status. The word always stands beside it. The ring of work fills up to `share` percent. */
export function Mark({ name, share = 0 }: { name: MarkName; share?: number }): JSX.Element {
  return (
    <svg class={`mark ${name.replace(" ", "-")}`} viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      {PATHS[name]}
      {name === "working" ? <circle cx="10" cy="10" r="8" class="line" pathLength="100" stroke-dasharray={`${share} 100`} transform="rotate(-90 10 10)" /> : null}
    </svg>
  );
}

const ADVICE: Record<string, { meaning: string; advice: string }> = codes;

/** The meaning of a code, and advice; undefined for a code that nobody knows. */
export function adviceOn(code: string): { meaning: string; advice: string } | undefined {
  return lookUp(ADVICE, code);
}

/** Whether only the command makes this check: it has the rules and the policy language, and the page has not. */
function isOnlyOfCommand({ name }: Check): boolean {
  return ["decisions", "changes", "evidence", "effects", "delegation", "protocol"].includes(name);
}

/** What would make a check that was not made. */
function remedy(check: Check): JSX.Element | string {
  if (isOfActions()) return "";
  if (check.code === "UNKNOWN_SIGNER" || check.name === "signature" || check.name === "signature_pq") {
    // The reason names the key. A passkey cannot be pinned: its reason names the key of the person who endorsed it.
    return <>Pin this key on <a href={link("keys")}>Keys</a>, after you compared it with its owner.</>;
  }
  if (check.name === "page") {
    return <>Choose this folder under <a href={link("open")}>Verify a file</a>, or: <Command>{verifyCommand()}</Command></>;
  }
  if (isOnlyOfCommand(check)) {
    // The command would judge the records themselves, and not this copy.
    return changed.value ? "" : <Command>{verifyCommand()}</Command>;
  }
  if (check.name === "unlisted_files") return <>Who has the site's directory runs: <Command>aver verify DIRECTORY</Command></>;
  if (check.name === "columns" || check.name === "store") return "These belong to a ledger's file, and no copy has them.";
  if (check.name === "head") return thing.value?.live ? <>Compare with a checkpoint that you keep: <Command>aver verify --checkpoint FILE</Command></> : <>Export it again with the ledger's key at hand: <Command>aver export --out DIR</Command></>;
  if (check.name === "meta") return <>Open the whole ledger: <Command>aver export --out DIR</Command></>;
  return "";
}

/** A day as people say it, such as 3 Nov. */
function dayOf(at: string): string {
  return new Date(at).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });
}

/** How much a verdict is about, such as "42 records in 3 chains". */
export function extentOf({ records, chains }: Verdict): string {
  return `${thing.value?.areCopies ? "the copies of " : ""}${plural(records, "record")}${chains ? ` in ${plural(chains, "chain")}` : ""}`;
}

function sentence(verdict: Verdict, signers: string[]): string {
  const extent = extentOf(verdict);
  const integrity = integrityOf(verdict);
  const unknown = verdict.records - heldOf(verdict);
  const unsigned = unknown < verdict.records ? `${plural(unknown, "record")} by keys that you have not pinned` : "nobody's signature was checked";
  const lead = integrity === "intact" ? "Intact. " : integrity === "unsigned" ? `Unsigned: ${unsigned}. ` : "";
  if (verdict.status === "verified") {
    const used = pins.value.filter((pin) => !signers.length || signers.includes(pin.publicKey));
    const named = used.slice(0, 3).map((pin) => `${pin.publicKey.slice(0, 16)}, which you pinned on ${dayOf(pin.at)}`);
    return `${lead}Verified: ${extent}, signed by ${named.join("; ") || "keys that you pinned"}${used.length > 3 ? `, and ${used.length - 3} more keys` : ""}.`;
  }
  if (verdict.status === "qualified") return `${lead}Nothing failed in ${extent}, but not everything was checked. The list says what was not, and why.`;
  if (verdict.status === "empty") return "There is nothing to verify: no record was read. That is never a success.";
  return `${lead}It does not hold: ${verdict.first_bad?.words ?? "a check failed"}.`;
}

export function describePlace({ chain, sequence, source }: Place): string {
  const parts = [source ?? "", chain === null ? "" : `chain ${chain}`, sequence === null ? "" : `sequence ${sequence}`];
  return parts.filter(Boolean).join(", ") || "the whole";
}

/** The address of a place; null for one that no view shows. */
export function placeLink(place: Place): string | null {
  const { chain, sequence } = placeInChain(place);
  const name = chain ?? (isAlone() ? contents.value?.chains[0]?.id : null);
  return name ? (sequence === null ? link("chain", name) : link("chain", name, `at-${sequence}`)) : null;
}

/** A finding. `others` are further places with the same code and words. */
export function FindingCard({ finding, others = [], shown = 1, isFirst = false }: { finding: Finding; others?: Finding[]; shown?: number; isFirst?: boolean }): JSX.Element {
  const explained = adviceOn(finding.code);
  const target = placeLink(finding.place);
  return (
    <div class={`finding ${finding.status}`}>
      <p>
        <strong>{finding.code}</strong> at {others.length ? plural(others.length + 1, "place") : <Text>{describePlace(finding.place)}</Text>}: <Text>{finding.words}</Text>
        {isFirst && target !== null ? <> <a href={target}>Go there</a> <kbd aria-hidden="true">b</kbd></> : null}
      </p>
      {others.length ? <Places places={[finding, ...others].map(({ place }) => place)} shown={shown} /> : null}
      {explained === undefined ? null : <p class="beside">{explained.meaning} {explained.advice}</p>}
    </div>
  );
}

/** Places, those that follow each other in a chain as one, such as "chain ci.nightly, sequence 0 to 41". The first `shown` are named. */
function Places({ places, shown }: { places: Place[]; shown: number }): JSX.Element {
  const runs: { first: Place; last: Place }[] = [];
  for (const place of places) {
    const run = runs.at(-1);
    const isNext = run?.last.chain === place.chain && run.last.source === place.source && Number(run.last.sequence) + 1 === Number(place.sequence);
    if (isNext) run.last = place;
    else runs.push({ first: place, last: place });
  }
  return <p class="beside">{runs.slice(0, shown).map(({ first, last }, at) => <>{at ? "; " : ""}<a href={placeLink(first) ?? undefined}><Text>{describePlace(first)}</Text></a>{last === first ? "" : ` to ${last.sequence}`}</>)}<AndMore left={runs.length - shown} /></p>;
}

/** Findings of a list that are shown. Each has a card, and a thousand of them would be a long page. */
const FINDINGS_SHOWN = 100;

function AndMore({ left }: { left: number }): JSX.Element | null {
  return left > 0 ? <span> and {count(left)} more; copy as JSON has them all</span> : null;
}

/** Findings, which are never folded. What is wrong has a card of its own; places that were not checked share one for the same code and words. */
function Findings({ findings, words }: { findings: Finding[]; words: string }): JSX.Element {
  const cards = new Map<string, Finding[]>();
  for (const finding of findings) {
    const key = finding.status === "not_checked" ? `${finding.check} ${finding.code} ${finding.words}` : `${cards.size}`;
    const known = cards.get(key);
    if (known) known.push(finding);
    else cards.set(key, [finding]);
  }
  // A card names at least one place, and all cards together name about as many as the limit.
  const shown = Math.ceil(FINDINGS_SHOWN / cards.size);
  return (
    <>
      <h3>{words}</h3>
      {[...cards].slice(0, FINDINGS_SHOWN).map(([key, [finding, ...others]]) => <FindingCard key={key} finding={finding as Finding} others={others} shown={shown} />)}
      <AndMore left={cards.size - FINDINGS_SHOWN} />
    </>
  );
}

/** A reason that repeats the count, which has its own column. */
const ONLY_COUNTS = /^[\d,]+ checked$/;

function CheckRow({ check }: { check: Check }): JSX.Element {
  const said = ONLY_COUNTS.test(check.reason) ? "" : check.reason;
  const meaning = check.status === "passed" ? describeCheck(check.name) : "";
  return (
    <tr>
      <th scope="row">
        <span class={`check ${check.status}`}>{check.status === "passed" ? "✓" : check.status === "failed" ? "✕" : "!"}</span> {check.name.replace("_", " ")}
      </th>
      <td class="number">{check.status === "passed" ? count(check.count) : check.status}</td>
      <td>{meaning}{meaning && said ? <br /> : null}{said ? <span class={meaning ? "soft" : ""}><Text>{said}</Text></span> : null}</td>
    </tr>
  );
}

/** Checks that were not made, those with the same reason together. */
function groupUnmade(checks: Check[]): Check[][] {
  const groups = new Map<string, Check[]>();
  for (const check of checks) {
    const key = isOnlyOfCommand(check) ? `${check.matters} ${check.reason}` : check.name;
    groups.set(key, [...(groups.get(key) ?? []), check]);
  }
  return [...groups.values()];
}

/** How many signatures fit a key that came along. The reader has not pinned it, so none of them is checked. */
export function FitWords({ fits }: { fits: [matching: number, others: number][] }): JSX.Element | null {
  const [matching, others] = [0, 1].map((at) => fits.reduce((sum, one) => sum + (one[at] ?? 0), 0)) as [number, number];
  const key = thing.value?.live ? "key that the server lists" : "key in the bundle";
  return (
    <>
      {matching ? <p class="warn tight">{plural(matching, "signature matches", "signatures match")} the {key}, which you have not pinned: not checked.</p> : null}
      {others ? <p class="bad tight">{plural(others, "signature does", "signatures do")} not match the {key}.</p> : null}
    </>
  );
}

function UnmadeRow({ checks, fits }: { checks: Check[]; fits: KeyFits }): JSX.Element {
  const [first] = checks as [Check];
  return (
    <tr class={first.matters ? "matters" : ""}>
      <th scope="row">{checks.map((check) => <span key={check.name} class="unmade-name">{check.name.replace("_", " ")}</span>)}</th>
      <td><Text>{isOnlyOfCommand(first) ? first.reason.replace(/; run: aver verify$/, "") : first.reason}</Text>{first.name === "signature" ? <FitWords fits={fits.map(([, counts]) => counts)} /> : null}</td>
      <td>{remedy(first)}</td>
    </tr>
  );
}

/** The verdict on everything that is open. */
export function VerdictBand(): JSX.Element | null {
  const now = judgement.value;
  if (now.state === "none") {
    if (contents.value === null || totalRecords.value <= VERIFIED_AT_ONCE) return <div class="band placeholder tall" aria-hidden="true" />;
    return (
      <section class="band not-judged">
        <h2><Mark name="not judged" /> Not judged yet</h2>
        <p>{plural(totalRecords.value, "record")} take a while. A chain is verified when you open it; all of them when you ask for it.</p>
        <p><button type="button" onClick={() => void verifyThing()}>Verify everything (v)</button></p>
      </section>
    );
  }
  return <Band now={now} />;
}

/** A judgement: at work, given up, or a verdict. */
export function Band({ now, again = verifyThing, total = totalRecords.value }: { now: Exclude<Judgement, { state: "none" }>; again?: () => unknown; total?: number }): JSX.Element {
  if (now.state === "working") {
    const { records = 0, bytes = 0, totalBytes = 0 } = now.progress ?? {};
    // By records where their number is known: the bytes of a file are more than those of its records.
    const isKnown = total >= records && total > 0;
    const share = isKnown ? Math.floor((100 * records) / total) : totalBytes ? Math.floor((100 * bytes) / totalBytes) : 0;
    return (
      <section class="band working">
        <h2><Mark name="working" share={share} /> Verifying</h2>
        <p class="figure">{isKnown ? `${count(records)} of ${plural(total, "record")} judged so far` : `${plural(records, "record")} judged so far, ${share} % of the bytes`}.</p>
        <progress max={100} value={share} aria-label="Verification" />
        <p><button type="button" onClick={() => stopVerifying()}>Stop</button></p>
        <table class="checks pending" aria-hidden="true"><tbody>{CHECKS.filter((name) => !["columns", "store"].includes(name)).map((name) => <tr key={name}><th>{name.replace("_", " ")}</th><td>…</td></tr>)}</tbody></table>
      </section>
    );
  }
  if (now.state === "not judged") {
    return (
      <section class="band not-judged">
        <h2><Mark name="not judged" /> Not judged</h2>
        <p><Text>{now.words}</Text></p>
        <p><button type="button" onClick={() => void again()}>Try again</button></p>
      </section>
    );
  }
  return <Judged {...now} />;
}

/** Where this page came from. Someone who changes records can change the page, too. */
function origin(): string {
  const door = document.documentElement.dataset["door"];
  return thing.value?.live ? "from the server of this ledger" : door === "site" ? "with these records" : "from where you opened it";
}

/** The command that judges the open thing without this page. It fetches the bundle of a web server first, into a new directory. */
export function verifyCommand(): string {
  const { live, site } = thing.value ?? {};
  if (live) return "aver verify";
  if (!site) return `aver verify ${quoteName(contents.value?.name ?? "FILE")}`;
  const depth = new URL(site).pathname.split("/").length - 2;
  return `mkdir site && wget -qO- ${quoteName(`${site}explorer/data/names.js`)} | grep -o '"[^"]*"' | tr -d '"' | wget -nv -xnH --cut-dirs=${depth} -P site -B ${quoteName(site)} -i - && aver verify site`;
}

/** Whether the ledger's server runs on this machine, as far as the address tells. */
function isHere(): boolean {
  return ["localhost", "127.0.0.1", "[::1]"].includes(location.hostname);
}

/** The command that says the same without this page: with the same keys. A file of keys may say that one is retired. */
function command(): string {
  const keys = pins.value.map((pin) => (pin.entry && pin.origin.startsWith("from ") ? quoteName(pin.origin.slice(5)) : pin.publicKey));
  return thing.value?.live ? verifyCommand() : [verifyCommand(), ...new Set(keys)].join(" --key ");
}

function Judged({ verdict, usesPlatform, fits, signers, at }: Extract<Judgement, { state: "done" }>): JSX.Element {
  const made = verdict.checks.filter((check) => check.status !== "not_checked");
  const unmade = verdict.checks.filter((check) => check.status === "not_checked");
  const others = unmade.filter((check) => check.reason !== DOES_NOT_APPLY);
  const foreign = unmade.filter((check) => check.reason === DOES_NOT_APPLY).map((check) => check.name.replace("_", " "));
  const word = verdict.status;
  const first = verdict.first_bad;
  const rest = verdict.findings.filter((one) => one !== first);
  const wrong = rest.filter((one) => one.status !== "not_checked");
  const open = rest.filter((one) => one.status === "not_checked");
  return (
    <section class={`band ${word}`} aria-labelledby="verdict">
      <h2 id="verdict"><Mark name={word} /> {word[0]?.toUpperCase()}{word.slice(1)}</h2>
      <p class="sentence"><Text>{sentence(verdict, signers)}</Text></p>
      {thing.value?.areCopies ? <p class="strip copies">This page judged its own copies of the records, in explorer/data, and not the bundle's files: a browser lets no page that was opened by a double click read them. Someone may have changed the files and left the copies.</p> : null}
      {unjudged.value ? <p class="strip">{plural(unjudged.value, "record")} came after this verdict. <button type="button" class="small" onClick={() => void verifyThing()}>Verify again (v)</button></p> : null}
      {first ? <FindingCard finding={first} isFirst /> : null}
      <div class="columns">
        <div>
          <h3>Checked</h3>
          <table class="checks">
            <tbody>{made.map((check) => <CheckRow key={check.name} check={check} />)}</tbody>
          </table>
          {made.length ? null : <p>No check was made.</p>}
        </div>
        <div>
          <h3>Not checked</h3>
          <table class="checks">
            <tbody>
              {groupUnmade(others).map((checks) => <UnmadeRow key={checks[0]?.name} checks={checks} fits={fits} />)}
            </tbody>
          </table>
          {others.length ? null : <p>Every check that applies was made.</p>}
          {foreign.length ? <p class="beside">Does not apply here: {foreign.join(", ")}.</p> : null}
        </div>
      </div>
      {wrong.length ? <Findings findings={wrong} words={plural(wrong.length, first ? "more finding" : "finding")} /> : null}
      {/* A verdict keeps a hundred findings of a kind, and counts the rest in its list of checks. */}
      {open.length ? <Findings findings={open} words={`${open.length < FINDINGS_SHOWN ? "" : "At least "}${plural(open.length, "place")} that could not be checked`} /> : null}
      <p class="beside judged-by">
        This page judged it at <Time short>{at.toISOString()}</Time>, and came {origin()}.
        Ed25519 by {usesPlatform ? "the browser, after checks of our own" : "JavaScript"}.
      </p>
      <p class="beside without-page">
        {changed.value ? "No command judges this changed copy: it is in this page's memory alone." : <>{thing.value?.areCopies || thing.value?.site ? "The bundle's own files, without this page: " : `The same without this page${thing.value?.live && !isHere() ? ", on the server's machine" : ""}: `}<Command>{command()}</Command></>}{" "}
        <Copy text={JSON.stringify(verdictDocument(verdict), (_, value: unknown) => (typeof value === "bigint" ? String(value) : value), 2)} label="copy as JSON" />
      </p>
    </section>
  );
}

/** The verdict in the bar. */
export function VerdictChip(): JSX.Element {
  const now = judgement.value;
  if (contents.value === null) return <span class="chip" />;
  const name: MarkName = now.state === "done" ? now.verdict.status : now.state === "working" ? "working" : "not judged";
  const { bytes = 0, totalBytes = 0 } = (now.state === "working" && now.progress) || {};
  return (
    <a class={`chip ${name.replace(" ", "-")}`} href={link()}>
      <Mark name={name} share={totalBytes ? Math.floor((100 * bytes) / totalBytes) : 0} /> <span>{name === "working" ? "verifying" : name}</span>
    </a>
  );
}

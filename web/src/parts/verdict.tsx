/** A verdict: a mark with a word, a sentence, and two lists of equal weight: checked, and not checked. */

import type { JSX } from "preact";
import codes from "../../../src/aver/verdict/codes.json" with { type: "json" };
import { pins } from "../source/pins.ts";
import { contents, judgement, link, stopVerifying, verifyThing } from "../state.ts";
import { type Check, DOES_NOT_APPLY, type Finding, type Place, type Verdict, verdictDocument } from "../verify/verdict.ts";
import { Command, Copy, Text, count, plural } from "./text.tsx";

type MarkName = "verified" | "qualified" | "failed" | "empty" | "not judged" | "working";

const PATHS: Record<MarkName, JSX.Element> = {
  verified: <><circle cx="10" cy="10" r="9" fill="currentColor" /><path d="M5.5 10.5l3 3 6-7" class="ink" /></>,
  qualified: <><circle cx="10" cy="10" r="8" class="line" /><path d="M10 2a8 8 0 0 1 0 16z" fill="currentColor" /></>,
  failed: <><path d="M6.3 1h7.4L19 6.3v7.4L13.7 19H6.3L1 13.7V6.3z" fill="currentColor" /><path d="M6.5 6.5l7 7m0-7l-7 7" class="ink" /></>,
  empty: <circle cx="10" cy="10" r="8" class="line" />,
  "not judged": <circle cx="10" cy="10" r="8" class="line dashed" />,
  working: <circle cx="10" cy="10" r="8" class="line turning" />,
};

/** The shape of a status. The word always stands beside it. */
export function Mark({ name }: { name: MarkName }): JSX.Element {
  return (
    <svg class={`mark ${name.replace(" ", "-")}`} viewBox="0 0 20 20" width="20" height="20" aria-hidden="true">
      {PATHS[name]}
    </svg>
  );
}

const ADVICE: Record<string, { meaning: string; advice: string }> = codes;

/** What would make a check that was not made. */
function remedy(check: Check): JSX.Element | string {
  const name = contents.value?.name ?? "FILE";
  if (check.code === "UNKNOWN_SIGNER" || check.name === "signature" || check.name === "signature_pq") {
    return <>Pin the signer's key on <a href={link("keys")}>Keys</a>, after you compared it with its owner.</>;
  }
  if (["decisions", "changes", "evidence", "effects", "delegation", "protocol"].includes(check.name)) {
    return <Command>{`aver verify ${name}`}</Command>;
  }
  if (check.name === "columns" || check.name === "store") return "These belong to a ledger's file, and no copy has them.";
  if (check.name === "meta") return <>Open the whole ledger: <Command>aver export --out DIR</Command></>;
  return "";
}

function sentence(verdict: Verdict): string {
  const extent = `${plural(verdict.records, "record")}${verdict.chains ? ` in ${plural(verdict.chains, "chain")}` : ""}`;
  if (verdict.status === "verified") {
    const used = pins.value.map((pin) => `${pin.publicKey.slice(0, 16)}, which you pinned on ${pin.at.slice(0, 10)}`);
    return `Verified: ${extent}, signed by ${used.join("; ")}.`;
  }
  if (verdict.status === "qualified") return `Nothing failed in ${extent}, but not everything was checked. The list says what was not, and why.`;
  if (verdict.status === "empty") return "There is nothing to verify: no record was read. That is never a success.";
  return `It does not hold: ${verdict.first_bad?.words ?? "a check failed"}.`;
}

export function describePlace({ chain, sequence, source }: Place): string {
  const parts = [source ?? "", chain === null ? "" : `chain ${chain}`, sequence === null ? "" : `sequence ${sequence}`];
  return parts.filter(Boolean).join(", ") || "the whole";
}

function placeLink({ chain, sequence }: Place): string | null {
  const only = contents.value?.chains[0]?.id;
  const name = chain ?? (contents.value?.format === "bundle" ? null : only);
  return name ? (sequence === null ? link("s", name) : link("s", name, `at-${sequence}`)) : null;
}

export function FindingCard({ finding, isFirst = false }: { finding: Finding; isFirst?: boolean }): JSX.Element {
  const explained = ADVICE[finding.code];
  const target = placeLink(finding.place);
  return (
    <div class={`finding ${finding.status}`}>
      <p>
        <strong>{finding.code}</strong> at <Text>{describePlace(finding.place)}</Text>: <Text>{finding.words}</Text>
        {isFirst && target !== null ? <> <a href={target}>Go there</a></> : null}
      </p>
      {explained === undefined ? null : <p class="beside">{explained.meaning} {explained.advice}</p>}
    </div>
  );
}

function CheckRow({ check }: { check: Check }): JSX.Element {
  return (
    <tr>
      <th scope="row">
        <span class={`check ${check.status}`}>{check.status === "passed" ? "✓" : check.status === "failed" ? "✕" : "!"}</span> {check.name.replace("_", " ")}
      </th>
      <td class="number">{check.status === "passed" ? count(check.count) : check.status}</td>
      <td><Text>{check.reason}</Text></td>
    </tr>
  );
}

export function VerdictBand(): JSX.Element | null {
  const now = judgement.value;
  if (now.state === "none") return null;
  if (now.state === "working") {
    const { records = 0, bytes = 0, totalBytes = 0 } = now.progress ?? {};
    const share = totalBytes ? Math.floor((100 * bytes) / totalBytes) : 0;
    return (
      <section class="band working" aria-live="polite">
        <h2><Mark name="working" /> Verifying</h2>
        <p>{plural(records, "record")} judged so far, {share} % of the bytes.</p>
        <progress max={100} value={share} aria-label="Verification" />
        <p><button type="button" onClick={() => void stopVerifying()}>Stop</button></p>
      </section>
    );
  }
  if (now.state === "not judged") {
    return (
      <section class="band not-judged" aria-live="polite">
        <h2><Mark name="not judged" /> Not judged</h2>
        <p><Text>{now.words}</Text></p>
        <p><button type="button" onClick={() => void verifyThing()}>Try again</button></p>
      </section>
    );
  }
  return <Judged verdict={now.verdict} usesPlatform={now.usesPlatform} />;
}

function Judged({ verdict, usesPlatform }: { verdict: Verdict; usesPlatform: boolean }): JSX.Element {
  const made = verdict.checks.filter((check) => check.status !== "not_checked");
  const unmade = verdict.checks.filter((check) => check.status === "not_checked");
  const others = unmade.filter((check) => check.reason !== DOES_NOT_APPLY);
  const foreign = unmade.filter((check) => check.reason === DOES_NOT_APPLY).map((check) => check.name.replace("_", " "));
  const word = verdict.status;
  const name = contents.value?.name ?? "FILE";
  const keys = pins.value.map((pin) => ` --key ${pin.publicKey}`).join("");
  const [first, ...rest] = verdict.first_bad ? [verdict.first_bad, ...verdict.findings.filter((one) => one !== verdict.first_bad)] : [undefined, ...verdict.findings];
  return (
    <section class={`band ${word}`} aria-live="polite" aria-labelledby="verdict">
      <h2 id="verdict"><Mark name={word} /> {word[0]?.toUpperCase()}{word.slice(1)}</h2>
      <p class="sentence"><Text>{sentence(verdict)}</Text></p>
      {first === undefined ? null : <FindingCard finding={first} isFirst />}
      <div class="columns">
        <div>
          <h3>Checked</h3>
          <table class="checks">
            <tbody>{made.map((check) => <CheckRow key={check.name} check={check} />)}</tbody>
          </table>
        </div>
        <div>
          <h3>Not checked</h3>
          <table class="checks">
            <tbody>
              {others.map((check) => (
                <tr key={check.name} class={check.matters ? "matters" : ""}>
                  <th scope="row">{check.name.replace("_", " ")}</th>
                  <td><Text>{check.reason}</Text></td>
                  <td>{remedy(check)}</td>
                </tr>
              ))}
            </tbody>
          </table>
          {others.length ? null : <p>Every check that applies was made.</p>}
          {foreign.length ? <p class="beside">Does not apply here: {foreign.join(", ")}.</p> : null}
        </div>
      </div>
      {rest.length ? (
        <details open={rest.length <= 8}>
          <summary>{plural(rest.length, "more finding")}</summary>
          {rest.slice(0, 100).map((finding, at) => <FindingCard key={at} finding={finding} />)}
        </details>
      ) : null}
      <p class="beside">
        This page judged it, and came {document.documentElement.dataset["door"] === "site" ? "with these records" : "from where you opened it"}.
        Ed25519 by {usesPlatform ? "the browser, after checks of our own" : "JavaScript"}. Without this page:{" "}
        <Command>{`aver verify ${name}${keys}`}</Command>{" "}
        <Copy text={JSON.stringify(verdictDocument(verdict), (_, value: unknown) => (typeof value === "bigint" ? String(value) : value), 2)} label="copy as JSON" />
      </p>
    </section>
  );
}

/** The verdict in the bar. */
export function VerdictChip(): JSX.Element {
  const now = judgement.value;
  const name: MarkName = now.state === "done" ? now.verdict.status : now.state === "working" ? "working" : "not judged";
  if (now.state === "none") return <span class="chip" />;
  return (
    <a class={`chip ${name.replace(" ", "-")}`} href={link("")}>
      <Mark name={name} /> <span>{name === "working" ? "verifying" : name}</span>
    </a>
  );
}

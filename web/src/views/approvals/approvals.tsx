/** The requests for an approval: those that wait, and those that were answered. The page never asks for a passphrase. */

import type { JSX } from "preact";
import { useRef, useState } from "preact/hooks";
import { useRowKeys } from "../../parts/rows.ts";
import { Empty, Loading, Problem } from "../../parts/states.tsx";
import { Command, plural } from "../../parts/text.tsx";
import { contents } from "../../state.ts";
import type { ApprovalCase } from "../../worker/protocol.ts";
import { Case } from "./case.tsx";
import { CaseLine } from "./case_line.tsx";
import { PasskeyEnrolment } from "./passkey.tsx";
import { cases, casesProblem, isCasesCut, readCases, stateOf } from "./cases.ts";

/** Answered requests that are listed at once. */
const LISTED = 20;

function Cases({ all }: { all: ApprovalCase[] }): JSX.Element {
  const box = useRef<HTMLDivElement>(null);
  const [listed, setListed] = useState(LISTED);
  useRowKeys(box);
  const open = all.filter((one) => stateOf(one) === "pending");
  const done = all.filter((one) => stateOf(one) !== "pending");
  return (
    <div ref={box}>
      {open.length ? <section><h2>{plural(open.length, "request")} {open.length === 1 ? "waits" : "wait"} for an answer</h2><div class="cases">{open.map((one, at) => <CaseLine key={one.id} one={one} isFirst={at === 0} />)}</div></section> : <p class="strip">Nothing waits for you.</p>}
      {done.length ? <section><h2>Answered</h2><div class="cases">{done.slice(0, listed).map((one, at) => <CaseLine key={one.id} one={one} isFirst={!open.length && at === 0} />)}</div></section> : null}
      {done.length > listed ? <p class="all"><button type="button" onClick={() => setListed(listed + 5 * LISTED)}>Show {Math.min(5 * LISTED, done.length - listed)} more</button></p> : null}
      <p class="beside all">The states are computed here from the records and their signatures. A request that nobody answers in time is denied.</p>
    </div>
  );
}

export function ApprovalsView({ parts: [id] }: { parts: string[] }): JSX.Element {
  const all = cases.value;
  if (id) {
    const one = all?.find((found) => found.id === id);
    if (one) return <Case one={one} />;
    if (all === null && !casesProblem.value) return <Loading rows={6} words="Reading the request" />;
    return <Problem words={casesProblem.value || `There is no request ${id} here.`} retry={readCases} />;
  }
  return (
    <>
      <h1>Approvals</h1>
      {casesProblem.value ? <Problem words={casesProblem.value} retry={readCases} /> : null}
      {all === null && !casesProblem.value ? <Loading rows={6} words="Reading the requests" /> : null}
      {all !== null && !all.length ? <Empty command="aver approvals enrol person:NAME">{contents.value?.chains.some((chain) => chain.id.startsWith("approvals.")) ? "No request for an approval is in it." : "The gate has asked nobody yet."} It asks once a person is enrolled, and a rule or a risk wants an approval.</Empty> : null}
      {all !== null && isCasesCut.value ? <p class="strip">Only the newest {all.length} requests are listed. All that wait: <Command>aver approvals list</Command></p> : null}
      {all?.length ? <Cases all={all} /> : null}
      <PasskeyEnrolment />
    </>
  );
}

/** The acts of a gateway: preview, the two servers' shares, commit, and the effect that came of it. */

import type { JSX } from "preact";
import { useRef } from "preact/hooks";
import gateway from "../../../../src/aver/gateway/codes.json" with { type: "json" };
import { Value } from "../../parts/json.tsx";
import { OfDomain, ReadChain } from "../../parts/of_domain.tsx";
import { useRowKeys } from "../../parts/rows.ts";
import { NotHere } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { Hex, Text, Time, plural } from "../../parts/text.tsx";
import { Mark } from "../../parts/verdict.tsx";
import { unreadWords } from "../../records.ts";
import { type Act, type ActRecord, PATCH_NAMES, joinShares, readActs } from "../../sessions/acts.ts";
import { asObject, asText, lookUp } from "../../sessions/values.ts";
import { contents, link } from "../../state.ts";
import { at } from "../../verify/block.ts";
import { JsonNumber } from "../../verify/json.ts";
import { Statements } from "../capsule/statements.tsx";

/** Records of a chain that are read for this view. */
const READ_MAX = 20_000;
const CODES: Record<string, { meaning: string; advice: string }> = gateway.codes;

export function ActsView({ parts: [wanted = "", actionId = ""] }: { parts: string[] }): JSX.Element {
  return (
    <OfDomain domain="gateway" title="Acts" route="acts" wanted={wanted} what="chain of acts" empty={["No act went through a gateway in these records. This sends one:", "aver gateway act INTENT --inputs '{}'"]}>
      {(chain) => (
        <ReadChain key={chain} chain={chain} most={READ_MAX} command="aver show ACTION_ID" read={(records) => ({ acts: readActs(records), isWhole: !unreadWords(records) })}>
          {({ acts, isWhole }) => <ActsOfChain chain={chain} acts={acts} isWhole={isWhole} actionId={actionId} />}
        </ReadChain>
      )}
    </OfDomain>
  );
}

function ActsOfChain({ chain, acts, isWhole, actionId }: { chain: string; acts: Act[]; isWhole: boolean; actionId: string }): JSX.Element {
  const chosen = actionId ? acts.find((act) => act.actionId === actionId) : acts[0];
  const box = useRef<HTMLElement>(null);
  useRowKeys(box);
  return (
    <>
      <p class="beside"><a href={link("chain", chain)}><Text>{chain}</Text></a> · {plural(acts.length, "act")}</p>
      {acts.length || !isWhole ? null : <p class="strip">There is no act in this chain.</p>}
      {actionId && chosen === undefined ? <NotHere what="act" name={actionId} /> : null}
      <div class="acts-split">
        <nav aria-label="Acts" ref={box}>
          <ol>
            {acts.map((act) => (
              <li key={act.actionId}>
                <a href={link("acts", chain, act.actionId)} data-row tabIndex={act === (chosen ?? acts[0]) ? 0 : -1} aria-current={act === chosen ? "true" : undefined}>
                  <span class={`state ${act.state}`}>{SIGNS[act.state]} <Text>{act.state === "broken" ? "no preview" : act.code || act.state}</Text></span>
                  <span><Text>{act.intent || act.actionId}</Text></span>
                  <span class="beside"><Text>{act.caller}</Text> · <Time short>{act.preview?.at ?? act.commits[0]?.at ?? ""}</Time></span>
                </a>
              </li>
            ))}
          </ol>
        </nav>
        {chosen ? <ActDetail key={chosen.actionId} act={chosen} chain={chain} /> : null}
      </div>
    </>
  );
}

const SIGNS: Record<Act["state"], string> = { done: "✓", refused: "✕", waits: "…", open: "○", broken: "!" };

function ActDetail({ act, chain }: { act: Act; chain: string }): JSX.Element {
  const { preview, commits, outcomes } = act;
  return (
    <ol class="stages">
      <Stage title="Preview" record={preview} chain={chain} missing="There is no preview of this act. A commit without one is forged, or its preview was cut off.">
        {preview ? <Preview record={preview} chain={chain} /> : null}
      </Stage>
      <li class={commits.length ? "stage" : "stage missing"}>
        <h2>Shares</h2>
        {commits.length ? commits.map((commit) => <Shares key={commit.place} commit={commit} act={act} />) : <p class="soft">No share was used: the act was never committed.</p>}
      </li>
      {commits.length ? commits.map((commit) => (
        <Stage key={commit.place} title="Commit" record={commit} chain={chain} missing="">
          <dl class="facts">
            <div><dt>Executor</dt><dd><Value value={commit.result.get("executor") ?? null} /></dd></div>
            <div><dt>Change</dt><dd><Value value={at(commit.result, "patch") ?? null} /></dd></div>
          </dl>
          {commit.statements.length ? <details><summary>{plural(commit.statements.length, "signed statement")}</summary><Statements values={commit.statements} /></details> : null}
        </Stage>
      )) : <Stage title="Commit" record={null} chain={chain} missing={act.state === "waits" ? "It waits for a person's approval. After that, the same act is sent again." : "It was not committed."}>{null}</Stage>}
      {outcomes.length ? outcomes.map((outcome) => (
        <Stage key={outcome.place} title={outcome.status === "success" ? "Effect" : "Refused"} record={outcome} chain={chain} missing="">
          <Code record={outcome} />
          <Value value={outcome.result.get("result") ?? null} />
          {asText(outcome.result.get("sent_sha256")) ? <p class="beside">SHA-256 of what was sent: <Hex>{asText(outcome.result.get("sent_sha256"))}</Hex></p> : null}
        </Stage>
      )) : <Stage title="Effect" record={null} chain={chain} missing={commits.length ? "Its outcome is not sealed here: it is unknown whether the effect took place." : "There was no effect."}>{null}</Stage>}
    </ol>
  );
}

function Stage({ title, record, chain, missing, children }: { title: string; record: ActRecord | null; chain: string; missing: string; children: JSX.Element | JSX.Element[] | (JSX.Element | null)[] | null }): JSX.Element {
  return (
    <li class={`stage${record === null ? " missing" : ""}${record?.status === "blocked" ? " refused" : ""}`}>
      <h2>{title} {record ? <span class="beside"><Time>{record.at}</Time> · <a href={link("c", chain, `p${record.place}`)}>record {record.place}</a></span> : null}</h2>
      {record === null ? <p class="soft">{missing}</p> : children}
    </li>
  );
}

/** What ALLOW means before anything was done. */
const ALLOWED_SO_FAR = { meaning: "Every check passed so far: the act may be committed. Nothing is done yet.", advice: "" };

function Code({ record }: { record: ActRecord }): JSX.Element {
  const explained = record.kind === "act.preview" && record.status === "success" ? ALLOWED_SO_FAR : lookUp(CODES, record.reasonCode);
  return (
    <p><strong class={record.status === "blocked" ? "bad" : record.status === "pending" ? "warn" : "good"}><Text>{record.reasonCode}</Text></strong>{record.detail ? <> <Text>{record.detail}</Text></> : null}
      {explained ? <span class="beside"> {explained.meaning} {record.status === "success" ? "" : explained.advice}</span> : null}
    </p>
  );
}

function Preview({ record, chain }: { record: ActRecord; chain: string }): JSX.Element {
  const { result } = record;
  const inputs = asObject(result.get("inputs"));
  const gate = `gate.${chain.replace(/^gateway\./, "")}`;
  const hasGate = (contents.value?.chains ?? []).some((one) => one.id === gate);
  return (
    <>
      <Code record={record} />
      {inputs.size ? <><h3>What was asked for</h3><Value value={inputs} /></> : <p class="beside">The inputs are sealed by their digest alone: <Hex>{asText(result.get("inputs_sha256"))}</Hex></p>}
      <dl class="facts">
        <div><dt>Allowed</dt><dd>{bitText(result.get("allow_pre"), "yes", "no")}</dd></div>
        <div><dt>A person must confirm</dt><dd>{bitText(result.get("need_confirm"), "yes", "no")}</dd></div>
        <div><dt>Change</dt><dd><Text>{asText(at(result, "patch", "patch_name")) || "none"}</Text></dd></div>
        <div><dt>Expires</dt><dd>{asText(result.get("expires")) ? <Time>{asText(result.get("expires"))}</Time> : "–"}</dd></div>
        <div><dt>Request</dt><dd><Hex>{asText(result.get("request_sha256"))}</Hex></dd></div>
        <div><dt>Program of the rules</dt><dd><code><Text>{asText(result.get("program_id")).slice(0, 32)}</Text>…</code></dd></div>
        {record.decision ? <div><dt>Decision</dt><dd><code><Text>{record.decision}</Text></code>{hasGate ? <> in <a href={link("chain", gate)}><Text>{gate}</Text></a></> : null}</dd></div> : null}
      </dl>
      {record.statements.length ? <details><summary>{plural(record.statements.length, "signed statement")}</summary><Statements values={record.statements} /></details> : null}
    </>
  );
}

function bitText(value: unknown, yes: string, no: string): string {
  return value instanceof JsonNumber ? (value.text === "1" ? yes : value.text === "0" ? no : value.text) : "–";
}

/** The two shares side by side, and what they say together. */
function Shares({ commit, act }: { commit: ActRecord; act: Act }): JSX.Element {
  const joined = joinShares(commit, act.actionId);
  if (joined === null) return <p class="finding failed">The commit does not have the shares of both servers.</p>;
  const preview = act.preview?.result;
  const isSame = preview !== undefined && bitText(preview.get("allow_pre"), "1", "0") === String(joined.allow) && asText(at(preview, "patch", "patch_name")) === PATCH_NAMES[joined.patch ?? 0];
  const names = joined.servers[0]?.outputs.map(([name]) => name) ?? [];
  return (
    <>
      <p><Mark name={joined.isOfThisAct && isSame ? "qualified" : "failed"} /> {!joined.isOfThisAct ? <strong class="bad">These shares are of another act or request.</strong> : isSame ? "Joined, both shares say what the preview says. Their MACs are checked by aver verify, which has the servers' keys." : <strong class="bad">Joined, the shares do not say what the preview says.</strong>}</p>
      <Table of="plain shares" label="Shares" heads={["Answer", ...joined.servers.map(({ server }) => <Text>{server}</Text>), "together"]}>
        {names.map((name, place) => (
          <tr key={name}><th scope="row"><Text>{name.replaceAll("_", " ")}</Text></th>{joined.servers.map(({ server, outputs }) => <td key={server} class="figure"><Text>{outputs[place]?.[1] ?? "–"}</Text></td>)}
            <td class="figure">{name === "allow_pre" ? joined.allow : name === "need_confirm" ? joined.confirm : joined.patch === null ? "–" : (joined.patch >> (name === "patch1" ? 1 : 0)) & 1}</td></tr>
        ))}
      </Table>
    </>
  );
}

/** The six sections of a record as prose and tables. A number is shown as the record writes it. */

import type { ComponentChildren, JSX } from "preact";
import { DiffView } from "../../parts/diff.tsx";
import { Value } from "../../parts/json.tsx";
import { Table } from "../../parts/table.tsx";
import { Terminal } from "../../parts/terminal.tsx";
import { Linked, Text, Time } from "../../parts/text.tsx";
import { isDiff } from "../../sessions/changed_lines.ts";
import { commandLine, readDecision } from "../../sessions/decisions.ts";
import { changedPaths } from "../../sessions/files.ts";
import { labelledTexts } from "../../sessions/labels.ts";
import { readStep } from "../../sessions/step.ts";
import { asList, asObject, asText, lookUp } from "../../sessions/values.ts";
import { readKind } from "../../verify/block.ts";
import { type Json, JsonNumber, type JsonObject, isObject } from "../../verify/json.ts";
import type { Sealed } from "../../verify/sealed.ts";
import { DecisionCard } from "./decision.tsx";
import { Statements } from "./statements.tsx";

function Section({ name, title, children }: { name: string; title: string; children: ComponentChildren }): JSX.Element {
  return <section class="section" id={`section-${name}`}><h2>{title} <span class="soft">{name}</span></h2>{children}</section>;
}

/** Fields of a section that were not shown in another form, as a table. */
function Rest({ section, shown }: { section: JsonObject; shown: string[] }): JSX.Element | null {
  const rest = new Map([...section].filter(([name]) => !shown.includes(name)));
  return rest.size ? <Value value={rest} /> : null;
}

function Prose({ text }: { text: string }): JSX.Element {
  return <div class="prose"><Linked>{text}</Linked></div>;
}

export function Sections({ record, content, isDenied }: { record: Sealed; content: JsonObject; isDenied: boolean }): JSX.Element {
  const section = (name: string) => asObject(content.get(name));
  const paths = changedPaths(readStep(record));
  return (
    <>
      <Trigger section={section("trigger")} />
      <Context section={section("context")} />
      <Reasoning section={section("reasoning")} />
      <Authority section={section("authority")} isDenied={isDenied} isCall={!/^(approval|protocol)\./.test(readKind(content))} />
      <Execution section={section("execution")} paths={paths} isDenied={isDenied} />
      <Outcome section={section("outcome")} record={record} paths={paths} />
    </>
  );
}

function Trigger({ section }: { section: JsonObject }): JSX.Element {
  const request = asText(section.get("request"));
  const time = asText(section.get("timestamp"));
  return (
    <Section name="trigger" title="What started it">
      {request ? <Prose text={request} /> : null}
      {time ? <p class="beside"><Time>{time}</Time></p> : null}
      <Rest section={section} shown={["request", "timestamp"]} />
    </Section>
  );
}

function Context({ section }: { section: JsonObject }): JSX.Element {
  const environment = asObject(section.get("environment"));
  const block = environment.get("aver");
  const shown = new Map([...section].map(([name, value]) => [name, name === "environment" && isObject(value) ? new Map([...environment].filter(([key]) => key !== "aver")) : value]));
  return (
    <Section name="context" title="Where it happened">
      <Value value={shown} />
      {isObject(block) ? <details><summary>Aver's block: <Text>{asText(block.get("kind"))}</Text></summary><Value value={block} /></details> : null}
    </Section>
  );
}

function Reasoning({ section }: { section: JsonObject }): JSX.Element {
  const [analysis, thinking] = [asText(section.get("analysis")), asText(section.get("reasoning"))];
  const options = asList(section.get("options")).filter(isObject);
  return (
    <Section name="reasoning" title="Why">
      {analysis ? <Prose text={analysis} /> : null}
      {thinking ? <details class="thinking" open={!analysis}><summary>What the model thought</summary><Prose text={thinking} /></details> : null}
      {options.length ? <Options options={options} selected={section.get("selected_option") ?? null} /> : null}
      <Rest section={section} shown={["analysis", "reasoning", ...(options.length ? ["options", "options_considered"] : [])]} />
    </Section>
  );
}

/** The options that were weighed, and why each was not chosen. */
function Options({ options, selected }: { options: JsonObject[]; selected: Json }): JSX.Element {
  const known = ["id", "description", "pros", "cons", "estimated_impact", "feasibility", "risks", "selected", "rejection_reason"];
  return (
    <Table of="options" heads={["Option", "Feasibility", "Chosen", "Why, or why not"]}>
      {options.map((option, place) => {
        const name = asText(option.get("description")) || asText(option.get("id")) || `option ${place}`;
        const isChosen = option.get("selected") === true || (selected !== null && (selected === option.get("id") || selected === option.get("description")));
        const others = new Map([...option].filter(([key, value]) => !known.includes(key) || (["pros", "cons", "risks"].includes(key) && asList(value).length)));
        return (
          <tr key={place} class={isChosen ? "chosen" : ""}>
            <th scope="row"><Text>{name}</Text></th>
            <td class="figure">{option.get("feasibility") instanceof JsonNumber ? (option.get("feasibility") as JsonNumber).text : "–"}</td>
            <td>{isChosen ? <strong>✓ chosen</strong> : "rejected"}</td>
            <td><Text>{asText(option.get("rejection_reason")) || (isChosen ? "" : "it does not say why")}</Text>{others.size ? <Value value={others} /> : null}</td>
          </tr>
        );
      })}
    </Table>
  );
}

/** The authority of a record in words. It says no more than the record does: a type alone does not tell what was decided. */
function AuthorityWords({ section }: { section: JsonObject }): JSX.Element | null {
  const [approver, policy, reason] = ["approver", "policy_reference", "escalation_reason"].map((name) => asText(section.get(name))) as [string, string, string];
  switch (asText(section.get("type"))) {
    case "autonomous": return <>The agent did it by itself: nobody was asked.</>;
    case "policy": return policy ? <>The record rests on this policy, and names no person: <Text>{policy}</Text></> : <>The record rests on a policy that it does not name.</>;
    case "human_approved": return approver === "client" ? <>A person approved it, as the client reports.</> : <>{approver ? <Text>{approver}</Text> : "A person"} approved it.</>;
    case "escalated": return <>{approver ? <><Text>{approver}</Text> was asked about it</> : "It was passed on"}{reason ? <>: <Text>{reason}</Text></> : "."}</>;
    case "unknown": return <>Nobody is known to have decided about it.</>;
    default: return null;
  }
}

/** Who denied it. The specification has no type for a refusal: one by a person has the type of an approval, one of the first level that of the next. */
function denier(section: JsonObject): string {
  const [type, approver, policy] = ["type", "approver", "policy_reference"].map((name) => asText(section.get(name))) as [string, string, string];
  if (approver) return approver === "client" ? "a person, as the client reports" : approver;
  if (type === "human_approved" || type === "escalated") return "a person, whom the record does not name";
  return policy ? `the policy ${policy}` : "somebody whom the record does not name";
}

function Authority({ section, isDenied, isCall }: { section: JsonObject; isDenied: boolean; isCall: boolean }): JSX.Element {
  const type = asText(section.get("type"));
  const chain = asList(section.get("chain"));
  return (
    <Section name="authority" title="Who decided">
      {isDenied ? <p><strong class="bad">Denied by <Text>{denier(section)}</Text>{isCall ? "; nothing ran" : ""}.</strong></p> : type ? <p><strong><Text>{type.replaceAll("_", " ")}</Text></strong>. <AuthorityWords section={section} /></p> : null}
      {chain.length ? <><h3>Signed statements</h3><Statements values={chain} /></> : null}
      <Rest section={section} shown={["type", "chain", ...(isDenied ? ["approver", "policy_reference"] : [])]} />
    </Section>
  );
}

function Execution({ section, paths, isDenied }: { section: JsonObject; paths: string[]; isDenied: boolean }): JSX.Element {
  const calls = asList(section.get("tool_calls")).filter(isObject);
  return (
    <Section name="execution" title={isDenied ? "What was asked for" : "What was done"}>
      {calls.map((call, place) => <Call key={place} call={call} paths={paths} isDenied={isDenied} />)}
      <Rest section={section} shown={["tool_calls"]} />
    </Section>
  );
}

function Call({ call, paths, isDenied }: { call: JsonObject; paths: string[]; isDenied: boolean }): JSX.Element {
  const given = asObject(call.get("arguments"));
  const command = commandLine(given);
  return (
    <div class="tool-call">
      <h3><code><Text>{asText(call.get("tool")) || "tool"}</Text></code> {isDenied ? <span class="bad">did not run</span> : call.get("success") === true ? <span class="good">ended well</span> : call.get("success") === false ? <span class="bad">did not end well</span> : null}</h3>
      {command ? <pre class="command-line" tabIndex={0}><Text>{command}</Text></pre> : null}
      {!command && given.size ? <Value value={given} /> : null}
      {command && given.size > 1 ? <Value value={new Map([...given].filter(([name]) => name !== "command" && name !== "cmd"))} /> : null}
      {asText(call.get("error")) ? <Terminal text={asText(call.get("error"))} label="Error" /> : null}
      <Output value={call.get("result") ?? null} paths={paths} />
      <Rest section={call} shown={["tool", "arguments", "result", "success", "error"]} />
    </div>
  );
}

/** A result: a diff, the output of a command, or a table. */
export function Output({ value, paths = [] }: { value: Json; paths?: string[] }): JSX.Element | null {
  if (typeof value === "string") return value ? (isDiff(value) ? <DiffView diff={value} paths={paths} /> : <Terminal text={value} />) : null;
  if (isObject(value) && [...value.values()].some((item) => typeof item === "string" && (item.includes("\n") || item.includes("\x1b[")))) {
    return (
      <>
        {labelledTexts(value).map((part, place) => (
          <section key={place} class="output">
            {part.name ? <h4><Text>{part.name}</Text></h4> : null}
            {part.isAside ? <p class="beside"><Linked>{part.text}</Linked></p> : isDiff(part.text) ? <DiffView diff={part.text} paths={paths} /> : <Terminal text={part.text} />}
          </section>
        ))}
      </>
    );
  }
  return value === null ? null : <Value value={value} />;
}

const STATUSES: Record<string, [string, string]> = {
  success: ["good", "It ended well."],
  failure: ["bad", "It failed."],
  blocked: ["bad", "It was denied."],
  pending: ["warn", "Its outcome is not known here."],
  partial: ["warn", "It ended in part."],
};

function Outcome({ section, record, paths }: { section: JsonObject; record: Sealed; paths: string[] }): JSX.Element {
  const status = asText(section.get("status"));
  const decision = readDecision(record);
  const result = section.get("result") ?? null;
  const diff = isObject(result) && typeof result.get("diff") === "string" ? (result.get("diff") as string) : "";
  const [tone, words] = lookUp(STATUSES, status) ?? ["", ""];
  return (
    <Section name="outcome" title="What came of it">
      {status ? <p><strong class={tone}><Text>{status}</Text></strong>. {words}</p> : null}
      {asText(section.get("summary")) ? <Prose text={asText(section.get("summary"))} /> : null}
      {asText(section.get("error")) ? <Terminal text={asText(section.get("error"))} label="Error" /> : null}
      {decision === null ? null : <DecisionCard decision={decision} isLinked={false} />}
      {diff ? <DiffView diff={diff} paths={paths} /> : null}
      {diff ? <Rest section={new Map([...(result as JsonObject)].filter(([name]) => name !== "diff"))} shown={[]} /> : decision === null ? <Output value={result} paths={paths} /> : <details class="all-fields"><summary>All that the decision rests on</summary><Output value={result} /></details>}
      <Rest section={section} shown={["status", "summary", "error", "result"]} />
    </Section>
  );
}

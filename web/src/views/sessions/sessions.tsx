/** The sessions of coding agents and runs: one row each, with figures that are counted from the records. */

import { useEffect, useState } from "preact/hooks";
import type { JSX } from "preact";
import { Text, Time, count } from "../../parts/text.tsx";
import { connection, contents, link } from "../../state.ts";
import type { Figures, ListedChain } from "../../worker/protocol.ts";
import { ChainMark } from "../chains/chains.tsx";

/** Domains whose chains are not sessions: the ledger's own records, and those of the gate. */
const OTHERS = new Set(["meta", "keys", "gate", "approvals", "approvers", "delegations"]);
/** Sessions that are counted and shown at once. */
const SHOWN_MAX = 50;

export function listSessions(): ListedChain[] {
  const all = contents.value?.chains ?? [];
  const domain = (id: string) => id.replace(/^import\.[0-9a-f]{16}\./, "").split(".", 1)[0] ?? "";
  return all.filter((chain) => !OTHERS.has(domain(chain.id))).sort((one, other) => (one.endedAt < other.endedAt ? 1 : -1));
}

export function SessionsView(_: { parts: string[] }): JSX.Element {
  const [wanted, setWanted] = useState("");
  const [tool, setTool] = useState("");
  const [shown, setShown] = useState(SHOWN_MAX);
  const [figures, setFigures] = useState(new Map<string, Figures>());
  const sessions = listSessions();
  const tools = [...new Set(sessions.map((session) => session.tool))].sort();
  const found = sessions.filter((session) => {
    return (!tool || session.tool === tool) && `${session.id} ${session.title}`.toLowerCase().includes(wanted.toLowerCase());
  });
  const listed = found.slice(0, shown);
  const names = listed.map((session) => session.id).join("\n");
  useEffect(() => {
    let isCurrent = true;
    void (async () => {
      for (const name of names ? names.split("\n") : []) {
        if (!isCurrent || figures.has(name)) continue;
        const counted = await connection.ask({ type: "figures", chain: name }).catch(() => null);
        if (isCurrent && counted !== null) setFigures((before) => new Map(before).set(name, counted));
      }
    })();
    return () => {
      isCurrent = false;
    };
  }, [names, contents.value]);
  return (
    <>
      <h1>Sessions</h1>
      <p class="filters">
        <label>Filter <input type="search" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} /></label>{" "}
        <label>Tool <select value={tool} onChange={(event) => setTool(event.currentTarget.value)}>
          <option value="">all</option>
          {tools.map((name) => <option key={name} value={name}>{name}</option>)}
        </select></label>{" "}
        <span class="beside">{count(found.length)} of {count(sessions.length)}, newest first</span>
      </p>
      {sessions.length ? null : <p class="strip">There is no session in it. <code>aver ingest</code> and <code>aver install</code> record those of coding agents.</p>}
      <div class="scroll">
        <table class="chains sessions">
          <thead>
            <tr><th scope="col">State</th><th scope="col">Title</th><th scope="col">Tool</th><th scope="col">Start</th><th scope="col" class="number">Records</th><th scope="col" class="number">Calls</th><th scope="col" class="number">Failures</th><th scope="col" class="number">Denials</th><th scope="col" class="number">Tokens in → out</th></tr>
          </thead>
          <tbody>
            {listed.map((session) => {
              const sum = figures.get(session.id);
              const figure = (value: number | undefined) => (value === undefined ? "…" : count(value));
              return (
                <tr key={session.id}>
                  <td class="state"><ChainMark chain={session.id} /></td>
                  <td><a href={link("s", session.id)}><Text>{session.title}</Text></a></td>
                  <td><Text>{session.tool}</Text></td>
                  <td><Time>{sum?.startedAt ?? session.startedAt}</Time></td>
                  <td class="number">{figure(sum?.records)}</td>
                  <td class="number">{figure(sum?.calls)}</td>
                  <td class="number">{figure(sum?.failures)}</td>
                  <td class="number">{figure(sum?.denials)}</td>
                  <td class="number">{sum === undefined ? "…" : `${count(sum.tokensIn)} → ${count(sum.tokensOut)}`}</td>
                </tr>
              );
            })}
          </tbody>
        </table>
      </div>
      {found.length > shown ? <p><button type="button" onClick={() => setShown(shown + SHOWN_MAX)}>Show {SHOWN_MAX} more</button></p> : null}
      <p class="beside">Titles are claims of the index, which the verdict compares. The figures are counted from the records.</p>
    </>
  );
}

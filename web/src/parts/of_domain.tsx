/** The chains of one domain, such as a gateway's: which of them is shown, and what a view makes of its records. */

import type { JSX } from "preact";
import { chainsOf, countRecords, readRecords, unreadWords } from "../records.ts";
import { contents, link } from "../state.ts";
import type { BadInput } from "../verify/json.ts";
import type { Sealed } from "../verify/sealed.ts";
import { Empty, NotHere, Problem, useAnswer } from "./states.tsx";
import { Command, plural, visible } from "./text.tsx";

interface OfDomainProps {
  domain: string;
  title: string;
  /** The view's own name in addresses. */
  route: string;
  /** The chain that the address names; empty for the first. */
  wanted: string;
  /** A chain of this domain in words, such as `trace`. */
  what: string;
  /** Said where there is no such chain, with the command that makes one. */
  empty: [words: string, command: string];
  children: (chain: string) => JSX.Element;
}

export function OfDomain({ domain, title, route, wanted, what, empty: [words, command], children: show }: OfDomainProps): JSX.Element {
  const chains = chainsOf(new RegExp(`^${domain}\\.`));
  const chosen = wanted ? (chains.includes(wanted) ? wanted : "") : (chains[0] ?? "");
  return (
    <section class={`${route}-view`}>
      <h1>{title}</h1>
      {chains.length ? null : <Empty command={command}>{words}</Empty>}
      {chains.length && !chosen ? <NotHere what={what} name={wanted} /> : null}
      {chains.length > 1 || (chains.length && !chosen) ? <p><label>Chain <select value={chosen} onChange={(event) => { location.hash = link(route, event.currentTarget.value); }}>{chosen ? null : <option value="">choose one</option>}{chains.map((name) => <option key={name} value={name}>{visible(name)}</option>)}</select></label></p> : null}
      {chosen ? show(chosen) : null}
    </section>
  );
}

interface ReadChainProps<Result> {
  chain: string;
  /** Records up to which the view reads a chain. `command` tells of a longer one. */
  most: number;
  command: string;
  read: (records: (Sealed | BadInput)[]) => Result | Promise<Result>;
  children: (found: Result) => JSX.Element;
}

/** Reads a whole chain, and shows what `read` makes of it. */
export function ReadChain<Result>({ chain, most, command, read, children: show }: ReadChainProps<Result>): JSX.Element {
  const total = countRecords([chain]);
  const { value, words, retry } = useAnswer(async () => {
    if (total > most) return null;
    const records: (Sealed | BadInput)[] = [];
    for await (const batch of readRecords(chain)) records.push(...batch);
    return { found: await read(records), unread: unreadWords(records) };
  }, [chain, contents.value]);
  if (total > most) return <p class="strip">This chain has {plural(total, "record")}, more than this view reads. <a href={link("chain", chain)}>Read the chain</a>, or: <Command>{command}</Command></p>;
  if (words) return <Problem words={words} retry={retry} />;
  if (value === null) return <div aria-busy="true"><div class="band placeholder tall" /><div class="band placeholder tall" /></div>;
  return <>{value.unread ? <Problem words={value.unread} retry={retry} /> : null}{show(value.found)}</>;
}

/** The sessions of the open thing, and the figures of each, as `aver sessions` counts them. */

import { type SessionChains, groupChains } from "../sessions/chains.ts";
import { readStep } from "../sessions/step.ts";
import { readSession } from "../sessions/story.ts";
import { at } from "../verify/block.ts";
import { BadInput, JsonNumber } from "../verify/json.ts";
import { Sealed } from "../verify/sealed.ts";
import type { Library } from "./library.ts";
import type { SessionFigures } from "./protocol.ts";
import { safeContent, text } from "./rows.ts";

export async function listSessions(library: Library): Promise<SessionChains[]> {
  const rows = library.chains.map(({ id, origin }) => ({ name: id, origin }));
  return groupChains(rows, async (chain) => {
    const first = await library.readFirst(chain);
    return first instanceof Sealed ? readStep(first) : null;
  });
}

/** The figures of one session, counted from its records. */
export async function countSession(library: Library, session: SessionChains): Promise<SessionFigures> {
  let workspace = "";
  const read = async function* (chain: string) {
    for await (const items of library.readBatches(chain)) {
      for (const item of items) {
        if (item instanceof BadInput) continue;
        item.chain = chain;
        workspace ||= findWorkspace(item);
      }
      yield items;
    }
  };
  const blob = (digest: string) => library.blob(digest).catch(() => null);
  const { totals, entries } = await readSession(session, read, blob);
  let risk: number | null = null;
  for (const { decision } of entries) {
    const score = decision?.score;
    if (score instanceof JsonNumber && Number.isFinite(score.value)) risk = Math.max(risk ?? 0, score.value);
  }
  return { ...totals, risk, workspace };
}

/** The directory in which the agent worked, where the record says it. */
function findWorkspace(record: Sealed): string {
  if (!/"(?:cwd|workspace)":/.test(record.canonical)) return "";
  const environment = at(safeContent(record), "context", "environment");
  const action = at(safeContent(record), "outcome", "result", "action");
  return text(at(environment, "cwd")) || text(at(environment, "workspace")) || text(at(action, "workspace"));
}

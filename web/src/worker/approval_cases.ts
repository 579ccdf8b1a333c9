/** The requests for an approval, each with its state. The states come from the records, by the rules of the verifier. */

import { domainOf } from "../verify/block.ts";
import { type ApprovalRequest, REQUEST_KIND, USE_KIND, VOTE_KIND, type Vote, computeState, isByPerson, matchesAction, readRequest, readVote, voteProblem } from "../verify/approvals/request.ts";
import { ChainJudge, plainRules, prepareRecords } from "../verify/chain.ts";
import type { Ed25519 } from "../verify/ed25519.ts";
import { BadInput } from "../verify/json.ts";
import type { Ring } from "../verify/ring.ts";
import { Sealed } from "../verify/sealed.ts";
import type { Library } from "./library.ts";
import type { ApprovalCase, Results } from "./protocol.ts";

/** Requests that are listed: the newest, and those that may still wait for an answer. */
export const CASES_MAX = 500;

interface Found {
  request: ApprovalRequest;
  record: Sealed;
  place: number;
  problem: string;
  isSignerKnown: boolean;
  votes: { vote: Vote; place: number }[];
  newest: string;
}

/** Read all requests of the ledger's own approvals, the newest first. */
export async function listApprovals(library: Library, ring: Ring, now: string): Promise<Results["approvals"]> {
  const { ledger, tenant } = library.owner;
  const chain = library.chains.find((one) => domainOf(one.id) === "approvals")?.id;
  if (chain === undefined) return { cases: [], isCut: false };
  const rules = plainRules(ring, library.verifier);
  const cases = new Map<string, Found>();
  let place = -1;
  let isCut = false;
  for await (const items of library.readBatches(chain)) {
    await prepareRecords(rules, items.filter((item) => item instanceof Sealed));
    for (const record of items) {
      place++;
      if (record instanceof BadInput) continue;
      try {
        // An answer names its request, so that one without a name cannot have any.
        if (record.kind === REQUEST_KIND && typeof record.content.get("id") === "string") {
          const judge = new ChainJudge(rules, { chain, start: null });
          judge.judge(record);
          const failed = judge.tally.findings.find((finding) => finding.status === "failed");
          const request = readRequest(record, ledger, tenant);
          cases.set(request.id, {
            ...{ request, record, place, votes: [], newest: request.opened },
            problem: failed === undefined ? "" : `${failed.code}: ${failed.words}`,
            isSignerKnown: judge.signer !== null,
          });
          if (cases.size > CASES_MAX) {
            // The oldest goes whose time is over. One that waits stays, unless more than the limit wait.
            const [oldest] = cases.keys();
            const over = [...cases.values()].find((one) => one.request.expires < now)?.request.id;
            cases.delete(over ?? (oldest as string));
            isCut = true;
          }
        } else if (record.kind === VOTE_KIND || record.kind === USE_KIND) {
          const { about, vote } = readVote(record);
          const found = cases.get(about);
          found?.votes.push({ vote, place });
          if (found && vote.at > found.newest) found.newest = vote.at;
        }
      } catch (error) {
        if (!(error instanceof BadInput)) throw error; // The verdict reports it at its place.
      }
    }
  }
  return { cases: [...cases.values()].reverse().map((found) => describe(found, chain, library.verifier, now)), isCut };
}

function describe({ request, record, place, problem, isSignerKnown, votes, newest }: Found, chain: string, verifier: Ed25519, now: string): ApprovalCase {
  const state = computeState(request, votes.map(({ vote }) => vote), verifier, now, newest);
  return {
    ...{ id: request.id, chain, place, canonical: record.canonical, hash: record.hash, opened: request.opened, expires: request.expires },
    ...{ digest: request.digest, state: state.state, reason: state.reason, floor: state.floor, levels: request.levels },
    approvers: [...request.approvers.values()].map(({ identity, key, custody }) => ({ identity, fingerprint: key.fingerprint, custody })),
    isSameAction: matchesAction(request),
    votes: votes.map(({ vote, place: at }) => ({
      ...{ at: vote.at, word: vote.word, approver: vote.approver ?? "", level: vote.level, place: at },
      problem: isByPerson(vote) ? (voteProblem(request, vote, verifier)?.join(": ") ?? "") : "",
    })),
    ...{ problem, isSignerKnown },
  };
}

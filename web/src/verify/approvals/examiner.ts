/** Proving approvals afterwards, under the check `approvals`. The twin of `gate.approvals.verify`, which lists the rules. */

import { at, chainName, readKind } from "../block.ts";
import { canonicalContent } from "../canonical.ts";
import { makePrintable } from "../chain.ts";
import { sha256Hex } from "../digest.ts";
import { type Examination, type Examiner, guard, selectChains } from "../examiner.ts";
import { BadInput, type JsonNumber, JsonNumber as Numeral, type JsonObject, NotFound, isObject } from "../json.ts";
import { type KeyRole, PublicKey } from "../ring.ts";
import { isTrue, readDecision } from "../run/capsules.ts";
import type { Sealed } from "../sealed.ts";
import { statementFields } from "../statement.ts";
import { type CheckStatus, type Place, Tally, place } from "../verdict.ts";
import tools from "./tools.json" with { type: "json" };
import {
  type ApprovalRequest,
  EMPTY_SHA256,
  REQUEST_KIND,
  USE_KIND,
  VOTE_KIND,
  type Vote,
  blobDigest,
  computeState,
  hasScopeOf,
  isByPerson,
  listArguments,
  matchesAction,
  needsDescription,
  readDescription,
  readRequest,
  readVote,
  turnProblem,
  useProblem,
  voteProblem,
} from "./request.ts";
import { type Approver, PASSKEY, Roster, approverKey, findRingEntry, isIndependent, wholeKey } from "./roster.ts";

const CHECK = "approvals";

/** The verdict's code for a reason of refusal. Any other reason is a `STATE_VIOLATION`. */
const CODES: Record<string, string> = {
  SIG_MISSING: "SIG_MISSING",
  SIG_INVALID: "SIG_INVALID",
  UNKNOWN_KEY: "SIG_INVALID",
  KEY_RETIRED: "KEY_RETIRED",
  DIGEST_MISMATCH: "EVIDENCE_INVALID",
  STATEMENT_MISMATCH: "EVIDENCE_INVALID",
  NOT_LISTED: "ROLE_POLICY_VIOLATION",
  ALREADY_DECIDED: "REPLAY",
  REPLAY: "REPLAY",
  NOT_APPROVED: "EVIDENCE_INVALID",
  SCOPE_MISMATCH: "EVIDENCE_INVALID",
  EVIDENCE_INVALID: "EVIDENCE_INVALID",
};

export const APPROVALS_EXAMINER: Examiner = { domains: ["approvals", "approvers"], checks: [CHECK], examine };

async function examine(examination: Examination): Promise<Tally> {
  const { reader, tenant } = examination;
  const roster = chainName("approvers", tenant) as string;
  const approvals = chainName("approvals", tenant) as string;
  const checker = new ApprovalChecker(examination);
  // The roster first: requests name keys from it.
  for (const [chain, check] of [
    [roster, (record: Sealed) => checker.checkEnrolment(record)],
    [approvals, (record: Sealed) => checker.checkRecord(record)],
  ] as const) {
    if (!reader.has(chain)) continue;
    for await (const record of reader.read(chain)) {
      await guard(checker.tally, CHECK, placeOf(record), async () => check(record));
    }
  }
  let { tally } = checker;
  if (!examination.isComplete && !reader.has(roster)) {
    tally = new Tally();
    tally.skip(CHECK, "the approvers' enrolments are not here", { matters: true });
  }
  await checkWords(examination, checker.used, tally);
  return tally;
}

/** Hold the words of each decision that used an approval to those that the person was shown. `uses` has requests by the use's id. */
async function checkWords(examination: Examination, uses: Map<string, ApprovalRequest>, tally: Tally): Promise<void> {
  const { reader } = examination;
  for (const chain of uses.size ? selectChains(examination, "gate") : []) {
    for await (const record of reader.read(chain.origin)) {
      const decision = readDecision(record.content);
      const use = decision?.decision === "human_approved" ? at(record.content, "context", "environment", "aver", "refs", "approval") : null;
      const request = typeof use === "string" ? uses.get(use) : undefined;
      if (decision === null || request === undefined) continue;
      uses.delete(use as string);
      // `readDecision` has found the action.
      if (request.digestVersion === 1 || !needsDescription(at(record.content, "outcome", "result", "action") as JsonObject)) continue;
      try {
        const words = sha256Hex(await readDescription(request, (digest) => reader.blob(digest)));
        if ((isTrue(decision.instructionHash) ? decision.instructionHash : EMPTY_SHA256) === words) continue;
      } catch (error) {
        if (!(error instanceof BadInput)) throw error;
        if (error instanceof NotFound) {
          tally.skip(CHECK, "words that were shown are not here", { matters: true });
          continue;
        }
      }
      tally.fail(CHECK, "EVIDENCE_INVALID", "its words are not those that were shown", placeOf(record));
    }
  }
}

function placeOf(record: Sealed): Place {
  const sequence = at(record.content, "sequence");
  return sequence instanceof Numeral && sequence.isInteger
    ? place(record.chain, BigInt((sequence as JsonNumber).text))
    : place(record.chain);
}

/** A request and the votes on it so far. */
interface CheckedRequest {
  request: ApprovalRequest;
  votes: Vote[];
  newest: string;
  isUsed: boolean;
}

class ApprovalChecker {
  readonly tally = new Tally();
  private readonly examination: Examination;
  private readonly retired: ReadonlyMap<string, string>;
  private readonly roster: Roster;
  /** Each approver as enrolled. In a request, nobody signs how a key is kept. */
  private readonly enrolled = new Map<string, Approver>();
  private readonly knownPasskeys = new Set<string>();
  private readonly cases = new Map<string, CheckedRequest>();
  /** All requests, also those that count for nothing. */
  private readonly requests = new Map<string, ApprovalRequest>();
  /** The requests whose approval was used, by the id of the use's record. */
  readonly used = new Map<string, ApprovalRequest>();
  private readonly signatures = new Set<string>();
  private readonly uses = new Set<string>();
  private wanted = 1;
  private newest = "";

  constructor(examination: Examination) {
    const { rules, ledger, tenant } = examination;
    this.examination = examination;
    this.retired = rules.ring.retirementTimes(rules.ed25519);
    this.roster = new Roster(rules.ed25519, ledger, tenant);
  }

  checkEnrolment(record: Sealed): void {
    this.tally.countDone(CHECK);
    let approver: Approver | null;
    try {
      approver = this.roster.apply(record, this.retired);
    } catch (error) {
      if (!(error instanceof BadInput)) throw error;
      this.add(record, "failed", "ROLE_POLICY_VIOLATION", `the roster was not changed by this: ${error.message}`);
      return;
    }
    if (approver === null) return;
    this.enrolled.set(approverKey(approver), approver);
    if (approver.endorsers.some((endorser) => this.isKnown(endorser))) this.knownPasskeys.add(approverKey(approver));
    const problem = this.roleProblem(record, approver);
    if (problem !== null) this.add(record, "failed", "ROLE_POLICY_VIOLATION", problem);
  }

  /** Whether the ring has the key of an approver; of a passkey, that of somebody who endorsed it. */
  private isKnown(approver: Approver): boolean {
    const { key } = approver;
    if (!(key instanceof PublicKey)) return this.knownPasskeys.has(approverKey(approver));
    return this.examination.rules.ring.lookup(key.fingerprint).some((known) => known.equals(key));
  }

  /** Which key would make an approver known: their own, or of a passkey those of the people who endorsed it. */
  private unknownWords(approver: Approver): string {
    const words = `the ${approver.key instanceof PublicKey ? "key" : "passkey"} ${approver.key.fingerprint} of ${approver.identity} is not known here`;
    if (approver.key instanceof PublicKey) return words;
    // A passkey may be endorsed by another one. The map grows meanwhile.
    const found = new Map([[approverKey(approver), approver]]);
    for (const name of found.keys()) for (const endorser of this.enrolled.get(name)?.endorsers ?? []) found.set(approverKey(endorser), endorser);
    const keys = [...found.values()].flatMap(({ key, identity }) => (key instanceof PublicKey ? [`the key ${key.fingerprint} of ${identity}`] : []));
    return `${words}: give ${keys.join(", or ") || "the key of a person"}, who endorsed it`;
  }

  /** Why an approver's key cannot be a person's: it is known as another one, or it seals records here. */
  private roleProblem(record: Sealed, { key, identity }: Approver): string | null {
    const { ring, roles } = this.examination.rules;
    const entry = findRingEntry(ring, key);
    const role: KeyRole | null = (entry === null ? roles.get(wholeKey(key)) : ring.roleOf(entry.key)) ?? null;
    const isOwn = role !== null && role.identity === identity && role.purpose === "approve";
    // A key with a role of its own has a file or is in ssh-agent, so it is nobody's passkey.
    if (role !== null && !(isOwn && key instanceof PublicKey)) {
      return `${key.fingerprint} is the key of ${role}, and not one with which ${identity} approves`;
    }
    return record.signed_by === wholeKey(key).slice(0, 16) ? `${key.fingerprint} sealed this record itself` : null;
  }

  checkRecord(record: Sealed): void {
    const kind = readKind(record.content);
    if (![REQUEST_KIND, VOTE_KIND, USE_KIND].includes(kind)) return;
    try {
      this.tally.countDone(CHECK);
      if (kind === REQUEST_KIND) this.checkRequest(record);
      else this.checkAnswer(record);
    } finally {
      if (record.signed_at > this.newest) this.newest = record.signed_at;
    }
  }

  private checkRequest(record: Sealed): void {
    const { ledger, tenant } = this.examination;
    const request = readRequest(record, ledger, tenant);
    this.requests.set(request.id, request);
    // Without this, a forged request could want the statement that names no request.
    if (request.statement < this.wanted) {
      this.add(record, "failed", "STATE_VIOLATION", "a request before it wants a later statement");
      return;
    }
    this.wanted = request.statement;
    this.cases.set(request.id, { request, votes: [], newest: request.opened, isUsed: false });
    this.checkLeftOut(record, request);
    if (!matchesAction(request)) {
      this.add(record, "failed", "EVIDENCE_INVALID", "its action or diff is not the one it names");
    } else if (request.digestVersion === 3 && blobDigest(request, "action") === null) {
      const action = request.content.get("action") as JsonObject;
      if (!action.has("description") && needsDescription(action)) {
        this.add(record, "warning", "EVIDENCE_INVALID", "its digest leaves out its description");
      }
    }
    if (request.anchor === "system") return; // The roster does not list these keys; the ring must know them.
    for (const approver of request.approvers.values()) {
      if (this.roster.hasHad(approver)) continue;
      const words = `it counts the key ${approver.key.fingerprint} of ${approver.identity}, who was never enrolled with it`;
      this.add(record, "failed", "ROLE_POLICY_VIOLATION", words);
    }
  }

  private checkAnswer(record: Sealed): void {
    const { about, vote } = readVote(record);
    const request = this.requests.get(about);
    if (vote.word === "used" && request !== undefined) this.used.set(record.id, request);
    const found = this.cases.get(about);
    if (found === undefined) {
      this.add(record, "failed", "STATE_VIOLATION", "no request before it is the one it names");
      return;
    }
    if (isByPerson(vote)) this.checkVote(record, found, vote);
    else if (vote.word === "used") this.checkUse(record, found, vote);
    found.votes.push(vote);
    if (vote.at > found.newest) found.newest = vote.at;
  }

  /** Check that the approvals a use needs came before it, and that no more uses came than they allow. */
  private checkUse(record: Sealed, found: CheckedRequest, vote: Vote): void {
    const { request } = found;
    const { ed25519 } = this.examination.rules;
    const before = computeState(request, found.votes, ed25519, vote.at, found.newest);
    if (vote.use !== null && request.digestVersion !== 1) {
      const problem = useProblem(request, before, vote.use);
      if (problem !== null) this.add(record, "failed", CODES[problem[0]] as string, problem[1]);
      else this.checkAccount(record, found, before.validApprovals);
      return;
    }
    // By version 1, two requests with the same digest and end share one use.
    const use = request.statement === 1 ? `${request.digest}\n${request.expires}` : request.id;
    if (before.state === "used" || found.isUsed || this.uses.has(use)) {
      this.add(record, "failed", "REPLAY", "the approval was used before");
      return;
    }
    found.isUsed = true;
    this.uses.add(use);
    if (before.state !== "approved") {
      this.add(record, "failed", "EVIDENCE_INVALID", `it was used while it was ${before.state}: ${before.reason}`);
    } else if (vote.use !== null || request.digestVersion !== 1) {
      this.add(record, "failed", "STATE_VIOLATION", "the use has another form");
    } else this.checkAccount(record, found, before.validApprovals);
  }

  /** Compare what a record says about its action, its people and their statements with what they signed. */
  private checkAccount(record: Sealed, found: CheckedRequest, approvals: Vote[], own = ""): void {
    const authority = record.content.get("authority") as JsonObject;
    const whole = authority.get("chain");
    if (!Array.isArray(whole) || !authority.has("approver")) throw new Error("it lacks keys of its kind");
    const chain = own ? whole.slice(0, -1) : whole;
    const signed = new Map<string, Vote>();
    for (const vote of approvals) if (vote.statement !== null) signed.set(canonicalContent(statementFields(vote.statement)), vote);
    const basedOn = chain.map((statement) => signed.get(canonicalContent(statement)) ?? null);
    const people = own || basedOn.flatMap((vote) => (vote === null ? [] : [String(vote.approver)])).join(", ");
    let words: string;
    if (at(record.content, "outcome", "result", "digest") !== found.request.digest) words = "it names another action than its request";
    else if (basedOn.includes(null) || !people) words = "its statements are not those of the approvals before it";
    else if (authority.get("approver") !== people) words = `it names others than ${people}, who signed`;
    else return;
    this.add(record, "failed", "EVIDENCE_INVALID", words);
  }

  /** Warn of a digest that leaves out arguments which Aver does not know as descriptive. */
  private checkLeftOut(record: Sealed, request: ApprovalRequest): void {
    if (request.digestVersion === 1 || blobDigest(request, "beside") !== null) return;
    const [action, beside] = [request.content.get("action"), request.content.get("beside")];
    const leftOut = isObject(beside) ? beside.get("arguments") : undefined;
    if (!isObject(beside) || !isObject(leftOut) || !hasScopeOf(request, beside)) {
      this.add(record, "failed", "EVIDENCE_INVALID", "it lacks what its digest leaves out, or is of another session");
      return;
    }
    const tool = isObject(action) ? action.get("tool") : undefined;
    if (typeof tool !== "string") return;
    const known = listArguments(tools.descriptive, tool);
    const more = [...leftOut.keys()].filter((name) => !known.includes(name));
    if (more.length) {
      this.add(record, "warning", "EVIDENCE_INVALID", `its digest leaves out ${more.join(", ")}`);
    }
  }

  private checkVote(record: Sealed, found: CheckedRequest, vote: Vote): void {
    const { request } = found;
    const { ed25519 } = this.examination.rules;
    // With this `now`, the state never expires by the clock: `voteProblem` checks the vote's own time.
    const before = computeState(request, found.votes, ed25519, request.opened);
    const problem = voteProblem(request, vote, ed25519) ?? turnProblem(request, vote, before.validApprovals, before.floor);
    if (problem !== null) {
      this.add(record, "failed", CODES[problem[0]] ?? "STATE_VIOLATION", problem[1]);
      return;
    }
    if (["denied", "expired", "closed", "used"].includes(before.state)) {
      this.add(record, "failed", "STATE_VIOLATION", `the request had ended before: ${before.state}`);
    }
    const signed = vote.statement?.signatures[0];
    const signature = signed?.passkey?.signature ?? signed?.ed25519 ?? "";
    if (this.signatures.has(signature)) this.add(record, "failed", "REPLAY", "its statement is already in an earlier record");
    this.signatures.add(signature);
    this.checkAccount(record, found, before.validApprovals, String(vote.approver));
    // The pinned key must be the person's, as far as the ring and the roster know, and must not have ended before.
    const approver = request.approvers.get(String(vote.approver)) as Approver;
    const { key, identity } = approver;
    if (!this.isKnown(approver)) {
      this.add(record, "not_checked", "UNKNOWN_SIGNER", this.unknownWords(approver));
    } else {
      const foreign = this.roleProblem(record, approver);
      if (foreign !== null) this.add(record, "failed", "ROLE_POLICY_VIOLATION", foreign);
    }
    const ends = [this.roster.ended.get(key.fingerprint), this.retired.get(wholeKey(key))].filter((end) => end !== undefined && end !== "");
    const end = ends.sort()[0];
    // The sealer of the vote writes its time. The records before it were sealed earlier all the same.
    if (end !== undefined && (vote.at > end || this.newest > end)) {
      this.add(record, "failed", "KEY_RETIRED", `the key ${key.fingerprint} of ${identity} had ended at ${end}`);
    }
    if (vote.word !== "approve") return;
    if (request.statement === 1) {
      this.add(record, "warning", "UNBOUND_STATEMENT", `${identity} signed no ledger, tenant or request`);
    }
    const enrolled = this.enrolled.get(approverKey(approver));
    const custodies = [approver.custody, vote.custody, enrolled?.custody];
    const isWeakPasskey = custodies.includes(PASSKEY) && (enrolled === undefined || !isIndependent(enrolled));
    if (custodies.includes("file") || isWeakPasskey) {
      const why = isWeakPasskey ? "no key under a passphrase or in ssh-agent endorsed the passkey" : "the key is kept in a plain file";
      this.add(record, "warning", "NOT_INDEPENDENT", `${identity}: the approver was not independent: ${why}`);
    }
  }

  private add(record: Sealed, status: CheckStatus, code: string, words: string): void {
    this.tally.add({ check: CHECK, status, code, words: makePrintable(words), place: placeOf(record) });
  }
}

/** Requests for an approval, and the votes on them. The twin of `gate.approvals.request` and `gate.approvals.vote`. */

import { at, readBlock } from "../block.ts";
import { blobReferences } from "../blobs.ts";
import { canonicalContent, canonicalJson } from "../canonical.ts";
import { HEX64, sha256Hex } from "../digest.ts";
import type { Ed25519 } from "../ed25519.ts";
import { BadInput, type Json, JsonNumber, type JsonObject, equalJson, isInteger, isObject, readJson } from "../json.ts";
import type { Sealed } from "../sealed.ts";
import { type Statement, checkObject, checkVersion, readStatement, textField, timeField } from "../statement.ts";
import { pythonText } from "../text.ts";
import { isTrue } from "../run/capsules.ts";
import { voteContent } from "./content.ts";
import tools from "./tools.json" with { type: "json" };
import { type Approver, CUSTODIES, PASSKEY, isPerson, readApprover, signatureProblem } from "./roster.ts";

export const REQUEST_KIND = "approval.request";
export const VOTE_KIND = "approval.decision";
export const USE_KIND = "approval.use";
const LEVELS_MAX = 8;
const APPROVERS_MAX = 64;
const EXPIRES_MAX = 7 * 86_400;
const USES_MAX = 100;
const WORKSPACE = "workspace";
const PERSON_WORDS = ["approve", "deny", "escalate"];
const VOTE_WORDS = [...PERSON_WORDS, "expired", "closed", "used"];
export const EMPTY_SHA256 = sha256Hex("");
const GATE_ID = /^[!-~]{1,128}$/;

interface Level {
  approvers: string[];
  quorum: number;
  after: number;
}

export interface ApprovalRequest {
  ledger: string;
  tenant: string;
  id: string;
  opened: string;
  expires: string;
  digest: string;
  levels: Level[];
  approvers: Map<string, Approver>;
  anchor: string;
  content: JsonObject;
  /** The version of the statement that it wants: 1 names neither ledger nor request, 2 does not cover all that is shown. */
  statement: number;
  scope: string;
  digestVersion: number;
}

function integerField(value: Json | undefined, where: string, low: number, high: number): number {
  if (!isInteger(value) || !(value.value >= low && value.value <= high)) {
    throw new BadInput(`${where} must be a whole number from ${low} to ${high}`);
  }
  return value.value;
}

function readLevel(data: Json, where: string): Level {
  const object = checkObject(data, where, ["approvers", "quorum", "after"]);
  const listed = object.get("approvers");
  if (!Array.isArray(listed) || listed.length > APPROVERS_MAX || !listed.every(isPerson)) {
    throw new BadInput(`${where}.approvers must be a list of people`);
  }
  if (new Set(listed).size < listed.length) throw new BadInput(`${where}.approvers names someone twice`);
  return {
    approvers: listed as string[],
    quorum: integerField(object.get("quorum"), `${where}.quorum`, 1, APPROVERS_MAX),
    after: integerField(object.get("after"), `${where}.after`, 0, EXPIRES_MAX),
  };
}

/** Read the request in a record. Raises `BadInput` if it is not a valid request. */
export function readRequest(record: Sealed, ledger: string, tenant: string): ApprovalRequest {
  const { content } = record;
  const required = [
    ...["v", "digest", "gate_id", "action", "diff", "risk", "reasons", "rules", "bundle"],
    ...["expires", "levels", "approvers", "anchor"],
  ];
  const result = checkObject(at(content, "outcome", "result"), "the request", required, [
    ...["statement", "scope", "uses", "digest_version", "beside"],
  ]);
  checkVersion(result.get("v"), "the request");
  const binding = readBinding(result);
  const digestVersion = readDigestVersion(result);
  if ((binding.statement === 3) !== (digestVersion === 3)) throw new BadInput("the request has a statement and a digest of two versions");
  const listed = result.get("levels");
  if (!Array.isArray(listed) || listed.length < 1 || listed.length > LEVELS_MAX) {
    throw new BadInput("the request has no levels, or too many");
  }
  const given = result.get("approvers");
  if (!isObject(given)) throw new BadInput("the record is not a request for approval");
  const approvers = new Map([...given].map(([name, data]) => [name, readApprover(name, data, `the request: approvers.${name}`)]));
  const levels = listed.map((item, number) => readLevel(item, `the request: levels[${number}]`));
  // Every approver needs a key, and no two may share one: each person has one vote.
  const deciding = new Set(levels.flatMap((level) => level.approvers));
  if (deciding.size !== approvers.size || ![...deciding].every((name) => approvers.has(name))) {
    throw new BadInput("the request does not give a key for exactly those who decide");
  }
  if (new Set([...approvers.values()].map((one) => one.key.fingerprint)).size < approvers.size) {
    throw new BadInput("two people have one key");
  }
  textField(result.get("gate_id"), "the request: gate_id", GATE_ID);
  return {
    ledger,
    tenant,
    id: record.id,
    opened: timeField(readBlock(content)?.get("at"), "the request: at"),
    expires: timeField(result.get("expires"), "the request: expires"),
    digest: textField(result.get("digest"), "the request: digest", HEX64),
    levels,
    approvers,
    anchor: pythonText(result.get("anchor")),
    content: result,
    ...binding,
    digestVersion,
  };
}

function readBinding(result: JsonObject): { statement: number; scope: string } {
  const found = ["statement", "scope", "uses"].filter((name) => result.has(name));
  if (!found.length) return { statement: 1, scope: "" };
  if (found.length < 3) throw new BadInput("the request lacks statement, scope or uses");
  const statement = integerField(result.get("statement"), "the request: statement", 2, 3);
  integerField(result.get("uses"), "the request: uses", 1, 1);
  const scope = result.get("scope");
  if (typeof scope !== "string" || !scope.startsWith("session:")) throw new BadInput("the request: scope must be the one of a session");
  return { statement, scope };
}

function readDigestVersion(result: JsonObject): number {
  const found = ["digest_version", "beside"].filter((name) => result.has(name));
  if (!found.length) return 1;
  if (found.length < 2) throw new BadInput("the request lacks digest_version or beside");
  return integerField(result.get("digest_version"), "the request: digest_version", 2, 3);
}

/** The digest of the blob with a part of a request; null if the part is in the record itself. */
export function blobDigest(request: ApprovalRequest, part: string): string | null {
  const value = request.content.get(part);
  if (!isObject(value) || value.size !== 1 || !value.has("blob")) return null;
  return blobReferences(value).next().value?.digest ?? null;
}

/** Whether the request is for the session of this action. One that wants version 1 does not say. */
export function hasScopeOf(request: ApprovalRequest, action: JsonObject): boolean {
  const session = action.has("session") ? pythonText(action.get("session")) : "";
  return request.statement === 1 || request.scope === `session:${session}`;
}

/** Whether a request has the digest and session of its action, and the action's diff, as far as they are here. */
export function matchesAction(request: ApprovalRequest): boolean {
  // A blob's digest is checked with the bundle. Here it is enough that it is the right one.
  const apart = blobDigest(request, "action");
  if (apart !== null) return apart === request.digest;
  const action = request.content.get("action") as Json;
  try {
    if (sha256Hex(canonicalContent(action)) !== request.digest || !isObject(action)) return false;
    if (request.digestVersion === 1 && !hasScopeOf(request, action)) return false;
    if (request.digestVersion !== 1 && blobDigest(request, "beside") === null && !fitsWithRest(request, action)) return false;
    const diff = blobDigest(request, "diff");
    if (diff !== null) return diff === action.get("diff_sha256");
    const text = request.content.get("diff") as Json;
    return (action.get("diff_sha256") ?? null) === (text === null ? null : sha256Hex(pythonText(text)));
  } catch (error) {
    if (error instanceof BadInput) return false;
    throw error;
  }
}

/** Whether the part of an action that the digest covers and the rest fit together. */
function fitsWithRest(request: ApprovalRequest, bound: JsonObject): boolean {
  const beside = checkObject(request.content.get("beside"), "the request: beside", ["description", "session", "arguments"]);
  const [left, kept, diff] = [beside.get("arguments"), bound.get("arguments"), bound.get("diff_sha256")];
  const { digestVersion } = request;
  if (!isObject(left) || !isObject(kept) || [...left.keys()].some((name) => kept.has(name))) return false;
  const isDescribed = digestVersion === 3 ? bound.has("description") : !kept.size && !isTrue(bound.get("files")) && diff === null;
  const names = ["v", "type", "tool", "files", "diff_sha256", "workspace", "caller", "on_behalf_of", "arguments", "request_sha256"];
  checkObject(bound, "the action", isDescribed ? [...names, "description"] : names);
  if (isDescribed && !equalJson(bound.get("description"), beside.get("description"))) return false;
  return equalJson(bound.get("v"), new JsonNumber(String(digestVersion))) && hasScopeOf(request, beside);
}

/** The description that the person was shown. Raises `BadInput` if it cannot be read. */
export async function readDescription(request: ApprovalRequest, blob: (digest: string) => Promise<Uint8Array>): Promise<string> {
  const apart = blobDigest(request, "beside");
  let beside = request.content.get("beside");
  if (apart !== null) {
    const raw = await blob(apart);
    if (sha256Hex(raw) !== apart) throw new BadInput("a blob has other bytes");
    beside = readJson(raw);
  }
  const words = at(beside, "description");
  if (typeof words !== "string") throw new BadInput("the request has no description");
  return words;
}

/** The arguments that a table has for a tool. A test holds the tables to Aver's own. */
export function listArguments(table: Record<string, string>, tool: Json | undefined): string[] {
  return Object.entries(table).flatMap(([names, listed]) => (listed.split(" ").includes(tool as string) ? names.split(" ") : []));
}

/** Whether only its description says what an action would do. The twin of `aver.gate.action.is_description_needed`. */
export function needsDescription(action: JsonObject): boolean {
  const [tool, given, diff] = ["tool", "arguments", "diff_sha256"].map((name) => action.get(name));
  const telling = listArguments(tools.telling, tool);
  const isTold = telling.length && telling.every((name) => isObject(given) && isTrue(given.get(name)));
  return ((diff ?? null) === null || diff === EMPTY_SHA256) && !isTold;
}

// --- votes

interface Use {
  digest: string;
  number: number;
  uses: number;
  scope: string;
  session: string;
  approvers: string[];
}

export interface Vote {
  at: string;
  word: string;
  level: number;
  approver: string | null;
  custody: string | null;
  /** The digest of the text that the person saw. */
  shown: string | null;
  statement: Statement | null;
  use: Use | null;
}

export function isByPerson(vote: Vote): boolean {
  return PERSON_WORDS.includes(vote.word);
}

/** The id of the request and the vote in a record. Raises `BadInput` for an unreadable vote. */
export function readVote(record: Sealed): { about: string; vote: Vote } {
  const { content } = record;
  const result = at(content, "outcome", "result");
  const when = () => timeField(readBlock(content)?.get("at"), "the decision: at");
  if (record.kind === USE_KIND) {
    const keys = ["v", "request", "digest", "number", "uses", "scope", "session", "call_id", "approvers", "level"];
    const use = checkObject(result, "the use", keys);
    checkVersion(use.get("v"), "the use");
    const texts = ["digest", "scope", "session", "call_id"].map((name) => use.get(name));
    const approvers = use.get("approvers");
    if (!Array.isArray(approvers) || ![...texts, ...approvers].every((text) => typeof text === "string")) {
      throw new BadInput("the use is none");
    }
    const [digest, scope, session] = texts as [string, string, string];
    return {
      about: pythonText(use.get("request")),
      vote: {
        at: when(),
        word: "used",
        level: integerField(use.get("level"), "the use: level", 0, LEVELS_MAX),
        approver: null,
        custody: null,
        shown: null,
        statement: null,
        use: {
          digest,
          scope,
          session,
          number: integerField(use.get("number"), "the use: number", 1, USES_MAX),
          uses: integerField(use.get("uses"), "the use: uses", 1, USES_MAX),
          approvers: approvers as string[],
        },
      },
    };
  }
  const keys = ["v", "request", "digest", "decision", "approver", "custody", "level", "comment", "shown"];
  const vote = checkObject(result, "the decision", keys);
  checkVersion(vote.get("v"), "the decision");
  const [word, custody, approver, comment] = ["decision", "custody", "approver", "comment"].map((name) => vote.get(name));
  const isCustody = custody === null || (typeof custody === "string" && CUSTODIES.includes(custody));
  if (typeof word !== "string" || !VOTE_WORDS.includes(word) || !isCustody || typeof comment !== "string") {
    throw new BadInput("the decision is none");
  }
  if (!(approver === null || typeof approver === "string")) throw new BadInput("the decision has no approver");
  // The statement of this vote is the last of the chain; those before it are of earlier approvals.
  const chain = at(content, "authority", "chain");
  if (!Array.isArray(chain)) throw new BadInput("the decision cannot be read");
  if (PERSON_WORDS.includes(word) && !chain.length) throw new BadInput("the decision cannot be read");
  const shown = isTrue(vote.get("shown")) ? (blobReferences(vote.get("shown")).next().value?.digest ?? null) : null;
  return {
    about: pythonText(vote.get("request")),
    vote: {
      at: when(),
      word,
      level: integerField(vote.get("level"), "the decision: level", 0, LEVELS_MAX),
      approver,
      custody: custody as string | null,
      shown,
      statement: PERSON_WORDS.includes(word) ? readStatement(chain.at(-1)) : null,
      use: null,
    },
  };
}

/** Why a vote or a use does not count: a code of the gate, and words. */
type VoteProblem = [string, string];

function levelsFor(request: ApprovalRequest, identity: string): number[] {
  return request.levels.flatMap((level, index) => (level.approvers.includes(identity) ? [index + 1] : []));
}

/** The scope and the uses that a statement says, if a person may choose them; else those of the request. */
function readChoice(request: ApprovalRequest, statement: Statement, word: string): { scope: string; uses: number } {
  const [scope, uses] = [statement.content.get("scope"), statement.content.get("uses")];
  if (word !== "approve" || request.statement === 1 || request.digestVersion === 1) return { scope: request.scope, uses: 1 };
  const action = request.content.get("action");
  const namesRequest = isObject(action) && isTrue(action.get("request_sha256"));
  const isCount = isInteger(uses) && uses.value >= 1 && uses.value <= USES_MAX;
  return { scope: scope === WORKSPACE && !namesRequest ? WORKSPACE : request.scope, uses: isCount ? uses.value : 1 };
}

/** Why a vote does not count by itself; null if it counts. */
export function voteProblem(request: ApprovalRequest, vote: Vote, verifier: Ed25519): VoteProblem | null {
  const { statement, approver } = vote;
  // A signature without the text that the person saw proves nothing about what they meant.
  if (statement === null || approver === null || vote.shown === null || !HEX64.test(vote.shown)) {
    return ["SIG_MISSING", "it is not signed by anyone"];
  }
  if (statement.purpose !== "approval") return ["STATEMENT_MISMATCH", `its statement is of the purpose ${statement.purpose}`];
  if (statement.content.get("digest") !== request.digest) return ["DIGEST_MISMATCH", "it was signed for another action"];
  // Compare the whole content, so that a statement cannot be moved to another request or say more.
  const { scope, uses } = readChoice(request, statement, vote.word);
  const expected = voteContent(request, vote.word, approver, vote.shown, { scope, uses });
  if (canonicalJson(statement.content) !== canonicalJson(expected)) return ["STATEMENT_MISMATCH", "it was signed for something else"];
  if (!levelsFor(request, approver).length) return ["NOT_LISTED", `${approver} is not among those who decide this`];
  // Only the key that the request pinned counts, so a key that is enrolled later cannot vote.
  const pinned = request.approvers.get(approver) as Approver;
  if (statement.signatures.length !== 1 || statement.signatures[0]?.by !== pinned.key.fingerprint) {
    return ["UNKNOWN_KEY", `it is signed by another key than that of ${approver} in the request`];
  }
  if (pinned.custody === PASSKEY && request.statement === 1) {
    return ["STATEMENT_MISMATCH", "a passkey signs no statement that names no request"];
  }
  const problem = signatureProblem(statement, pinned.key, verifier);
  if (problem !== null) return ["SIG_INVALID", `the signature of ${approver} does not hold: ${problem}`];
  if (vote.at > request.expires) return ["EXPIRED", `it came at ${vote.at}; the request expired at ${request.expires}`];
  if (vote.at < request.opened) return ["CLOCK_BACKWARDS", `it came at ${vote.at}, before the request was opened`];
  return null;
}

/** Why a valid vote does not count now: it is not the person's turn, or they voted before. */
export function turnProblem(request: ApprovalRequest, vote: Vote, approvals: Vote[], floor: number): VoteProblem | null {
  if (vote.word === "deny") return null; // A denial needs no turn.
  if (vote.word === "approve" && approvals.some((earlier) => earlier.approver === vote.approver)) {
    return ["ALREADY_DECIDED", `${vote.approver} has approved before`];
  }
  const level = findOpenLevel(request, vote, floor);
  if (level === 0) {
    const last = levelsFor(request, vote.approver ?? "").at(-1) ?? 0;
    return last < floor ? ["PASSED_ON", `level ${floor} decides now`] : ["NOT_YET", `level ${last} decides later, or when asked`];
  }
  if (vote.word === "escalate" && level === request.levels.length) return ["NO_LEVEL", "nobody is above"];
  return null;
}

function findOpenLevel(request: ApprovalRequest, vote: Vote, floor: number): number {
  return levelsFor(request, vote.approver ?? "").find((number) => canCount(request, vote, number, floor)) ?? 0;
}

function canCount(request: ApprovalRequest, vote: Vote, number: number, floor: number): boolean {
  const level = request.levels[number - 1] as Level;
  if (number < floor || !level.approvers.includes(vote.approver ?? "")) return false;
  // The lowest open level decides at once, a later one after its time.
  return number === floor || vote.at >= addSeconds(request.opened, level.after);
}

/** The time so many seconds later, in the format of records. */
function addSeconds(moment: string, seconds: number): string {
  const fraction = /\.(\d{6})/.exec(moment)?.[1] ?? "";
  const date = new Date(Date.parse(`${moment.slice(0, 19)}Z`) + 1000 * seconds);
  if (date.getUTCFullYear() > 9999) throw new Error("a time beyond the calendar");
  return `${date.toISOString().slice(0, 19)}${fraction === "" || fraction === "000000" ? "" : `.${fraction}`}+00:00`;
}

interface RequestState {
  state: string;
  reason: string;
  floor: number;
  scope: string;
  uses: number;
  used: number;
  /** The people whose approvals count on the level that decides. */
  approvers: string[];
  validApprovals: Vote[];
}

/** The state of a request at `now`. `newest` is the latest time in the chain since the request was opened. */
export function computeState(request: ApprovalRequest, votes: Vote[], verifier: Ed25519, now: string, newest = ""): RequestState {
  const pending: RequestState = {
    ...{ state: "pending", reason: "too few have approved", floor: 1, scope: "", uses: 0, used: 0 },
    ...{ approvers: [], validApprovals: [] },
  };
  let ending: Vote | null = null;
  for (const vote of votes) {
    // Such a use is the only one, and final. Later votes change nothing.
    if (vote.word === "used" && vote.use === null) {
      return { ...pending, state: "used", reason: `it was used at ${vote.at}`, used: 1, floor: 1, validApprovals: [] };
    }
    if (vote.word === "used") {
      pending.used++;
      continue;
    }
    if (!isByPerson(vote)) {
      ending ??= vote;
      continue;
    }
    const problem = voteProblem(request, vote, verifier) ?? turnProblem(request, vote, pending.validApprovals, pending.floor);
    if (vote.word === "deny") ending ??= vote; // A denial counts even if it has a problem.
    if (problem !== null) continue;
    if (vote.word === "escalate") pending.floor = findOpenLevel(request, vote, pending.floor) + 1;
    else if (vote.word === "approve") pending.validApprovals.push(vote);
  }
  const approved = findApproval(request, pending);
  // All uses are spent, or the approvals that they rest on count no longer: nothing more can come of it.
  if (pending.used && (approved === null || pending.used >= approved.uses)) {
    return { ...(approved ?? pending), state: "used", reason: `it was used ${pending.used} times` };
  }
  if (ending !== null) {
    const state = ending.word === "expired" ? "expired" : ending.word === "closed" ? "closed" : "denied";
    return { ...pending, state, reason: `${state} at ${ending.at}` };
  }
  const latest = now > newest ? now : newest;
  if (latest > request.expires) return { ...pending, state: "expired", reason: `nobody decided until ${request.expires}` };
  return approved ?? pending;
}

/** The state of an approved request; null if no open level has its quorum. The lowest such level decides. */
function findApproval(request: ApprovalRequest, pending: RequestState): RequestState | null {
  for (let number = pending.floor; number <= request.levels.length; number++) {
    const approvals = pending.validApprovals.filter((vote) => canCount(request, vote, number, pending.floor));
    if (approvals.length < (request.levels[number - 1] as Level).quorum) continue;
    const chosen = approvals.map((vote) => readChoice(request, vote.statement as Statement, vote.word));
    const isWide = chosen.length > 0 && chosen.every(({ scope }) => scope === WORKSPACE);
    return {
      ...pending,
      state: "approved",
      reason: "",
      approvers: approvals.map((vote) => String(vote.approver)),
      scope: isWide ? WORKSPACE : request.scope,
      uses: chosen.length ? Math.min(...chosen.map(({ uses }) => uses)) : 1,
    };
  }
  return null;
}

/** Why an approval in the state `before` does not cover a use; null if it does. */
export function useProblem(request: ApprovalRequest, before: RequestState, use: Use): VoteProblem | null {
  if (use.digest !== request.digest) return ["DIGEST_MISMATCH", "it was used for another action"];
  if (before.state === "used") return ["REPLAY", `the approval was used before: ${before.reason}`];
  if (before.state !== "approved") return ["NOT_APPROVED", `it was used while it was ${before.state}: ${before.reason}`];
  if (before.scope !== WORKSPACE && before.scope !== `session:${use.session}`) {
    return ["SCOPE_MISMATCH", "it was used in another session"];
  }
  const isSame =
    use.number === before.used + 1 &&
    use.uses === before.uses &&
    use.scope === before.scope &&
    use.approvers.join("\n") === before.approvers.join("\n");
  return isSame ? null : ["EVIDENCE_INVALID", "it says something else than people signed"];
}

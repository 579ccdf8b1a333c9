/**
 * The keys that joined a trace of the protocol. The twin of `aver.protocol.judgement.joined_keys`, whose text has the rules.
 *
 * A join that the operator sealed stands for the record of a key in the `keys` chain. The page judges nothing else of a
 * trace: `aver verify` does.
 */

import { at, readKind } from "./block.ts";
import { roleOf } from "./chain.ts";
import { type Examination, selectChains } from "./examiner.ts";
import { BadInput, type Json, JsonNumber } from "./json.ts";
import { PublicKey, Ring, readRotation } from "./ring.ts";
import type { Sealed } from "./sealed.ts";
import { type Statement, checkObject, checkStatement, checkVersion, readStatement, textField, timeField } from "./statement.ts";
import { type Tally, unrecordedKey } from "./verdict.ts";

const PURPOSE = "protocol-join";
const OPENING = "protocol.session_initialized";
const JOINING = "protocol.participant_joined";
const OPERATOR = "operator";
/** The text of each key of a join, but for its version, its keys and its time. */
const FIELDS: Record<string, RegExp> = {
  ledger: /^[!-~]{1,200}$/,
  tenant: /^[!-~]{1,200}$/,
  chain: /^[!-~]{1,200}$/,
  task_sha256: /^[0-9a-f]{64}$/,
  profile: /^(?:strict|default|lenient)$/,
  role: /^(?:planner|executor|critic|auditor|operator)$/,
  agent: /^(?:operator|agent:[A-Za-z0-9_-][A-Za-z0-9._-]{0,63})$/,
};

/** Note in the tally which of the unrecorded signers the traces vouch for. Other traces are not read. */
export async function noteJoins(examination: Examination, tally: Tally): Promise<void> {
  for (const { name, origin } of selectChains(examination, "protocol")) {
    if (![...tally.unrecorded.keys()].some((signer) => signer.endsWith(` ${name}`))) continue;
    const joined = new JoinedKeys(examination, origin);
    for await (const record of examination.reader.read(origin)) joined.take(record);
    for (const key of joined.keys) tally.vouched.add(unrecordedKey(key, name));
  }
}

class JoinedKeys {
  readonly keys = new Set<string>();
  private operator: PublicKey | null = null;
  private readonly examination: Examination;
  private readonly place: string[];

  constructor(examination: Examination, chain: string) {
    this.examination = examination;
    this.place = [examination.ledger, examination.tenant, chain];
  }

  /** Note the joins in the next record, whose content and signature hold. */
  take(record: Sealed): void {
    const { rules } = this.examination;
    const kind = readKind(record.content);
    if (kind !== OPENING && kind !== JOINING) return;
    const given = at(record.content, "authority", "chain");
    const statements = (Array.isArray(given) ? given : []).flatMap((one) => read(() => [readStatement(one)]) ?? []);
    const joins = statements.flatMap((one) => read(() => [this.readJoin(one)]) ?? []);
    const sealer = rules.ring.lookup(record.signed_by).find((key) => key.fingerprint === record.signed_by);
    if (sealer === undefined) return;
    const sequence = record.content.get("sequence");
    if (kind === OPENING && sequence instanceof JsonNumber && sequence.text === "0") {
      if (roleOf(rules, sealer)?.mayAttest ?? true) this.operator = sealer;
    } else if (kind === JOINING && joins.some(({ role, key }) => role === OPERATOR && key.equals(sealer))) {
      if (this.operator !== null && this.leads(statements, this.operator, sealer)) this.operator = sealer;
    }
    if (this.operator === null || !sealer.equals(this.operator)) return;
    for (const { role, key } of joins) if (role !== OPERATOR) this.keys.add(key.ed25519);
  }

  /** Whether rotation statements lead from one key to another. */
  private leads(statements: Statement[], from: PublicKey, to: PublicKey): boolean {
    for (const statement of statements.filter(({ purpose }) => purpose === "rotation")) {
      const rotation = readRotation(statement, this.examination.rules.ed25519);
      if (rotation === null || !rotation.old.equals(from)) return false;
      from = rotation.new;
    }
    return from.equals(to);
  }

  /** A join of this trace that its own key alone signed. Raises `BadInput`. */
  private readJoin(statement: Statement): { role: string; key: PublicKey } {
    if (statement.purpose !== PURPOSE) throw new BadInput("it is no join");
    const content = checkObject(statement.content, PURPOSE, [...Object.keys(FIELDS), "v", "public_key", "public_key_pq", "at"]);
    checkVersion(content.get("v"), PURPOSE);
    for (const [name, pattern] of Object.entries(FIELDS)) textField(content.get(name), name, pattern);
    timeField(content.get("at"), "at");
    const key = new PublicKey(content.get("public_key"), content.get("public_key_pq"));
    const results = checkStatement(statement, new Ring([key]), this.examination.rules.ed25519);
    if (results.length !== 1 || results[0]?.outcome !== "valid") throw new BadInput("it is not signed by its key alone");
    if (["ledger", "tenant", "chain"].some((name, at) => content.get(name) !== this.place[at])) throw new BadInput("it is for another trace");
    return { role: content.get("role") as string, key };
  }
}

/** What a reader gives; null where it raises `BadInput`. */
function read<Result extends Json | object>(reader: () => Result): Result | null {
  try {
    return reader();
  } catch (error) {
    if (error instanceof BadInput) return null;
    throw error;
  }
}

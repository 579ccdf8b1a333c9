/**
 * Passkeys on the page: make one, and sign an enrolment or an answer with it. Aver verifies exactly what this builds.
 *
 * The page never sees a private key. The browser asks the authenticator, and the authenticator asks the person.
 *
 *     const statement = await signEnrolment("person:ada-phone", { ledger, tenant }, known);
 *     endorseCommand(statement)            // an approver runs this at a terminal, which also records it
 *     const request = readOpenRequest(canonical, ledger, tenant);      // from a record that was verified
 *     const shown = await shownText(request, fetchBlob, { comment });  // shown whole to the person
 *     const vote = await signVote(request, "approve", "person:ada-phone", shown);
 *     await api.ask(`approvals/${request.id}`, { method: "POST", body: voteBody(vote, shown, comment) });
 */

import { enrolmentContent, voteContent } from "../verify/approvals/content.ts";
import { at, readBlock } from "../verify/block.ts";
import { canonicalJson } from "../verify/canonical.ts";
import { sha256Bytes, sha256Hex, toHex } from "../verify/digest.ts";
import { BadInput, type Json, type JsonObject, encoder, isInteger, isObject, readJson } from "../verify/json.ts";
import { EDDSA, ES256, Passkey, decodeBase64url, encodeBase64url, normaliseEs256 } from "../verify/passkey.ts";
import { type Statement, type StatementSignature, statementBytes, statementFields } from "../verify/statement.ts";

/** The algorithms that Aver verifies, by their numbers in COSE, and the bytes before the key in SubjectPublicKeyInfo. */
const ALGORITHMS = new Map([
  [-7, { alg: ES256, prefix: "3059301306072a8648ce3d020106082a8648ce3d030107034200" }],
  [-8, { alg: EDDSA, prefix: "302a300506032b6570032100" }],
]);
/** How long the browser waits for the person, in milliseconds. */
const TIMEOUT = 120_000;

/** The ledger and tenant that a statement is for. */
export interface Home {
  ledger: string;
  tenant: string;
}

/** Why no passkey can be used on this page; empty if one can. */
export function passkeyObstacle(): string {
  if (location.protocol === "file:") return "A page from a file has no passkeys. Start aver serve, and open the link that it prints.";
  if (!window.isSecureContext || typeof PublicKeyCredential === "undefined") return "This browser offers no passkeys on this page.";
  if (/^[\d.]+$|:/.test(location.hostname)) return "Passkeys belong to a name, not to an address. Open the page as http://localhost.";
  return "";
}

/** Make a new passkey for a person. `known` are the passkeys that are enrolled: their devices are not used again. */
export async function createPasskey(identity: string, known: readonly Passkey[] = []): Promise<Passkey> {
  const rpId = location.hostname;
  const created = (await navigator.credentials.create({
    publicKey: {
      rp: { id: rpId, name: "Aver" },
      // A random id: an authenticator replaces an earlier passkey that has the same one.
      user: { id: crypto.getRandomValues(new Uint8Array(16)), name: identity, displayName: identity },
      // Nothing relies on this challenge. The passkey proves itself when it signs the enrolment.
      challenge: crypto.getRandomValues(new Uint8Array(32)),
      pubKeyCredParams: [...ALGORITHMS.keys()].map((alg) => ({ type: "public-key", alg })),
      authenticatorSelection: { userVerification: "required", residentKey: "preferred" },
      excludeCredentials: known.filter((one) => one.rpId === rpId).map(describeCredential),
      attestation: "none",
      timeout: TIMEOUT,
    },
  })) as PublicKeyCredential | null;
  if (created === null) throw new BadInput("no passkey was made");
  const response = created.response as AuthenticatorAttestationResponse;
  const found = ALGORITHMS.get(response.getPublicKeyAlgorithm());
  const encoded = toHex(new Uint8Array(response.getPublicKey() ?? new ArrayBuffer(0)));
  if (found === undefined || !encoded.startsWith(found.prefix)) throw new BadInput("the passkey has an algorithm that Aver does not verify");
  const fields = new Map<string, Json>([
    ["alg", found.alg],
    ["public_key", encoded.slice(found.prefix.length)],
    ["rp_id", rpId],
    ["credential", encodeBase64url(new Uint8Array(created.rawId))],
  ]);
  return new Passkey(fields, "the new key");
}

function describeCredential(passkey: Passkey): PublicKeyCredentialDescriptor {
  return { type: "public-key", id: decodeBase64url(passkey.credential) };
}

/** Let a passkey sign the content of a statement. The browser shows its own question; the person answers it. */
export async function signByPasskey(purpose: string, content: JsonObject, passkey: Passkey): Promise<StatementSignature> {
  const given = (await navigator.credentials.get({
    publicKey: {
      challenge: Uint8Array.from(sha256Bytes(statementBytes(purpose, content))),
      rpId: passkey.rpId,
      allowCredentials: [describeCredential(passkey)],
      userVerification: "required",
      timeout: TIMEOUT,
    },
  })) as PublicKeyCredential | null;
  if (given === null) throw new BadInput("the passkey did not sign");
  const response = given.response as AuthenticatorAssertionResponse;
  const signature = new Uint8Array(response.signature);
  return {
    by: passkey.fingerprint,
    ed25519: "",
    ml_dsa_65: "",
    passkey: {
      authenticator_data: encodeBase64url(new Uint8Array(response.authenticatorData)),
      client_data: encodeBase64url(new Uint8Array(response.clientDataJSON)),
      signature: encodeBase64url(passkey.alg === ES256 ? normaliseEs256(signature) : signature),
    },
  };
}

// --- enrolment

/** Make a passkey and let it sign its own enrolment. It counts when an approver on the roster has endorsed it, too. */
export async function signEnrolment(identity: string, home: Home, known: readonly Passkey[] = []): Promise<Statement> {
  const key = await createPasskey(identity, known);
  // As Aver writes times: UTC, without a fraction of a second.
  const now = `${new Date().toISOString().slice(0, 19)}+00:00`;
  const content = enrolmentContent({ identity, key, custody: "passkey", endorsers: [] }, home.ledger, home.tenant, now);
  return { purpose: "enrolment", content, signatures: [await signByPasskey("enrolment", content, key)] };
}

/** Endorse an enrolment with another passkey that is on the roster. The new passkey is then not independent. */
export async function endorseEnrolment(statement: Statement, endorser: Passkey): Promise<Statement> {
  const signature = await signByPasskey(statement.purpose, statement.content, endorser);
  return { ...statement, signatures: [...statement.signatures, signature] };
}

/** The enrolment as a text that a person carries to a terminal. */
export function enrolmentCode(statement: Statement): string {
  return encodeBase64url(encoder.encode(canonicalJson(statementFields(statement))));
}

/** The command by which an approver endorses and records an enrolment at a terminal. */
export function endorseCommand(statement: Statement, by = "person:NAME"): string {
  return `aver approvals endorse ${enrolmentCode(statement)} --by ${by}`;
}

/** The fingerprint of the passkey that a statement enrols, which the terminal shows as well. */
export function enrolledFingerprint(statement: Statement): string {
  return statement.signatures[0]?.by ?? "";
}

// --- answers

/** What a person signs about, from the verified record of a request. */
export interface OpenRequest {
  ledger: string;
  tenant: string;
  id: string;
  opened: string;
  expires: string;
  digest: string;
  scope: string;
  /** The version of the statement that it wants. A passkey signs version 3 only. */
  statement: number;
  /** `outcome.result` of the record. */
  content: JsonObject;
  /** The passkeys that may answer it, by person. */
  passkeys: Map<string, Passkey>;
}

/** Read a request from the exact text of its record. The caller has verified the record. Raises `BadInput`. */
export function readOpenRequest(canonical: string, ledger: string, tenant: string): OpenRequest {
  const record = readJson(canonical);
  const content = at(record, "outcome", "result");
  if (!isObject(record) || !isObject(content)) throw new BadInput("the record is not a request for approval");
  const text = (value: Json | undefined, name: string): string => {
    if (typeof value !== "string") throw new BadInput(`the request has no ${name}`);
    return value;
  };
  const approvers = content.get("approvers");
  const passkeys = new Map<string, Passkey>();
  for (const [identity, approver] of isObject(approvers) ? approvers : []) {
    if (isObject(approver) && approver.get("custody") === "passkey") passkeys.set(identity, new Passkey(approver.get("passkey"), identity));
  }
  const version = content.get("statement");
  return {
    ledger,
    tenant,
    id: text(record.get("id"), "id"),
    opened: text(readBlock(record)?.get("at"), "time"),
    expires: text(content.get("expires"), "end"),
    digest: text(content.get("digest"), "digest"),
    scope: typeof content.get("scope") === "string" ? (content.get("scope") as string) : "",
    statement: isInteger(version) ? version.value : 1,
    content,
    passkeys,
  };
}

/** What a person may choose for an approval: where it is good (`workspace`), and how often. */
export interface Choice {
  scope?: string;
  uses?: number;
}

/** Let the passkey of a person sign an answer to a request. `shown` is the whole text that the person saw. */
export async function signVote(
  request: OpenRequest,
  word: "approve" | "deny" | "escalate",
  identity: string,
  shown: string,
  choice: Choice = {},
): Promise<Statement> {
  const passkey = request.passkeys.get(identity);
  if (passkey === undefined) throw new BadInput(`${identity} has no passkey that may answer this request`);
  if (request.statement !== 3) throw new BadInput("this request is of an earlier version of Aver: answer it at a terminal");
  const content = voteContent(request, word, identity, sha256Hex(shown), word === "approve" ? choice : {});
  return { purpose: "approval", content, signatures: [await signByPasskey("approval", content, passkey)] };
}

/** The body of `POST approvals/{id}`. */
export function voteBody(statement: Statement, shown: string, comment = ""): string {
  return canonicalJson(new Map<string, Json>([["statement", statementFields(statement)], ["shown", shown], ["comment", comment]]));
}

/** The body of `POST approvers`. */
export function enrolmentBody(statement: Statement): string {
  return canonicalJson(new Map<string, Json>([["statement", statementFields(statement)]]));
}

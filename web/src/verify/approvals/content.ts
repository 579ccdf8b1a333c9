/** The contents that people sign: enrolments and votes. It needs no curve, so the page's own thread uses it, too. */

import { canonicalJson } from "../canonical.ts";
import { sha256Hex } from "../digest.ts";
import { type Json, JsonNumber, type JsonObject } from "../json.ts";
import { Passkey } from "../passkey.ts";
import type { ApprovalRequest } from "./request.ts";
import type { Approver } from "./roster.ts";

/** The content of an enrolment. It names the ledger, so it is invalid in another ledger. */
export function enrolmentContent({ identity, key, custody }: Approver, ledger: string, tenant: string, at: Json): JsonObject {
  const parts: [string, Json][] =
    key instanceof Passkey ? [["passkey", key.fields()]] : [["public_key", key.ed25519], ["public_key_pq", key.mlDsa]];
  return new Map<string, Json>([["identity", identity], ...parts, ["custody", custody], ["ledger", ledger], ["tenant", tenant], ["at", at]]);
}

/** The parts of a request that a vote names. */
type VoteSubject = Pick<ApprovalRequest, "ledger" | "tenant" | "id" | "digest" | "opened" | "expires" | "scope" | "statement" | "content">;

/** The digest of all that a request gives a person to read. */
function shownSha256({ opened, content }: VoteSubject): string {
  return sha256Hex(canonicalJson(new Map<string, Json>([["opened", opened], ["request", content]])));
}

/** The content that a person signs: exactly that of the version that the request wants. `shown` is a digest. */
export function voteContent(
  request: VoteSubject,
  word: string,
  approver: string,
  shown: string,
  { scope = request.scope, uses = 1 }: { scope?: string; uses?: number } = {},
): JsonObject {
  const content = new Map<string, Json>([
    ["digest", request.digest],
    ["decision", word],
    ["approver", approver],
    ["expires", request.expires],
    ["shown", shown],
  ]);
  if (request.statement === 1) return content;
  return new Map<string, Json>([
    ...content,
    ["v", new JsonNumber(String(request.statement))],
    ["ledger", request.ledger],
    ["tenant", request.tenant],
    ["request", request.id],
    ["scope", scope],
    ["uses", new JsonNumber(String(uses))],
    ...(request.statement === 3 ? [["shown_sha256", shownSha256(request)] as const] : []),
  ]);
}

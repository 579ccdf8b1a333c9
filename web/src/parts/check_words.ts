/** Each check in plain words: the thing that it established where it passed. */

const WORDS: Record<string, string> = {
  schema: "each record is whole and has the form of a capsule",
  canonical: "each is written in the one exact form that is hashed",
  content: "each has the hash that it was sealed with: nothing in it was changed",
  signature: "each was signed by a key that you pinned",
  signature_pq: "each post-quantum signature is right, too",
  links: "each names the record before it: none was removed or moved",
  genesis: "each chain has its beginning",
  identity: "each chain belongs to this ledger under this name",
  keys: "each key was in use when it signed",
  blobs: "large texts and files beside the records are unchanged",
  meta: "no chain is shorter than the ledger noted",
  profile: "the form of the records",
  index: "the list of chains says what the records say",
  head: "exactly these chains and records were exported",
  page: "the page shows the bytes of the bundle's own files",
  rollback: "nothing is older than this browser saw before",
  approvals: "each answer was signed by its person, in time, for this request",
  report: "the report is the one that was signed, and its records bear it out",
  archive: "the file holds what it says, and nothing else",
  receipts: "each action has a receipt, in order",
  parents: "each action names the one before it",
  sealed: "the run was sealed as a whole",
  gates: "each action passed its gate",
  proof: "the action is part of the run",
  trace: "the trace is the one that was sealed",
};

/** What a check establishes; empty for a check that this page does not make. */
export function describeCheck(name: string): string {
  return WORDS[name] ?? "";
}

/**
 * Answer with a passkey, and enrol one. The page builds the text from the verified request and shows the whole of it;
 * the authenticator signs its digest. No passphrase and no key is ever asked for.
 */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Problem, useAnswer } from "../../parts/states.tsx";
import { Command, Text, visible } from "../../parts/text.tsx";
import { type OpenRequest, endorseCommand, endorseEnrolment, enrolledFingerprint, enrolmentBody, passkeyObstacle, readOpenRequest, signEnrolment, signVote, voteBody } from "../../source/passkey.ts";
import { shownText } from "../../source/shown_text.ts";
import { connection, contents, server } from "../../state.ts";
import { type Json } from "../../verify/json.ts";
import { Passkey } from "../../verify/passkey.ts";
import type { Statement } from "../../verify/statement.ts";
import { ApiError } from "../../worker/api.ts";
import type { ApprovalCase } from "../../worker/protocol.ts";
import { readCases } from "./cases.ts";

/** Names of people, as Aver writes them. */
const PERSON = /^person:[a-z0-9][a-z0-9._-]{0,63}$/;

const fetchBlob = (digest: string) => connection.ask({ type: "blob", digest });

/** What went wrong, in words for the reader. */
function explain(error: unknown): string {
  if (error instanceof ApiError) return `The ledger refused it: ${error.code ? `${error.code}, ` : ""}${error.message}`;
  const { name, message } = error as Error;
  return name === "NotAllowedError" ? "The passkey did not sign: you cancelled it, or it took too long." : message;
}

/** The home of the open ledger. */
function home(): { ledger: string; tenant: string } {
  return { ledger: contents.value?.ledger ?? "", tenant: contents.value?.tenant ?? "" };
}

/** The request of a case; null where its record is not one that a passkey can answer. */
function openRequest(one: ApprovalCase): OpenRequest | null {
  try {
    const { ledger, tenant } = home();
    const request = readOpenRequest(one.canonical, ledger, tenant);
    return request.passkeys.size && request.statement === 3 ? request : null;
  } catch {
    return null;
  }
}

export function PasskeyAnswer({ one }: { one: ApprovalCase }): JSX.Element | null {
  const request = openRequest(one);
  const people = [...(request?.passkeys.keys() ?? [])];
  const [person, setPerson] = useState(people[0] ?? "");
  const [comment, setComment] = useState("");
  const [words, setWords] = useState("");
  const [isBusy, setBusy] = useState(false);
  const shown = useAnswer(() => (request === null ? Promise.resolve("") : shownText(request, fetchBlob, { comment })), [one.id, comment]);
  const isReadOnly = server.value?.about["read_only"] === true;
  if (request === null || server.value === null) return null;
  const obstacle = passkeyObstacle() || (isReadOnly ? "This server only reads. Start aver serve without --read-only." : "");
  const doubt = one.problem || !one.isSameAction ? "This request does not hold: it is not answered here." : one.isSignerKnown ? "" : "Its record was signed by a key that you have not pinned: compare and pin it first.";
  const answer = async (word: "approve" | "deny") => {
    setBusy(true);
    setWords("");
    try {
      // The text that is signed is the one on the screen, to the byte.
      const text = shown.value ?? "";
      const statement = await signVote(request, word, person, text);
      const body = voteBody(statement, text, comment);
      await server.value?.api.ask(`approvals/${request.id}`, { method: "POST", body, headers: { "Content-Type": "application/json" } });
      readCases();
    } catch (error) {
      setWords(explain(error));
    }
    setBusy(false);
  };
  return (
    <>
      <h3>Or with a passkey</h3>
      {obstacle || doubt ? <p class="beside">{obstacle || doubt}</p> : (
        <>
          <p>Read this text. You sign exactly it.</p>
          <pre class="shown" tabIndex={0}>{visible(shown.value ?? "…")}</pre>
          <p class="filters">
            <label>You are <select value={person} onChange={(event) => setPerson(event.currentTarget.value)}>{people.map((name) => <option key={name} value={name}>{visible(name)}</option>)}</select></label>
            <label>Reason <input type="search" value={comment} maxLength={500} onInput={(event) => setComment(event.currentTarget.value)} /></label>
          </p>
          <p class="buttons">
            <button type="button" disabled={isBusy || shown.state !== "done"} onClick={() => void answer("approve")}>Approve with a passkey</button>
            <button type="button" disabled={isBusy || shown.state !== "done"} onClick={() => void answer("deny")}>Deny with a passkey</button>
          </p>
        </>
      )}
      {shown.state === "failed" ? <Problem words={shown.words} /> : null}
      {words ? <Problem words={words} /> : null}
    </>
  );
}

export function PasskeyEnrolment(): JSX.Element | null {
  const [identity, setIdentity] = useState("person:");
  const [made, setMade] = useState<Statement | null>(null);
  const [endorser, setEndorser] = useState("");
  const [done, setDone] = useState("");
  const [words, setWords] = useState("");
  const known = useAnswer(() => (server.value === null ? Promise.resolve([]) : connection.ask({ type: "passkeys" })), [contents.value]);
  if (server.value === null) return null;
  const { api, about } = server.value;
  // A browser offers a passkey only to the site that it belongs to.
  const endorsers = about["read_only"] === true ? [] : (known.value ?? []).filter(({ fields }) => new Map(fields).get("rp_id") === location.hostname);
  const obstacle = passkeyObstacle();
  const endorse = async () => {
    setWords("");
    try {
      const by = endorsers.find((one) => one.identity === endorser) ?? endorsers[0];
      if (made === null || by === undefined) return;
      const statement = await endorseEnrolment(made, new Passkey(new Map<string, Json>(by.fields), by.identity));
      await api.ask("approvers", { method: "POST", body: enrolmentBody(statement), headers: { "Content-Type": "application/json" } });
      setMade(null);
      setDone(`${identity} is on the list of approvers. A passkey endorsed it, so that its approvals count as escalated.`);
    } catch (error) {
      setWords(explain(error));
    }
  };
  const enrol = async () => {
    setWords("");
    setDone("");
    setMade(null);
    try {
      if (!PERSON.test(identity)) throw new Error("A person is named such as person:ada-phone: small letters, digits, dots and dashes.");
      setMade(await signEnrolment(identity, home()));
    } catch (error) {
      setWords(explain(error));
    }
  };
  return (
    <section class="section">
      <h2>Answer from here with a passkey</h2>
      <p>Your device makes a passkey and keeps it. An approver endorses it, at a terminal or here with a passkey; from then on it can answer new requests on this page. The first approver is enrolled at the terminal: <code>aver approvals enrol</code>.</p>
      {obstacle ? <p class="beside">{obstacle}</p> : (
        <form class="filters" onSubmit={(event) => { event.preventDefault(); void enrol(); }}>
          <label>Person <input type="search" value={identity} onInput={(event) => setIdentity(event.currentTarget.value)} spellcheck={false} /></label>
          <button type="submit">Make a passkey</button>
        </form>
      )}
      {words ? <Problem words={words} /> : null}
      {made === null ? null : <div role="status"><p>An approver runs this, and compares the fingerprint <code><Text>{enrolledFingerprint(made)}</Text></code>:</p><p><Command>{endorseCommand(made)}</Command></p></div>}
      {made !== null && endorsers.length ? (
        <form class="filters" onSubmit={(event) => { event.preventDefault(); void endorse(); }}>
          <label>Or a passkey endorses it: <select value={endorser} onChange={(event) => setEndorser(event.currentTarget.value)}>{endorsers.map(({ identity: name }) => <option key={name} value={name}>{visible(name)}</option>)}</select></label>
          <button type="submit">Endorse with a passkey</button>
        </form>
      ) : null}
      <p class="good" role="status"><Text>{done}</Text></p>
    </section>
  );
}

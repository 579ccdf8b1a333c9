/** The keys: those that the reader pinned, and those that came along, to compare. */

import type { JSX } from "preact";
import { useState } from "preact/hooks";
import { Empty, Loading, Problem, useAnswer } from "../../parts/states.tsx";
import { Table } from "../../parts/table.tsx";
import { Command, Copy, Text, Time, plural, visible } from "../../parts/text.tsx";
import { FitWords } from "../../parts/verdict.tsx";
import { isRetired, pinKey, pins, readKeys, toPin, unpinKey } from "../../source/pins.ts";
import { connection, contents, judgement, link, recordLink, thing, verifyThing } from "../../state.ts";
import { PublicKey } from "../../verify/ring.ts";
import type { PinnedKey } from "../../worker/protocol.ts";
import { type Owner, readOwners } from "./owners.ts";

function Whole({ value }: { value: string }): JSX.Element {
  return <code class="whole">{visible(value.replace(/(.{16})/g, "$1 ").trim())}</code>;
}

/** Whose key it is, and who says so. */
function OwnerCell({ owner, isKnown }: { owner: Owner | undefined; isKnown: boolean }): JSX.Element {
  if (owner === undefined) return <td class="soft">{isKnown ? "nobody says" : "not read"}</td>;
  return <td><Text>{owner.identity}</Text>{owner.isRetired ? <> <span class="word">retired</span></> : null}<p class="beside tight">says <Text>{owner.from}</Text></p></td>;
}

/** Where keys are kept, in words. */
function storageWords(): string {
  if (contents.value === null) return "A key that you pin now is pinned for what you open next.";
  const of = contents.value.ledger ? `the ledger ${contents.value.ledger.slice(0, 8)}, tenant ${contents.value.tenant}` : "";
  if (location.protocol === "file:") return `This page was opened from a file, where pages share one store. Pins${of ? ` for ${of},` : ""} hold until you close it.`;
  if (of) return `Pins are kept in this browser, for this address and ${of}.`;
  return "This names no ledger. Pins for such things are kept in this browser, for this address.";
}

/** The fingerprints of keys in the words of a finding. That of a passkey is of no use: nobody can pin it. */
const FINGERPRINTS = /(?<!passkey )\b[0-9a-f]{16}\b/g;
/** Records of the `keys` chain that are listed, the first. */
const RECORDS_MAX = 200;

/** What the ledger recorded about its keys: when each was made, rotated and retired. */
function KeyRecords(): JSX.Element | null {
  const isThere = contents.value?.chains.some((chain) => chain.id === "keys") ?? false;
  const answer = useAnswer(() => (isThere ? connection.ask({ type: "rows", chain: "keys", start: 0, stop: RECORDS_MAX }) : Promise.resolve(null)), [contents.value]);
  if (!isThere) return null;
  const words = answer.words || answer.value?.rows.find((row) => row.problem)?.problem;
  return (
    <section>
      <h2>Recorded in the keys chain</h2>
      {words ? <Problem words={words} retry={answer.retry} /> : null}
      {answer.state === "loading" ? <Loading rows={2} words="Reading the keys chain" /> : null}
      {answer.value ? (
        <Table label="Records of the keys chain">
        {answer.value.rows.map((row) => (
          <tr key={row.place}><td><Time>{row.at}</Time></td><td><Text>{row.kind}</Text></td><td><a href={recordLink("keys", row)}><Text>{row.problem || row.summary}</Text></a></td></tr>
        ))}
        </Table>
      ) : null}
      {answer.value && answer.value.total > RECORDS_MAX ? <p><a href={link("chain", "keys")}>All {answer.value.total} records</a></p> : null}
    </section>
  );
}

export function KeysView(_: { parts: string[] }): JSX.Element {
  const [given, setGiven] = useState("");
  const [words, setWords] = useState("");
  const [done, setDone] = useState("");
  const pinAll = (read: () => PinnedKey[], origin: string) => {
    try {
      const keys = read();
      for (const key of keys) void pinKey(key, origin);
      setGiven("");
      setWords("");
      setDone(`${plural(keys.length, "key")} pinned.`);
      void verifyThing();
    } catch (error) {
      setDone("");
      setWords((error as Error).message);
    }
  };
  const isPinned = (key: string) => pins.value.some((pin) => pin.publicKey === key);
  const judged = judgement.value.state === "done" ? judgement.value : null;
  const fits = new Map(judged?.fits.map(([signer, counts]) => [signer, [counts]]));
  const pq = new Map(contents.value?.pqKeys);
  const named = useAnswer(readOwners, [contents.value]);
  const [owners, isKnown] = [named.value ?? new Map<string, Owner>(), named.state === "done"];
  const came = new Map(contents.value?.keys);
  for (const [fingerprint, { key, keyPq }] of owners) {
    if (came.has(fingerprint)) continue;
    came.set(fingerprint, key);
    pq.set(fingerprint, keyPq);
  }
  // Statements have signers, too. A finding names them in its words.
  const unknown = judged?.verdict.findings.flatMap(({ code, words }) => (code === "UNKNOWN_SIGNER" ? (words.match(FINGERPRINTS) ?? []) : [])) ?? [];
  const strangers = new Set([...(judged?.strangers ?? []), ...unknown].filter((signer) => signer && !came.has(signer)));
  const source = thing.value?.live ? "The server says" : "Came with the records";
  return (
    <>
      <h1>Keys</h1>
      <p>A key that came with the records proves nothing: whoever made the records could have put it there. Pin only a key that you compared with its owner, by another way.</p>
      <section>
        <h2>Pinned by you</h2>
        {pins.value.length ? (
          <Table label="Pinned keys" of="plain keys" heads={["Owner", "Key", "From", "When", <span class="hidden">Unpin</span>]}>
            {pins.value.map((pin) => (
              <tr key={pin.publicKey}>
                <OwnerCell owner={owners.get(pin.publicKey.slice(0, 16))} isKnown={isKnown} />
                <td><Whole value={pin.publicKey} />{pin.publicKeyPq ? <p class="beside tight">with an ML-DSA-65 half</p> : null}{isRetired(pin) ? <p class="beside tight">retired, by its owner's export</p> : null}</td>
                <td><Text>{pin.origin}</Text></td>
                <td><Time>{pin.at}</Time></td>
                <td><button type="button" class="small" aria-label={`Unpin ${pin.publicKey.slice(0, 16)}`} onClick={() => { unpinKey(pin.publicKey); void verifyThing(); }}>Unpin</button></td>
              </tr>
            ))}
          </Table>
        ) : <Empty command="aver keys export">None. Signatures are not checked until you pin a key. Its owner prints it by this command.</Empty>}
        <form onSubmit={(event) => { event.preventDefault(); pinAll(() => readKeys(given), "pasted"); }}>
          <label>Paste a key: 64 hex digits, or the text of a key export<br />
            <textarea rows={3} value={given} onInput={(event) => setGiven(event.currentTarget.value)} spellcheck={false} autocomplete="off" data-testid="key" />
          </label>
          <p>
            <button type="submit" data-testid="pin">Pin it</button>{" "}
            <label class="button">Choose a file
              <input type="file" class="hidden" onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (file) void file.text().then((text) => pinAll(() => readKeys(text), `from ${file.name}`));
              }} />
            </label>
          </p>
        </form>
        {words ? <Problem words={words} /> : null}
        <p class="good" role="status">{done}</p>
        <p class="beside"><Text>{storageWords()}</Text></p>
      </section>
      <KeyRecords />
      <section>
        <h2>{source}</h2>
        {came.size || strangers.size ? (
          <Table label="Keys that came along" of="plain keys" heads={["Owner", "Key", "State", <span class="hidden">Pin</span>]}>
            {[...came].map(([fingerprint, key]) => (
              <tr key={fingerprint}>
                <OwnerCell owner={owners.get(fingerprint)} isKnown={isKnown} />
                <td><Whole value={key} /> <Copy text={key} label="copy" /></td>
                <td>{isPinned(key) ? <span class="good">pinned</span> : <><span class="warn">not pinned, not used</span><FitWords fits={fits.get(fingerprint) ?? []} /></>}</td>
                <td>{isPinned(key) ? null : <button type="button" class="small" onClick={() => pinAll(() => [toPin(new PublicKey(key, pq.get(fingerprint)))], `${thing.value?.live ? "listed by the server" : "came with the records"}, and compared by you`)}>I compared it: pin it</button>}</td>
              </tr>
            ))}
            {isKnown ? [...strangers].map((signer) => (
              <tr key={signer}><td class="soft">nobody says</td><td><code><Text>{signer}</Text></code></td><td colSpan={2}><span class="warn">signed here, and its key did not come along.</span> Ask its owner for the key: <Command>aver keys export</Command></td></tr>
            )) : null}
          </Table>
        ) : <p class="soft">No key came along.</p>}
      </section>
    </>
  );
}

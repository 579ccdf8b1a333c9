/** The keys: those that the reader pinned, and those that came along, to compare. */

import { useState } from "preact/hooks";
import type { JSX } from "preact";
import { Copy, Text, Time, visible } from "../../parts/text.tsx";
import { pinKey, pins, readKeys, unpinKey } from "../../source/pins.ts";
import { contents, verifyThing } from "../../state.ts";
import { PublicKey } from "../../verify/ring.ts";

function Whole({ value }: { value: string }): JSX.Element {
  return <code class="whole">{visible(value.replace(/(.{16})/g, "$1 ").trim())}</code>;
}

export function KeysView(_: { parts: string[] }): JSX.Element {
  const [given, setGiven] = useState("");
  const [words, setWords] = useState("");
  const add = (text: string, origin: string) => {
    try {
      for (const key of readKeys(text)) pinKey(key, origin);
      setWords("");
      setGiven("");
      void verifyThing();
    } catch (error) {
      setWords((error as Error).message);
    }
  };
  const isPinned = (key: string) => pins.value.some((pin) => pin.publicKey === key);
  const came = contents.value?.keys ?? [];
  const pq = new Map(contents.value?.pqKeys ?? []);
  return (
    <>
      <h1>Keys</h1>
      <p>A key that came with the records proves nothing: whoever made the records could have put it there. Pin only a key that you compared with its owner, by another way.</p>
      <section>
        <h2>Pinned by you</h2>
        {pins.value.length ? (
          <table class="plain keys">
            <tbody>
              {pins.value.map((pin) => (
                <tr key={pin.publicKey}>
                  <td><Whole value={pin.publicKey} />{pin.publicKeyPq ? <p class="beside">with an ML-DSA-65 half</p> : null}</td>
                  <td class="beside"><Text>{pin.origin}</Text>, <Time>{pin.at}</Time></td>
                  <td><button type="button" onClick={() => { unpinKey(pin.publicKey); void verifyThing(); }}>Unpin</button></td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : <p class="strip">None. Signatures are not checked until you pin a key. The owner prints it by <code>aver keys export</code>.</p>}
        <form onSubmit={(event) => { event.preventDefault(); add(given, "pasted"); }}>
          <label>Paste a key: 64 hex digits, or the text of a key export<br />
            <textarea rows={3} value={given} onInput={(event) => setGiven(event.currentTarget.value)} spellcheck={false} data-testid="key" />
          </label>
          <p>
            <button type="submit" data-testid="pin">Pin it</button>{" "}
            <label class="button">Choose a file
              <input type="file" class="hidden" onChange={(event) => {
                const file = event.currentTarget.files?.[0];
                if (file) void file.text().then((text) => add(text, `from ${file.name}`));
              }} />
            </label>
          </p>
        </form>
        {words ? <div class="finding failed" role="alert"><p><Text>{words}</Text></p></div> : null}
        {location.protocol === "file:" ? <p class="beside">This page was opened from a file, where pages share one store. Pins are not kept.</p> : null}
      </section>
      <section>
        <h2>Came with the records</h2>
        {came.length ? (
          <table class="plain keys">
            <tbody>
              {came.map(([fingerprint, key]) => (
                <tr key={fingerprint}>
                  <td><Whole value={key} /> <Copy text={key} label="copy" /></td>
                  <td>{isPinned(key) ? <span class="good">pinned</span> : <span class="warn">not pinned</span>}</td>
                  <td>{isPinned(key) ? null : <button type="button" onClick={() => {
                    try {
                      pinKey(new PublicKey(key, pq.get(fingerprint) ?? ""), "came with the records, and compared by you");
                      void verifyThing();
                    } catch (error) {
                      setWords((error as Error).message);
                    }
                  }}>I compared it: pin it</button>}</td>
                </tr>
              ))}
            </tbody>
          </table>
        ) : <p class="strip">No key came along.</p>}
      </section>
    </>
  );
}

/** The first screen of the files door, and "Verify a file" behind the others. */

import { useRef, useState } from "preact/hooks";
import type { JSX } from "preact";
import { Text } from "../../parts/text.tsx";
import { fromDrop, fromFileList } from "../../source/files.ts";
import { contents, openThing, opening, problem, retryOpening, route } from "../../state.ts";
import type { OpenedThing } from "../../worker/protocol.ts";

/** How often something was dropped or chosen. A large folder takes time to read: the reader may choose another thing meanwhile. */
let choices = 0;

/** Open a thing, and go to its first screen. If it cannot be opened, that screen says why. */
function show(found: OpenedThing): void {
  choices++;
  // An address of a record waits for the records.
  const [view = ""] = route.value;
  if (contents.value !== null || !["c", "ref", "s", "chain"].includes(view)) location.hash = "#/";
  void openThing(found);
}

export function OpenView(_: { parts: string[] }): JSX.Element {
  const [isOver, setOver] = useState(false);
  const files = useRef<HTMLInputElement>(null);
  const folder = useRef<HTMLInputElement>(null);
  const take = (input: HTMLInputElement | null) => {
    const found = input?.files ? fromFileList(input.files) : null;
    if (found !== null) show(found);
    if (input) input.value = "";
  };
  return (
    <section class="open">
      <h1>See it, and prove it here</h1>
      <p>Choose a record, and this page judges it in your browser. Nothing leaves your machine, and no server is asked.</p>
      <div
        class={`drop${isOver ? " over" : ""}`}
        onDragOver={(event) => { event.preventDefault(); setOver(true); }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          const mine = ++choices;
          if (event.dataTransfer) fromDrop(event.dataTransfer).then((found) => found && mine === choices && show(found), (error: Error) => { if (mine === choices) problem.value = error.message; });
        }}
      >
        <p class="large">Drop a bundle's folder or a file here</p>
        <p>
          <button type="button" onClick={() => folder.current?.click()}>Choose a folder</button>{" "}
          <button type="button" onClick={() => files.current?.click()}>Choose a file</button>
        </p>
        <input ref={files} type="file" multiple hidden data-testid="files" onChange={() => take(files.current)} />
        <input ref={(element) => { element?.setAttribute("webkitdirectory", ""); folder.current = element; }} type="file" hidden data-testid="folder" onChange={() => take(folder.current)} />
      </div>
      {opening.value ? <p class="strip" role="status"><Text>{opening.value}</Text> …</p> : null}
      {problem.value ? (
        <div class="finding failed" role="alert">
          <p><strong>Not judged.</strong> <Text>{problem.value}</Text></p>
          {retryOpening.value ? <p><button type="button" class="small" onClick={retryOpening.value}>Try again</button></p> : null}
        </div>
      ) : null}
      <h2>What it judges</h2>
      <table class="plain">
        <tbody>
          <tr><th scope="row">a bundle's folder</th><td>what <code>aver export --out DIR</code> and agent-capsule write: <code>index.json</code> and one file per chain</td></tr>
          <tr><th scope="row">one chain</th><td>a file of such a folder</td></tr>
          <tr><th scope="row">capsules</th><td>one, an array, or one on each line, as JSON</td></tr>
          <tr><th scope="row">a sealed run</th><td><code>.cap</code> of Aver and of CapSeal, <code>actions.jsonl</code>, a proof that a run has an action</td></tr>
          <tr><th scope="row">a report</th><td>the page that <code>aver report</code> writes, with the records inside</td></tr>
          <tr><th scope="row">anything else</th><td>a ledger, a database, a checkpoint, an act: <code>aver verify FILE</code></td></tr>
        </tbody>
      </table>
    </section>
  );
}

/** The page: a bar, a rail, and one view. */

import { effect } from "@preact/signals";
import { type JSX, render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { CopyStrip } from "./parts/tamper.tsx";
import { VerdictChip } from "./parts/verdict.tsx";
import { Text } from "./parts/text.tsx";
import { loadPins } from "./source/pins.ts";
import { openSite } from "./source/site.ts";
import { changed, contents, link, openThing, opening, problem, route, usesUtc, verifyThing } from "./state.ts";
import { ChainView } from "./views/chain.tsx";
import { ChainsView } from "./views/chains.tsx";
import { KeysView } from "./views/keys.tsx";
import { OpenView } from "./views/open.tsx";
import { OverviewView } from "./views/overview.tsx";
import { RecordView } from "./views/record.tsx";
import { SessionsView } from "./views/sessions.tsx";

const KEYS: [string, string][] = [
  ["g o", "overview"],
  ["g s", "sessions"],
  ["g c", "chains"],
  ["g k", "keys"],
  ["g f", "verify a file"],
  ["j k", "next and previous row or record"],
  ["b", "next break of a chain"],
  ["Enter", "open a record"],
  ["Esc", "back"],
  ["v", "verify again"],
  ["?", "this help"],
];

function CurrentView(): JSX.Element {
  const [view = "", chain = "", place] = route.value;
  if (contents.value === null || view === "open") return <OpenView />;
  if (view === "chains") return <ChainsView />;
  if (view === "sessions") return <SessionsView />;
  if (view === "keys") return <KeysView />;
  if (view === "s") return <ChainView key={chain} chain={chain} wanted={place} />;
  if (view === "c" && /^\d{1,12}$/.test(place ?? "")) return <RecordView chain={chain} place={Number(place)} />;
  return <OverviewView />;
}

function App(): JSX.Element {
  const [help, setHelp] = useState(false);
  const [theme, setTheme] = useState("");
  useEffect(() => {
    let isGoing = false;
    const onKey = (event: KeyboardEvent) => {
      const isTyping = event.target instanceof HTMLElement && event.target.matches("input, textarea, select");
      if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
      const views: Record<string, string> = { o: link(""), s: link("sessions"), c: link("chains"), k: link("keys"), f: link("open") };
      if (isGoing && views[event.key]) location.hash = views[event.key] as string;
      else if (event.key === "?") setHelp(true);
      else if (event.key === "Escape") setHelp(false);
      else if (event.key === "v") void verifyThing();
      isGoing = event.key === "g";
    };
    addEventListener("keydown", onKey);
    return () => removeEventListener("keydown", onKey);
  }, []);
  useEffect(() => {
    if (theme) document.documentElement.dataset["theme"] = theme;
    else delete document.documentElement.dataset["theme"];
  }, [theme]);
  const [view = ""] = route.value;
  const isOpen = contents.value !== null;
  const entry = (to: string, name: string, isHere: boolean) => (
    <a href={to} aria-current={isHere ? "page" : undefined}>{name}</a>
  );
  return (
    <>
      <a class="skip" href="#main">Skip to the content</a>
      <header class="bar">
        <a class="name" href={link("")}>Aver</a>
        <span class="open-name"><Text>{contents.value?.name ?? ""}</Text></span>
        <VerdictChip />
        <button type="button" class="small" onClick={() => { usesUtc.value = !usesUtc.value; }}>{usesUtc.value ? "UTC" : "local"}</button>
        <button type="button" class="small" onClick={() => setTheme(theme === "" ? "dark" : theme === "dark" ? "light" : "")}>{theme || "auto"}</button>
        <button type="button" class="small" onClick={() => setHelp(true)} aria-label="Keys of the keyboard">?</button>
      </header>
      <nav class="rail" aria-label="Views">
        {isOpen ? entry(link(""), "Overview", view === "") : null}
        {isOpen ? entry(link("sessions"), "Sessions", view === "sessions") : null}
        {isOpen ? entry(link("chains"), "Chains", view === "chains" || view === "s" || view === "c") : null}
        {entry(link("keys"), "Keys", view === "keys")}
        {entry(link("open"), "Verify a file", view === "open" || !isOpen)}
      </nav>
      <main id="main" tabIndex={-1} class={changed.value ? "is-copy" : ""}>
        <CopyStrip />
        {opening.value && isOpen ? <p class="strip" role="status">{opening.value} …</p> : null}
        {view === "keys" && !isOpen ? <KeysView /> : <CurrentView />}
      </main>
      {help ? (
        <div class="overlay" role="dialog" aria-modal="true" aria-label="Keys of the keyboard">
          <div>
            <h2>Keys</h2>
            <table class="plain"><tbody>{KEYS.map(([key, words]) => <tr key={key}><th scope="row"><kbd>{key}</kbd></th><td>{words}</td></tr>)}</tbody></table>
            <p><button type="button" ref={(element) => element?.focus()} onClick={() => setHelp(false)}>Close</button></p>
          </div>
        </div>
      ) : null}
    </>
  );
}

effect(() => {
  document.title = contents.value === null ? "Aver Explorer" : `${contents.value.name} · Aver Explorer`;
});

// A file that is dropped beside the field must not replace the page.
for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());

render(<App />, document.getElementById("app") as HTMLElement);
void loadPins().then(async () => {
  if (document.documentElement.dataset["door"] !== "site") return;
  try {
    opening.value = "Reading this site";
    await openThing(await openSite((done, total) => { opening.value = `Reading this site: ${done} of ${total} files`; }));
  } catch (error) {
    opening.value = "";
    problem.value = (error as Error).message;
  }
});

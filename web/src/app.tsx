/** The page: a bar, a rail, and one view. It opens the door that it came through. */

import { effect } from "@preact/signals";
import { type JSX, render } from "preact";
import { useErrorBoundary, useLayoutEffect, useRef } from "preact/hooks";
import { Bar } from "./frame/bar.tsx";
import { Help, isHelpOpen } from "./frame/help.tsx";
import { BottomBar, Rail } from "./frame/rail.tsx";
import { Strips } from "./frame/strips.tsx";
import { listenToKeys } from "./parts/keyboard.ts";
import { Problem } from "./parts/states.tsx";
import { Text } from "./parts/text.tsx";
import { applyPreferences } from "./preferences.ts";
import { link, returnFocus, route } from "./route.ts";
import { openDoor } from "./door.ts";
import { changed, contents, opening, spoken, verifyThing, yieldToScrolling } from "./state.ts";
import { watchApprovals } from "./views/approvals/cases.ts";
import { OpenView } from "./views/open/open.tsx";
import { VIEWS, findView } from "./views/registry.ts";

function CurrentView(): JSX.Element {
  const [name = "", ...parts] = route.value;
  // An answer of a strange form may break a view. It must not take the page away.
  const [error] = useErrorBoundary();
  if (error) return <Problem words={`This view broke down: ${(error as Error).message}`} retry={() => location.reload()} />;
  const view = findView(name);
  if (contents.value === null && opening.value && view.needs !== "nothing") return <Opening />;
  if (contents.value === null && view.needs === "records") return <OpenView parts={[]} />;
  if (name !== view.route) return <><h1>No such page</h1><p class="strip">The Explorer has no view <code><Text>{name}</Text></code>. <a href={link()}>Overview</a></p></>;
  const { Module } = view;
  return <Module key={[name, parts[0]].join("/")} parts={parts} />;
}

/** The first screen while the records are being opened, with the heights of what will be there. */
function Opening(): JSX.Element {
  return (
    <div aria-busy="true">
      <h1>{opening.value}</h1>
      <div class="band placeholder tall" />
      <div class="band placeholder" />
    </div>
  );
}

function App(): JSX.Element {
  const main = useRef<HTMLElement>(null);
  const address = route.value.slice(0, 2).join("/");
  const isFirst = useRef(true);
  // Before the browser draws: a reader who presses a key at once, such as / for the search, must not lose the focus again.
  useLayoutEffect(() => {
    if (!isFirst.current && main.current) returnFocus(main.current);
    isFirst.current = false;
  }, [address]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); main.current?.focus(); }}>Skip to the content</a>
      <Bar />
      <Rail />
      <main id="main" ref={main} tabIndex={-1} class={changed.value ? "is-copy" : ""}>
        <Strips />
        <CurrentView key={address} />
      </main>
      <BottomBar />
      <Help />
      <p class="hidden" role="status" aria-live="polite">{spoken.value}</p>
    </>
  );
}

/** Start the page in this window. */
export function startPage(): void {
  applyPreferences();
  watchApprovals();
  effect(() => {
    const view = findView(route.value[0] ?? "");
    document.title = contents.value === null ? "Aver Explorer" : `${view.title} · ${contents.value.name} · Aver Explorer`;
  });

  // A file that is dropped beside the field must not replace the page.
  for (const name of ["dragover", "drop"]) addEventListener(name, (event) => event.preventDefault());

  // Lists scroll inside the page, and their events do not bubble.
  addEventListener("scroll", yieldToScrolling, { capture: true, passive: true });

  listenToKeys((letter) => {
    const view = VIEWS.find((one) => one.letter === letter);
    if (view !== undefined) location.hash = link(...(view.route ? [view.route] : []));
    return view !== undefined;
  }, {
    "?": () => { isHelpOpen.value = true; },
    v: () => void verifyThing(),
    "/": () => document.getElementById("search")?.focus(),
    Escape: () => { if (route.value[0]) history.back(); },
  });
  render(<App />, document.getElementById("app") as HTMLElement);
  void openDoor();
}

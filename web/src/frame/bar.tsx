/** The bar: which ledger, whether it is live, the search, the verdict, UTC or local time, and the theme. */

import type { JSX } from "preact";
import { Text } from "../parts/text.tsx";
import { VerdictChip } from "../parts/verdict.tsx";
import { type Theme, theme, usesUtc } from "../preferences.ts";
import { link, route, searchLink } from "../route.ts";
import { contents, liveState, thing } from "../state.ts";
import { isHelpOpen } from "./help.tsx";

const NEXT: Record<Theme, Theme> = { auto: "dark", dark: "light", light: "auto" };

function LiveDot(): JSX.Element | null {
  if (!thing.value?.live) return null;
  const state = liveState.value;
  const words = state.isLive ? "live" : "not live";
  return <span class={`live ${state.isLive ? "on" : "off"}`} title={words}><span class="dot" aria-hidden="true" /><span class="live-word">{words}</span></span>;
}

export function Bar(): JSX.Element {
  const [view = "", query = ""] = route.value;
  return (
    <header class="bar">
      <a class="name" href={link()}>Aver</a>
      <span class="open-name"><Text>{contents.value?.name ?? ""}</Text></span>
      <LiveDot />
      <form role="search" class="search" onSubmit={(event) => {
        event.preventDefault();
        const words = new FormData(event.currentTarget).get("words");
        if (typeof words === "string" && words.trim()) location.hash = searchLink(words.trim());
      }}>
        {contents.value === null ? null : (
          <>
            <input id="search" name="words" type="search" placeholder="Search" aria-label="Search the records" autocomplete="off"
              spellcheck={false} key={view === "search" ? query : ""} defaultValue={view === "search" ? query : ""} />
            <kbd aria-hidden="true">/</kbd>
          </>
        )}
      </form>
      <VerdictChip />
      <button type="button" class="small" aria-label={`Times are in ${usesUtc.value ? "UTC" : "local time"}; change`} onClick={() => { usesUtc.value = !usesUtc.value; }}>
        {usesUtc.value ? "UTC" : "local"}
      </button>
      <button type="button" class="small" aria-label={`Theme: ${theme.value}; change`} onClick={() => { theme.value = NEXT[theme.value]; }}>{theme.value}</button>
      <button type="button" class="small help" onClick={() => { isHelpOpen.value = true; }} aria-label="Keys of the keyboard">?</button>
    </header>
  );
}

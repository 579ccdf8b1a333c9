/** How the reader wants to see things: times in UTC or local time, light or dark. Kept in this browser, never on file://. */

import { effect, signal } from "@preact/signals";

export type Theme = "auto" | "light" | "dark";

const KEPT = location.protocol !== "file:";

function recall(name: string): string | null {
  try {
    return KEPT ? localStorage.getItem(name) : null;
  } catch {
    return null; // Storage may be refused. The choice then holds for this visit.
  }
}

function keep(name: string, value: string): void {
  try {
    if (KEPT) localStorage.setItem(name, value);
  } catch {
    // As above.
  }
}

const remembered = recall("aver-theme");
export const usesUtc = signal(recall("aver-time") !== "local");
export const theme = signal<Theme>(remembered === "light" || remembered === "dark" ? remembered : "auto");

/** Keep what the reader chooses, and show it. */
export function applyPreferences(): void {
  effect(() => keep("aver-time", usesUtc.value ? "utc" : "local"));
  effect(() => {
    keep("aver-theme", theme.value);
    if (theme.value === "auto") delete document.documentElement.dataset["theme"];
    else document.documentElement.dataset["theme"] = theme.value;
  });
}

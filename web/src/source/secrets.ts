/**
 * The secrets of the link that `aver serve` prints: `http://localhost:4840/#token=…&keys=…`.
 *
 * This module must run before any other reads the address. It takes the fragment out of the address at once, so that no
 * history, screenshot or copied link has it. The token stays in `sessionStorage` of this tab: a reload still works.
 */

interface Secrets {
  token: string;
  /** SHA-256 of the server's list of keys, by the link; empty where the link did not say. */
  keys: string;
}

const TOKEN = "aver-token";
const KEYS = "aver-keys";
const PLACE = "aver-place";

function recall(name: string): string {
  try {
    return sessionStorage.getItem(name) ?? "";
  } catch {
    return "";
  }
}

function takeSecrets(): Secrets {
  if (location.protocol === "file:") return { token: "", keys: "" };
  const fragment = location.hash.slice(1);
  if (!fragment.startsWith("token=")) return { token: recall(TOKEN), keys: recall(KEYS) };
  const given = new URLSearchParams(fragment);
  history.replaceState(null, "", `${location.pathname}${location.search}${recall(PLACE) || "#/"}`);
  const found = { token: given.get("token") ?? "", keys: given.get("keys") ?? "" };
  try {
    sessionStorage.setItem(TOKEN, found.token);
    sessionStorage.setItem(KEYS, found.keys);
    sessionStorage.removeItem(PLACE);
  } catch {
    // Storage may be refused. The token then holds until the page is reloaded.
  }
  return found;
}

/** Load the page again with the link that is in the address, and go on at this place. */
export function keepPlace(address: string): void {
  try {
    sessionStorage.setItem(PLACE, address);
  } catch {
    // Storage may be refused. The page then begins at its first screen.
  }
  location.reload();
}

export const secrets: Secrets = takeSecrets();

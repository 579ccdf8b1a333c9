/**
 * The secrets of the link that `aver serve` prints: `http://localhost:4840/#token=…&keys=…`.
 *
 * This module must run before any other reads the address. It takes the fragment out of the address at once, so that no
 * history, screenshot or copied link has it. The token stays in `sessionStorage` of this tab: a reload still works.
 *
 * A tab without a token, such as one that a link of the page opened, asks the other tabs of the same origin: scheme, host
 * and port. A tab answers only while the server accepts its token. So an old tab of a server that was started anew hands
 * nothing on, and two tabs without a token both wait for a moment, and no longer.
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
  return keepSecrets({ token: given.get("token") ?? "", keys: given.get("keys") ?? "" });
}

function keepSecrets(found: Secrets): Secrets {
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

/** Forget the digest of the key list, because its keys are pinned. Tabs that ask this one get no digest either. */
export function forgetKeys(): void {
  secrets.keys = "";
  keepSecrets(secrets);
}

/** The channel between the tabs of one origin. */
const CHANNEL = "aver-secrets";
const QUESTION = "who has a token?";
/** Milliseconds until other tabs must have answered. */
const ANSWER_MS = 500;

/** Ask the other tabs for the secrets of their link, if this one has none. Where nobody answers, there are none. */
export async function askOtherTabs(): Promise<void> {
  // Pages of all files may share one channel.
  if (secrets.token || location.protocol === "file:") return;
  const channel = new BroadcastChannel(CHANNEL);
  await new Promise<void>((resolve) => {
    channel.onmessage = ({ data }: MessageEvent<Partial<Secrets> | null>) => {
      const { token, keys } = data ?? {};
      if (typeof token !== "string" || typeof keys !== "string") return;
      Object.assign(secrets, keepSecrets({ token, keys }));
      resolve();
    };
    channel.postMessage(QUESTION);
    setTimeout(resolve, ANSWER_MS);
  });
  channel.close();
}

/** Answer other tabs, whenever the server accepts this tab's token. */
export function answerOtherTabs(isAccepted: () => boolean): void {
  const channel = new BroadcastChannel(CHANNEL);
  channel.onmessage = ({ data }: MessageEvent<unknown>) => {
    if (data === QUESTION && isAccepted()) channel.postMessage({ token: secrets.token, keys: secrets.keys });
  };
}

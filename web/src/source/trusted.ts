/** The one place that makes script addresses: the worker's own text, and the data files of an exported site. */

interface Policy {
  createScriptURL(url: string): unknown;
}

const DATA_FILE = /^explorer\/data\/(?:names|[0-9]{1,7})\.js$/;

function check(url: string): string {
  if (!url.startsWith("blob:") && !DATA_FILE.test(url)) throw new TypeError(`${url} is no script of this page`);
  return url;
}

const factory = (globalThis as { trustedTypes?: { createPolicy(name: string, rules: object): Policy } }).trustedTypes;
const policy: Policy = factory?.createPolicy("aver", { createScriptURL: check }) ?? { createScriptURL: check };

/** An address that the browser accepts for a script or worker. */
export function scriptUrl(url: string): string {
  return policy.createScriptURL(url) as string;
}

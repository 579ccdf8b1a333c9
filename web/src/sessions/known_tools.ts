/** The tools of known agents that run commands or apply patches, and arguments that name paths. `known_tools.json` is checked against Aver's own table. */

import known from "./known_tools.json" with { type: "json" };

const COMMANDS: ReadonlySet<string> = new Set(known.command);
const PATCHES: ReadonlySet<string> = new Set(known.patch);
const PATHS: ReadonlySet<string> = new Set(known.path);

/** A name in lower case without separators. One that is not ASCII may only look like a known one, and stays as it is. */
function normalise(name: string): string {
  return /[^\x00-\x7f]/.test(name) ? name : name.replace(/[-_. ]/g, "").toLowerCase();
}

/** Aver knows no tool of an MCP server by its name. */
function isOfMcpServer(tool: string): boolean {
  return /^mcp__.+?__.+$/.test(tool);
}

export function takesCommand(tool: string): boolean {
  return !isOfMcpServer(tool) && COMMANDS.has(normalise(tool));
}

export function takesPatch(tool: string): boolean {
  return !isOfMcpServer(tool) && PATCHES.has(normalise(tool));
}

/** Whether an argument of this name holds a path, as the gate judges it. */
export function namesPath(argument: string): boolean {
  return PATHS.has(normalise(argument));
}

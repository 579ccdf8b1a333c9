import type { JSX } from "preact";
export function ApprovalsView(_: { parts: string[] }): JSX.Element { return <h1>Approvals</h1>; }

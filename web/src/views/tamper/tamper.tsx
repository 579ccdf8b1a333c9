import type { JSX } from "preact";
export function TamperView(_: { parts: string[] }): JSX.Element { return <h1>Try</h1>; }

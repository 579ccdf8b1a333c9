import type { JSX } from "preact";
export function MetaView(_: { parts: string[] }): JSX.Element { return <h1>Meta</h1>; }

import type { JSX } from "preact";
export function SearchView(_: { parts: string[] }): JSX.Element { return <h1>Search</h1>; }

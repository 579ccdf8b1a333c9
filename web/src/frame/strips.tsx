/** Strips above every view: a copy that was changed, a page that is not live, and what is being opened. */

import type { JSX } from "preact";
import { CopyStrip } from "../parts/tamper.tsx";
import { Text, Time } from "../parts/text.tsx";
import { changed, contents, home, liveState, openThing, opening, problem, reconnect, thing } from "../state.ts";
import type { OpenedThing } from "../worker/protocol.ts";

export function Strips(): JSX.Element {
  const state = liveState.value;
  return (
    <>
      <CopyStrip />
      {problem.value && contents.value !== null ? <div class="finding failed" role="alert"><p><Text>{problem.value}</Text></p></div> : null}
      {opening.value && contents.value !== null ? <p class="strip" role="status"><Text>{opening.value}</Text> …</p> : null}
      {home.value !== null && !changed.value && thing.value !== home.value ? (
        <p class="strip" role="status">
          You look at <Text>{thing.value?.name ?? "nothing"}</Text>, which you opened here.{" "}
          <button type="button" class="small" onClick={() => void openThing(home.value as OpenedThing)}>Back to <Text>{home.value.name}</Text></button>
        </p>
      ) : null}
      {thing.value?.live && !state.isLive ? (
        <p class="strip stale" role="status">
          Not live since <Time short>{state.since}</Time>: <Text>{state.words || "the server does not answer"}</Text>. What you see is of that time.{" "}
          <button type="button" class="small" onClick={() => reconnect.value()}>Try again</button>
        </p>
      ) : null}
    </>
  );
}

/** A `capsule://` URI: it leads to the record that it names, or says that the record is not here. */

import type { JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Loading, NotHere, Problem, useAnswer } from "../../parts/states.tsx";
import { Command, quoteName } from "../../parts/text.tsx";
import { link, recordLink } from "../../route.ts";
import { connection, contents } from "../../state.ts";

export function ReferenceView({ parts: [uri = ""] }: { parts: string[] }): JSX.Element {
  const answer = useAnswer(() => connection.ask({ type: "locate", uri }), [uri, contents.value]);
  const found = answer.value?.found;
  const [, fragment] = uri.split("#", 2);
  // In the place of this address: the way back must not lead here, and on again.
  useEffect(() => {
    if (found) location.replace(recordLink(found.chain, found.row) + (fragment ? link(fragment).slice(1) : ""));
  }, [found]);
  return (
    <>
      <h1>Reference</h1>
      {answer.state === "failed" ? <Problem words={answer.words} retry={answer.retry} /> : null}
      {answer.state === "loading" || found ? <Loading rows={4} words="Looking for the record" /> : null}
      {answer.value && !found ? (
        <>
          <NotHere what="record" name={uri} />
          {answer.value.isCut ? <p>The page looked through the first 200,000 records only.</p> : null}
          <p>Open the records that have it under <a href={link("open")}>Verify a file</a>, or look for it in your own ledger:</p>
          <p><Command isElsewhere>{`aver show ${quoteName(uri)}`}</Command></p>
        </>
      ) : null}
    </>
  );
}

/** The files that a session touched, each with its changes in order. */

import type { JSX } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { Counts, DiffView } from "../../parts/diff.tsx";
import { useRowKeys } from "../../parts/rows.ts";
import { Empty, Problem, useAnswer } from "../../parts/states.tsx";
import { Text, Time, plural } from "../../parts/text.tsx";
import { Output } from "../capsule/sections.tsx";
import { SessionProblem, useSession } from "../session/session.tsx";
import { readWholeStep, recordAddress } from "../session/step_detail.tsx";
import type { SessionReading } from "../../sessions/story.ts";
import { type TouchedFile, diffOfFile, listFiles } from "../../sessions/files.ts";
import { stepSummary } from "../../sessions/labels.ts";
import type { StoryEntry } from "../../sessions/story.ts";
import { link } from "../../state.ts";

/** Changes of one file that are read at once. */
const EDITS_SHOWN = 25;

export function FilesView({ parts: [chain = "", wanted = ""] }: { parts: string[] }): JSX.Element {
  const now = useSession(chain);
  if (now.state === "none") {
    return <><h1>Files</h1><Empty command="aver ingest --all">This chain is no session of a coding agent, so no file is known. <a href={link("chain", chain)}>Read the chain</a>, or record sessions:</Empty></>;
  }
  if (now.state !== "done") return <SessionProblem now={now} chain={chain} /> as JSX.Element;
  return <Files chain={chain} wanted={wanted} reading={now.reading} />;
}

function Files({ chain, wanted, reading }: { chain: string; wanted: string; reading: SessionReading }): JSX.Element {
  const files = useMemo(() => listFiles(reading.entries), [reading]);
  const chosen = files.find((file) => file.path === wanted) ?? files[0];
  const box = useRef<HTMLElement>(null);
  useRowKeys(box);
  return (
    <section class="files-view">
      <h1>Files of <Text>{reading.totals.title || reading.totals.session}</Text></h1>
      <p class="beside"><a href={link("s", chain)}>The session</a> · {plural(files.length, "file")} changed by {plural(reading.totals.edits, "edit")} <Counts lines={[reading.totals.linesAdded, reading.totals.linesRemoved]} /></p>
      {files.length === 0 ? <p class="strip">No step of this session changed a file. Edits that failed or were denied changed none; the session shows them.</p> : null}
      <div class="files-split">
        <nav aria-label="Files" ref={box}>
          <ul>
            {files.map((file) => (
              <li key={file.path}>
                <a href={link("files", chain, file.path)} data-row tabIndex={file === chosen ? 0 : -1} aria-current={file === chosen ? "true" : undefined}>
                  <span class="path"><Text>{file.path}</Text></span>
                  <span class="beside">{plural(file.edits.length, "edit")} <Counts lines={file.lines[0] || file.lines[1] ? file.lines : null} /></span>
                </a>
              </li>
            ))}
          </ul>
        </nav>
        {chosen ? <FileChanges key={chosen.path} file={chosen} /> : null}
      </div>
    </section>
  );
}

function FileChanges({ file }: { file: TouchedFile }): JSX.Element {
  const [shown, setShown] = useState(EDITS_SHOWN);
  return (
    <div class="file-changes">
      <h2><Text>{file.path}</Text></h2>
      {file.edits.slice(0, shown).map((entry) => <FileChange key={`${entry.chain} ${entry.place}`} entry={entry} path={file.path} />)}
      {file.edits.length > shown ? <button type="button" onClick={() => setShown(shown + EDITS_SHOWN)}>Show {Math.min(EDITS_SHOWN, file.edits.length - shown)} more changes</button> : null}
    </div>
  );
}

function FileChange({ entry, path }: { entry: StoryEntry; path: string }): JSX.Element {
  const { value, words, retry } = useAnswer(() => readWholeStep(entry), [entry]);
  const step = value?.step ?? null;
  const title = entry.step === null ? "" : stepSummary(entry.step);
  return (
    <section class="file-change">
      <h3>{entry.step?.at ? <Time short>{entry.step.at}</Time> : null} <a href={recordAddress(entry)}><Text>{title}</Text></a></h3>
      {words ? <Problem words={words} retry={retry} /> : null}
      {step === null && !words ? <div class="placeholder tall" aria-busy="true" /> : null}
      {step === null ? null : typeof step.diff === "string" ? <DiffView diff={diffOfFile(step.diff, path)} title={path} /> : step.diff === null ? <p class="beside">The record has no diff of this change.</p> : <Output value={step.diff} />}
    </section>
  );
}

/** The rail of a wide window, and the bottom bar of a phone. Both come from the registry of views. */

import type { JSX } from "preact";
import { link, route } from "../route.ts";
import { contents, waiting } from "../state.ts";
import { VIEWS, type View, findView } from "../views/registry.ts";

function currentEntry(): string {
  const view = contents.value === null && findView(route.value[0] ?? "").needs === "records" ? findView("open") : findView(route.value[0] ?? "");
  return view.within ?? view.route;
}

function Entry({ view, isCurrent = currentEntry() === view.route }: { view: View; isCurrent?: boolean }): JSX.Element {
  const number = view.route === "approvals" ? waiting.value : 0;
  return (
    <a href={link(...(view.route ? [view.route] : []))} aria-current={isCurrent ? "page" : undefined}>
      {view.title}
      {number ? <span class="number-of" aria-label={`${number} waiting`}>{number}</span> : null}
    </a>
  );
}

export function Rail(): JSX.Element {
  const shown = VIEWS.filter((view) => view.needs !== "records" || contents.value !== null);
  return (
    <nav class="rail" aria-label="Views">
      {shown.filter((view) => view.rail === "main").map((view) => <Entry key={view.route} view={view} />)}
      <hr />
      {shown.filter((view) => view.rail === "more").map((view) => <Entry key={view.route} view={view} />)}
    </nav>
  );
}

export function BottomBar(): JSX.Element {
  const isOpen = contents.value !== null;
  // The other views are reached by *More*.
  const current = isOpen && !findView(currentEntry()).isOnPhone ? "more" : currentEntry();
  const shown = isOpen ? [...VIEWS.filter((view) => view.isOnPhone), findView("more")] : VIEWS.filter((view) => view.needs !== "records" && view.rail !== "none");
  return (
    <nav class="bottom" aria-label="Views, short">
      {shown.map((view) => <Entry key={view.route} view={view} isCurrent={view.route === current} />)}
    </nav>
  );
}

/** All views, for the bottom bar of a phone, which has room for five. */

import type { JSX } from "preact";
import { link } from "../../route.ts";
import { contents } from "../../state.ts";
import { VIEWS } from "../registry.ts";

export function MoreView(): JSX.Element {
  const shown = VIEWS.filter((view) => view.rail !== "none" && (view.needs !== "records" || contents.value !== null));
  return (
    <>
      <h1>All views</h1>
      <ul class="entries">
        {shown.map((view) => <li key={view.route}><a href={link(...(view.route ? [view.route] : []))}>{view.title}</a></li>)}
      </ul>
    </>
  );
}

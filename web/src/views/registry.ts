/**
 * Every view of the page, one line each. The frame builds the rail, the keys and the help from this list.
 *
 * The address of a view is `#/<route>/<part>/<part>…`, and its module gets the parts. A view keeps its own styles in a
 * `.css` file beside it: the build joins all of them after `style.css`.
 */

import type { JSX } from "preact";
import { ActsView } from "./acts/acts.tsx";
import { ApprovalsView } from "./approvals/approvals.tsx";
import { CapsuleView } from "./capsule/capsule.tsx";
import { ChainView } from "./chains/chain.tsx";
import { ChainsView } from "./chains/chains.tsx";
import { FilesView } from "./files/files.tsx";
import { KeysView } from "./keys/keys.tsx";
import { MetaView } from "./meta/meta.tsx";
import { MoreView } from "./more/more.tsx";
import { OpenView } from "./open/open.tsx";
import { OverviewView } from "./overview/overview.tsx";
import { ProtocolView } from "./protocol/protocol.tsx";
import { ReferenceView } from "./reference/reference.tsx";
import { RiskView } from "./risk/risk.tsx";
import { SearchView } from "./search/search.tsx";
import { SessionView } from "./session/session.tsx";
import { SessionsView } from "./sessions/sessions.tsx";
import { TamperView } from "./tamper/tamper.tsx";

interface ViewProps {
  /** The parts of the address after the route. */
  parts: string[];
}

export interface View {
  /** The first part of the address. */
  route: string;
  title: string;
  /** The key that opens it after `g`; empty for none. */
  letter: string;
  /** Where the rail lists it: among the main views, below them, or nowhere. */
  rail: "main" | "more" | "none";
  /** What must be open for it: records, or only the door. Pins belong to a ledger, so *Keys* waits until it is known which. */
  needs: "records" | "door" | "nothing";
  Module: (props: ViewProps) => JSX.Element;
  /** The route of the rail's entry that stands for it, where it has none of its own. */
  within?: string;
  /** Whether the bottom bar of a phone has it. There is room for four, and for *More*. */
  isOnPhone?: boolean;
}

export const VIEWS: View[] = [
  { route: "", title: "Overview", letter: "o", rail: "main", needs: "records", Module: OverviewView, isOnPhone: true },
  { route: "sessions", title: "Sessions", letter: "s", rail: "main", needs: "records", Module: SessionsView, isOnPhone: true },
  { route: "approvals", title: "Approvals", letter: "a", rail: "main", needs: "records", Module: ApprovalsView, isOnPhone: true },
  { route: "chains", title: "Chains", letter: "c", rail: "main", needs: "records", Module: ChainsView, isOnPhone: true },
  { route: "risk", title: "Risk", letter: "r", rail: "main", needs: "records", Module: RiskView },
  { route: "open", title: "Verify a file", letter: "f", rail: "main", needs: "nothing", Module: OpenView },
  { route: "keys", title: "Keys", letter: "k", rail: "more", needs: "door", Module: KeysView },
  { route: "acts", title: "Acts", letter: "i", rail: "more", needs: "records", Module: ActsView },
  { route: "protocol", title: "Protocol", letter: "p", rail: "more", needs: "records", Module: ProtocolView },
  { route: "meta", title: "Meta", letter: "m", rail: "more", needs: "records", Module: MetaView },
  { route: "try", title: "Try to change it", letter: "t", rail: "more", needs: "records", Module: TamperView },
  { route: "search", title: "Search", letter: "", rail: "none", needs: "records", Module: SearchView },
  { route: "ref", title: "Reference", letter: "", rail: "none", needs: "records", Module: ReferenceView },
  { route: "more", title: "More", letter: "", rail: "none", needs: "nothing", Module: MoreView },
  { route: "chain", title: "Chain", letter: "", rail: "none", needs: "records", Module: ChainView, within: "chains" },
  { route: "s", title: "Session", letter: "", rail: "none", needs: "records", Module: SessionView, within: "sessions" },
  { route: "files", title: "Files", letter: "", rail: "none", needs: "records", Module: FilesView, within: "sessions" },
  { route: "c", title: "Record", letter: "", rail: "none", needs: "records", Module: CapsuleView, within: "chains" },
];

/** The view of a route; the overview for a route that nobody has. */
export function findView(route: string): View {
  return VIEWS.find((view) => view.route === route) ?? (VIEWS[0] as View);
}

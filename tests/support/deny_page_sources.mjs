// Refuse the page's sources and their libraries: see node.py. Node.js loads this before anything else.

import * as loader from "node:module";

const web = new URL("../../web/", import.meta.url).href;

function refuse(url) {
  if (!url.startsWith(`${web}src/`) && !url.startsWith(`${web}node_modules/`)) return;
  throw new Error(`${url.slice(web.length)} is not for every tier: use try_page_sources of support.node`);
}

loader.registerHooks?.({
  resolve(name, context, next) {
    refuse(name); // Also where it is not installed.
    const found = next(name, context);
    refuse(found.url);
    return found;
  },
});

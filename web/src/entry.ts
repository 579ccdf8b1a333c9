/**
 * One script for both threads: in a window it is the page, in a worker it reads and verifies.
 *
 * Every module is loaded in both. So no module of the page may touch the document before `startPage`.
 * The script has the modules in the order of these imports. The worker's come first: with the verifier in one piece, the
 * page packs better.
 */

import { startWorker } from "./worker/main.ts";
import { startPage } from "./app.tsx";

if (typeof document === "undefined") startWorker();
else startPage();

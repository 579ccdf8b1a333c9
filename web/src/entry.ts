/**
 * One script for both threads: in a window it is the page, in a worker it reads and verifies.
 *
 * Every module is loaded in both. So no module of the page may touch the document before `startPage`.
 */

import { startPage } from "./app.tsx";
import { startWorker } from "./worker/main.ts";

if (typeof document === "undefined") startWorker();
else startPage();

/** One script for both threads: in a window it is the page, in a worker it reads and verifies. */

if (typeof document === "undefined") void import("./worker/main.ts");
else void import("./app.tsx");

/** A check that was made for nothing has not passed, whatever its note says. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { CHECKS, Tally, conclude } from "../src/verify/verdict.ts";

test("a count of nothing does not pass", () => {
  for (const check of [...CHECKS, "approvals", "receipts", "gates", "page"]) {
    const tally = new Tally();
    tally.records = 1;
    tally.countDone(check, 0);
    tally.notes.set(check, "3 checked, 0 made again");
    assert.equal(conclude("nothing", tally).checks.find(({ name }) => name === check).status, "not_checked");
    tally.countDone(check, 1);
    assert.equal(conclude("one", tally).checks.find(({ name }) => name === check).status, "passed");
  }
});

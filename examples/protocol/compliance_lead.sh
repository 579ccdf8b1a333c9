#!/bin/sh
# Executor and critic do not agree about a claim. A compliance lead rules with her own key, and an outsider verifies it.
set -eu
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
export AVER_HOME="$stage/home"
cd "$stage"

mkdir shop
printf 'def total(prices):\n    return sum(prices)\n' > shop/shop.py
cat > shop/tests.py <<'PY'
from shop import total

print("1..1")
print("ok 1 - adds" if total([1, 2]) == 3 else "not ok 1 - adds")
PY
git -C shop init -q
git -C shop add .
git -C shop -c user.name=c -c user.email=c@example.org commit -qm "the shop"

# --- a critic of our own: approves the work, and then finds one test too few
cat > critic.py <<'PY'
import json
import sys

view = json.load(sys.stdin)


def say(event, payload, **refs):
    print(json.dumps({"event": event, "payload": payload, "refs": refs}))
    sys.exit()


for proposal in view["open"]["reviews"]:
    say("proposal_reviewed", {"verdict": "approved", "rationale": "tests only"}, proposal=proposal)
for intent in view["open"]["intent_reviews"]:
    say("intent_reviewed", {"verdict": "approved", "rationale": "as proposed"}, intent=intent)
if view["claims"] and not view["challenges"]:
    say("claim_challenged", {"reason": "one test proves little"}, claim=view["claims"][0]["id"])
PY
cat > task.toml <<'TOML'
objective = "The tests of the shop pass"
policy_profile = "strict"

[roles.planner]
role = "planner"
use = "checks"
options = {checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]}

[roles.worker]
role = "executor"
use = "checks"
options = {checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]}

[roles.critic]
role = "critic"
command = ["python3", "critic.py"]

[roles.auditor]
role = "auditor"
use = "checks"
TOML
# The run stops at the dispute, with exit code 3.
aver protocol run task.toml --workspace shop --trace release > run.txt 2> run.err || test $? -eq 3
tail -1 run.err

# --- the compliance lead: a key under a passphrase, enrolled as an approver
printf 'correct horse battery\n' > passphrase
aver keys new person:lead --passphrase-fd 3 3< passphrase > /dev/null
aver approvals enrol person:lead --passphrase-fd 3 3< passphrase > /dev/null
challenge=$(aver protocol view release --as critic --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["open"]["disputes"][0])')
aver protocol resolve release "$challenge" 2> /dev/null || test $? -eq 3
request=$(aver approvals list --json | python3 -c 'import json, sys
print(json.load(sys.stdin)["requests"][0]["request"])')
aver approvals approve "$request" --as person:lead --because "one test is enough for this change" --yes \
    --passphrase-fd 3 3< passphrase > /dev/null
aver protocol resolve release "$challenge"
aver protocol resume release

# --- an outsider, with the export and the keys, and no ledger of ours
aver export --out bundle protocol.release > /dev/null 2> export.err  # The approvals go along: a person has ruled.
aver keys export --out keys.json ledger agent:planner agent:worker agent:critic agent:auditor person:lead > /dev/null
AVER_HOME="$stage/outsider" aver verify bundle --key keys.json > verdict.txt || true
head -1 verdict.txt

#!/bin/sh
# An operator's run is killed while a check runs. Nothing is lost, and nothing is run twice unnoticed.
set -eu
stage=$(mktemp -d)
trap 'touch "$stage/shop/ready"; rm -rf "$stage"' EXIT
export AVER_HOME="$stage/home"
cd "$stage"

# --- a repository with one failing test, which takes its time until the file `ready` is there
mkdir shop
printf 'def total(prices):\n    return sum(prices[1:])\n' > shop/shop.py
cat > shop/tests.py <<'PY'
import time
from pathlib import Path

from shop import total

for _ in range(600):
    if Path("ready").exists():
        break
    time.sleep(0.1)
print("1..2")
print("ok 1 - nothing" if total([]) == 0 else "not ok 1 - nothing")
print("ok 2 - adds" if total([1, 2]) == 3 else "not ok 2 - adds")
raise SystemExit(1)
PY
printf '__pycache__/\nready\n' > shop/.gitignore
git -C shop init -q
git -C shop add .
git -C shop -c user.name=o -c user.email=o@example.org commit -qm "the shop"

cat > task.toml <<'TOML'
objective = "The tests of the shop pass"

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
use = "checks"
options = {checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]}

[roles.auditor]
role = "auditor"
use = "checks"
TOML

# --- begin, and kill the run as soon as the check has started
aver protocol run task.toml --workspace shop --trace nightly > first.txt 2> first.err &
run=$!
until aver log protocol.nightly 2> /dev/null | grep -q tool_execution_started; do sleep 0.2; done
kill -9 "$run"
wait "$run" 2> /dev/null || true
echo "killed in the state: $(aver protocol list | awk '{print $4}')"
touch shop/ready

# --- go on: the lost call is marked as unknown, and tried again with a new intent
aver protocol resume nightly
aver verify nightly > verdict.txt
head -1 verdict.txt

#!/bin/sh
# A reviewer wants to know what a range of commits does, and be able to show it later.
set -eu
stage=$(mktemp -d)
trap 'rm -rf "$stage"' EXIT
export AVER_HOME="$stage/home"
cd "$stage"

# --- a repository whose last commit adds a feature, a test, and by mistake a token
mkdir shop
commit() { git -C shop add . && git -C shop -c user.name=r -c user.email=r@example.org commit -qm "$1"; }
git -C shop init -q
printf 'def total(prices):\n    return sum(prices)\n' > shop/shop.py
cat > shop/tests.py <<'PY'
from shop import total

print("1..1")
print("ok 1 - adds" if total([1, 2]) == 3 else "not ok 1 - adds")
PY
commit "the shop"
printf 'def total(prices, discount=0):\n    return sum(prices) - discount\n' > shop/shop.py
printf 'PAYMENT_TOKEN = "%s_%s"\n' ghp 0123456789abcdefghijklmnopqrstuvwxyz > shop/settings.py
commit "a discount"

# --- the task: review the last commit, then run the tests
cat > task.toml <<'TOML'
objective = "Is the discount fit to be released?"

[roles.planner]
role = "planner"
use = "review"
options = {range = "HEAD~1..HEAD", checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]}

[roles.worker]
role = "executor"
use = "review"
options = {range = "HEAD~1..HEAD", checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]}

[roles.critic]
role = "critic"
use = "review"
options = {range = "HEAD~1..HEAD", checks = [{name = "unit", argv = ["python3", "tests.py"], report = "tap"}]}

[roles.auditor]
role = "auditor"
use = "review"
TOML
aver protocol run task.toml --workspace shop --trace review

# The critic approved the review on the condition that no secret is added. That condition is not met: the audit warns.
# A stricter profile makes it a failure.
echo
if aver protocol audit review --profile strict > strict.txt; then echo "strict: pass"; else echo "strict: fail"; fi
aver show review --html review.html

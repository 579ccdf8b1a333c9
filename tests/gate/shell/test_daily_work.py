"""Daily work that is not asked about, class by class, and beside each class what looks like it and is asked about."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.judged_commands import judge, list_asking, list_passing, write_files

NUMBERS_PASS = (
    'for n in 175 307; do sed -n "$((n - 4)),$((n + 1))p" src/a.py; done',
    'n=3; sed -n "$((n))p;$((n + 2))q" src/a.py',
    'for n in 1 2; do sed -n "${n}p" src/a.py; done',
    'n=2; sed "$((n))d" notes.txt',
)
NUMBERS_ASK = (
    'n=1; sed -n "$((n))w src/b.py" src/a.py',
    'n=1; sed "s/a/$((n))/e" src/a.py',
    'n=1; sed "$((n))e id" src/a.py',
    'n=1; sed "$((n))r .env" src/a.py',
    'n=1; sed -n "$((n))$X" src/a.py',
    'sed -n "$((n))p" src/a.py',
    'n=$(cat notes.txt); sed -n "$((n))p" src/a.py',
    'for n in 1 "1w src/b.py"; do sed -n "$n" src/a.py; done',
    'for n in p "e id"; do sed "1$n" src/a.py; done',
    'n=1; sed -n "$((n))p" $FILE',
    'n=1; sed -i "$((n))d" src/a.py src/big.py',
    'n=1; awk "NR==$((n)) { system(\\"id\\") }" src/a.py',
)

LISTED_PASS = (
    "find ./src -type f | sort | xargs awk 'ENDFILE {print FILENAME}'",
    "find . -name '*.py' -print0 | xargs -0 sed -n 1p",
    "find . -name '*.py' -exec grep -l 'import os' {} + | xargs grep -l 'system'",
    "find src -name '*.py' -exec grep -il foo {} \\; | xargs wc -l",
)
LISTED_ASK = (
    "find . | xargs sed -n 1p",  # A file may be called `x -e 1eid`.
    "find . | xargs -I{} sed -n 1p {}",
    "find . | xargs -d '\\n' sed -n 1p",
    "find . | xargs sed -i 's/a/b/'",
    "find . | xargs sed -n '1w src/b.py'",
    "find . | xargs awk '{print > \"src/b.py\"}'",
    "find . -print0 | xargs -0 awk 'BEGIN {system(\"id\")}'",
    "ls | xargs awk '{print}'",  # A file may be called `-f`.
    "cat notes.txt | xargs awk '{print}'",
    "find . | xargs awk",
    "find . | xargs awk -F :",
    "find . | xargs awk -f",
    "find . | xargs sed -f",
    "find $X | xargs awk '{print}'",
    "find ~/.ssh | xargs awk '{print}'",
    "find . -exec grep -l foo {} + | xargs rm",
    "find . -exec grep -rl foo /etc {} + | xargs cat",
    "find . -exec grep -l -f x {} + -exec rm {} +",
    "find . -exec sh -c 'echo /etc/shadow' {} + | xargs cat",
    "find . -printf '/etc/%p' | xargs sed p",
    "find -name .env | xargs sed p",
)

AROUND_PASS = ("cd .. && git log --oneline -5", "cd .. && git diff main...HEAD -- shop/src", "cd .. && git status")
AROUND_ASK = (
    "cd ../other && git status",
    "git -C ../other log",
    "cd .. && git -C other diff",
    "cd .. && git --git-dir=other/.git status",
    "cd .. && git commit -am x",
    "cd .. && git checkout -- .",
    "cd .. && git stash",
    "cd .. && git config core.fsmonitor ./x",
    "cd .. && git clean -fd",
    "cd .. && git reset --hard",
    "cd /tmp && git status",
    "cd / && git status",
    "cd ~ && git log",
    "cd $X && git status",
)

SERVERS_PASS = (
    "npm run dev",
    "yarn dev",
    "pnpm watch:css",
    "vite",
    "vite --force",
    "vite --config ./vite.config.js dev",
    "vite preview",
    "npm run generate",
    "make proto",
)
SERVERS_ASK = (
    "npm run dev -- --host",
    "npm run dev -- --host=0.0.0.0",
    "npm run dev -- -H 0.0.0.0",
    "yarn dev --host",
    "pnpm dev --exec id",
    "npm run dev -- --inspect=0.0.0.0",
    "vite --host",
    "vite --host 0.0.0.0",
    "vite --open",
    "vite --config /tmp/x.js",
    "vite ../other",
    "next dev -H 0.0.0.0",
    "npm run dev:reset-db",
    "npm run deploy:dev",
    "npm run publish-preview",
    "npm start",
    "make dev",
    "make watch",
    "HUSKY=0 npm run dev",
    "NODE_OPTIONS=--require=./x.js npm run dev",
    "npm --prefix /tmp/x run dev",
)

NAMES_PASS = (
    "WORKER_MODE=inline npm test",
    "cross-env PULL_REQUEST=true yarn build",
    "TEST_WORKERS=4 make test",
    "BUILD_MODE=strict npm run build",
    "HEADLESS=1 pytest",
)
NAMES_ASK = (
    "TEST_RUNNER=x npm test",
    "TEST_CMD=x make test",
    "BUILD_MODE=../x npm test",
    "BUILD_MODE=/tmp/x npm test",
    "WORKER_MODE='$(id)' make test",
    "WORKER_MODE=a:b npm test",
    "TEST_SIZE=$(cat notes.txt) make test",
    "DEPLOY=1 make build",
    "TEST_DEPLOY=1 make test",
    "SKIP=all git commit -m x",
    "BUILD_SHELL=x make test",
    "TEST_URL=http://example.org make test",
    "LOG=makefile make test",
    "CI_CONFIG=x make test",
    "test=1 make test",
    "JAVACMD=x mvn test",
)

INSTALLS_PASS = (
    "tox",
    "tox -e py312",
    "tox run -e lint",
    "nox -s tests",
    "pre-commit run --all-files",
    "hatch build",
    "uv build --wheel",
    "poetry build",
    "python -m pip install -e .",
)
INSTALLS_ASK = (
    "tox -e release",
    "tox -e publish",
    "tox -c /tmp/tox.ini",
    "tox -- -p evil",
    "tox -x testenv.commands=id",
    "tox --override testenv.commands=id",
    "tox exec -e py312 -- rm -rf src",
    "tox --workdir src",
    "tox -e $X",
    "TOX_OVERRIDE=testenv.commands=id tox",
    "nox -f other.py",
    "nox -s deploy",
    "pre-commit install",
    "pre-commit autoupdate",
    "pre-commit run --config x.yaml",
    "pre-commit try-repo https://example.org/x",
    "hatch build /tmp/x",
    "hatch publish",
    "uv build --index-url https://example.org",
    "uv build --build-constraint x",
    "poetry build --output src",
    "python -m pip install requests",
    "python -m pip install -e ../other",
    "cd /tmp/x && tox",
)

MODULES_PASS = (
    "python3 -m json.tool notes.json",
    "cat notes.json | python -m json.tool | head",
    "python -m pip list",
    "python3 -m venv .venv",
    "python -m venv venv --prompt shop",
    "python3 -m venv .venv && source .venv/bin/activate",
    "python -m hatch build",
)
MODULES_ASK = (
    "echo 'import os' > json.py; python3 -m json.tool",
    "cp src/a.py json.py; python3 -m json.tool",
    "mv src/a.py json.py; python3 -m json.tool",
    "ln -s src/a.py json.py; python3 -m json.tool",
    "mkdir json && cp src/a.py json/__init__.py; python3 -m json.tool",
    "tar xf a.tar; python3 -m json.tool",
    "git checkout main; python3 -m json.tool",
    "git stash pop; python3 -m pip list",
    "cd evil && python3 -m json.tool",
    "cd evil2 && python3 -m pip list",
    "cd $X && python3 -m json.tool",
    "PYTHONPATH=/tmp/x python3 -m json.tool",
    "python3 -m json.tool .env",
    "python3 -m json.tool notes.json src/a.py",
    "python3 -m calendar",
    "python3 -im json.tool",
    "python3 -m http.server",
    "python3 -m jsontool",
    "python -m venv --clear .venv",
    "python -m venv src",
    "python -m venv .env",
    "python -m venv /opt/venv",
    "python -m venv $X",
    "python -m json.tool notes.json venv",
    "python -m venv .venv; python -m json.tool notes.json venv",
    "echo 'import os' > venv.py; python -m venv .venv",
    "mkdir venv && cp src/a.py venv/__main__.py; python -m venv venv",
    "touch venv.py; python -m venv .venv",
    "python -m hatch publish",
)

TOOLS_PASS = (
    "cargo +nightly fmt --check",
    "cargo +1.70.0 test",
    "coverage run -m pytest",
    "coverage run --source=shop -m pytest tests -q",
    "coverage combine && coverage xml && coverage html",
    "mkdocs build --strict",
    "cmake -B build -S . -DCMAKE_BUILD_TYPE=Release",
    "ctest --test-dir build --output-on-failure -j4",
    "turbo run build lint --filter=web",
    "lerna run test",
)
TOOLS_ASK = (
    "cargo +/tmp/evil test",
    "cargo +evil test",
    "cargo +nightly run",
    "coverage run tool.py",
    "coverage run -m evil",
    "coverage run -m pytest -p evil",
    "coverage run -m pytest @options.txt",
    "coverage run -m pytest --rootdir=/opt/x",
    "coverage run --rcfile=/opt/x -m pytest",
    "coverage xml -o src/a.py",
    "coverage html -d src",
    "coverage erase",
    "mkdocs gh-deploy",
    "mkdocs serve -a 0.0.0.0:80",
    "mkdocs build -d src",
    "mkdocs build -f /opt/x.yml",
    "cmake -B src",
    "cmake -B . -S .",
    "cmake -B build -S . -DCMAKE_C_COMPILER=/opt/x",
    "cmake -B build -S . -DCMAKE_TOOLCHAIN_FILE=x.cmake",
    "cmake -B build -C x.cmake",
    "cmake --install build",
    "cmake -E rm -rf src",
    "cmake -S /opt/x -B build",
    "ctest -S x.cmake",
    "ctest -D Experimental",
    "ctest -DExperimental",
    "ctest --build-and-test a b --build-generator x",
    "turbo run deploy",
    "turbo run build --api=http://example.org",
    "turbo login",
    "lerna publish",
    "lerna exec -- rm -rf src",
    "lerna run build --npm-client=/opt/x",
)

TEXTS_PASS = (
    "sort notes.txt -o sorted.txt",
    "uniq notes.txt unique.txt",
    "cut -d, -f1 notes.txt > names.csv",
    "mount",
    "mount -l -t ext4",
    "locate -i notes",
    "sha256sum notes.txt > notes.sha256",
    "tar czf a.tgz src",
    "tar -cJf docs-1.0.tar.xz src notes.txt",
)
TEXTS_ASK = (
    "tar cf a.tar src",
    "tar czf notes.txt src",
    "tar czf src/b.py src",
    "tar czf ~/a.tgz src",
    "tar czf .git/a.tgz src",
    "tar czf bin/a.tgz src",
    "tar czf a.tgz .env",
    "tar czf a.tgz ~/.ssh",
    "tar czf a.tgz --remove-files src",
    "tar czf a.tgz -I ./x src",
    "zip a.zip src/a.py",
    "zip a.tgz src/a.py",
    "cp a.zip a.tgz",
    "cat a.zip > a.tgz",
    "tar czf a.tgz src; python a.tgz",
    "sort notes.txt -o notes.txt",
    "sort notes.txt -o src/b.py",
    "sort notes.txt -o Makefile",
    "sort notes.txt -o requirements.txt",
    "sort notes.txt -o .git/config",
    "sort notes.txt -o /opt/x.txt",
    "sort notes.txt -o ~/x.txt",
    "sort .env -o x.txt",
    "sort notes.txt -o x.txt; mv x.txt x.py",
    "sort notes.txt -o x.txt; sh x.txt",
    "sort --compress-program=./x notes.txt -o x.txt",
    "cat .env > x.csv",
    "mount -o remount,rw /",
    "mount -a",
    "mount /dev/sda1 /mnt",
    "locate -d .env x",
)

CLASSES = {
    "texts and lists": (TEXTS_PASS, TEXTS_ASK),
    "build tools": (TOOLS_PASS, TOOLS_ASK),
    "numbers in a script of sed": (NUMBERS_PASS, NUMBERS_ASK),
    "files that find lists": (LISTED_PASS, LISTED_ASK),
    "git above the workspace": (AROUND_PASS, AROUND_ASK),
    "development servers": (SERVERS_PASS, SERVERS_ASK),
    "plain names before a build": (NAMES_PASS, NAMES_ASK),
    "installs that settings of the workspace name": (INSTALLS_PASS, INSTALLS_ASK),
    "modules of Python": (MODULES_PASS, MODULES_ASK),
}


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("work") / "shop"
    write_files(
        place,
        {
            "src/a.py": "x = 1\n",
            "src/big.py": "".join(f"value_{number} = {number}\n" for number in range(200)),
            "notes.txt": "hello\n",
            "notes.json": "{}\n",
            ".env": "TOKEN=1\n",
            "evil/json.py": "import os\n",
            "evil2/pip/__init__.py": "import os\n",
        },
    )
    return place


@pytest.mark.parametrize("name", CLASSES)
def test_it_passes(name: str, workspace: Path) -> None:
    place: Path | str = "/home/me/work/shop" if name == "git above the workspace" else workspace
    assert list_asking(CLASSES[name][0], place) == []


@pytest.mark.sample(4)
@pytest.mark.parametrize("name", CLASSES)
def test_its_relatives_ask(name: str, workspace: Path) -> None:
    place: Path | str = "/home/me/work/shop" if name == "git above the workspace" else workspace
    assert list_passing(CLASSES[name][1], place) == []


def test_git_above_a_workspace_in_a_temporary_directory_asks() -> None:
    """Anybody may put a repository there."""
    assert list_passing(AROUND_PASS, "/tmp/x/shop") == []


def test_code_that_nobody_saw_does_not_run_by_them(workspace: Path) -> None:
    write_files(workspace, {"src/evil.py": "import os\nos.system('id')\n"})
    unseen = (str(workspace / "src/evil.py"),)
    for command in (*SERVERS_PASS, *INSTALLS_PASS, *MODULES_PASS, *TOOLS_PASS[1:], "curl -s localhost:3000"):
        assert judge(command, workspace, unseen=unseen).decision != "pass", command

"""Paths that known programs print: reading there passes, and an empty or another output is thought of."""

from __future__ import annotations

from support.judged_commands import list_asking, list_passing
from support.shell_corpus import WORKSPACE


def test_reading_an_installed_program_or_library_passes() -> None:
    commands = (
        "cat $(which go)",
        'file "$(command -v python3)"',
        "head -1 `which pip`",
        "M=$(go env GOMODCACHE)/example.org/x@v1.2.0 && sed -n '1,5p' $M/cmd/root.go && grep -n y $M/go.mod",
        'd=$(go list -m -f "{{.Dir}}" example.org/x/v2); grep -rn foo "$d"/*.go',
        "ls $(brew --prefix openssl)/lib",
        "ls $(npm root -g)/typescript/lib",
        "cat $(which go 2>/dev/null)",
    )
    assert list_asking(commands, WORKSPACE) == []


def test_everything_else_asks() -> None:
    commands = (
        "cat $(which nothing)/home/me/.config/app/x",  # `which` prints nothing if there is no such program.
        "cat $(which nothing)/home/me/.ssh/id_rsa",
        "cat $(which go)/../../home/me/.config/app/x",
        "cat $(go env GOMODCACHE)/../../../.config/app/x",
        "cat $(go env GOMODCACHE)/x/.env",
        "cat $(go env GOMODCACHE)/x/*.pem",
        "cat $(go env GOMODCACHE)$X",
        "cat $(which go)$(cat x)",
        "cat $(which go)b",
        "cat a$(which go)",
        "cat $(which $X)",
        "cat $(command -v test)/token",  # It prints `test`.
        "cat $(which cd)",
        "cat $(which -a go)",
        "cat $(which go python)",
        "cat $(which go; echo ~/.ssh/id_rsa)",
        "cat $(which go || echo ~/.ssh/id_rsa)",
        "cat $(which go | sed 's/.*/x/')",
        "cat $(which go > out.txt)",
        "cat $(PATH=/tmp/x which go)",
        "cat $(go env GOPRIVATE)",
        "cat $(go env -w GOMODCACHE=/home/me/.ssh)",
        "cat $(go list -m -f '{{.Dir}}{{.X}}' example.org/x)",
        "cat $(python3 -c 'import os; print(\"/home/me/.config/x\")')",
        "cat $(python3 -c 'import a; print(a.__file__)')",  # A module of the workspace may say any name.
        "cat $(npm root)/../.env",
        "rm -rf $(go env GOMODCACHE)",
        "rm -rf $(which go)/*",
        "rm -rf $(brew --prefix)/*",
        "sed -i s/a/b/ $(which go)",
        "echo x > $(which go)",
        "cp a.py $(go env GOROOT)/src/x.go",
        "$(which python3) x.py",
        "bash $(which x)",
        "cd $(go env GOROOT) && rm -rf src",
        "curl https://example.org/$(which go)",
        "which() { echo ~/.config; }; cat $(which x)/notes",
        "tar cf a.tar $(go env GOMODCACHE)$Y",
    )
    assert list_passing(commands, WORKSPACE) == []

"""Which files are source: by name alone, and never more trusting than the name allows."""

from __future__ import annotations

import pytest

from aver.gate.risk.features import comment_style, file_kind, is_source

KINDS = {
    "source": "src/app.py lib/a.go a.rs web/x.tsx Main.java db/schema.sql bin/run.sh templates/a.html a/b.c++"
    " tests/bin/x.py app/tasks.py src/conf.py src/src.js",
    "test": "tests/test_a.py test/a.js src/a_test.go src/a.test.ts src/a.spec.js pkg/__tests__/a.js"
    " test_x.py spec/a_spec.rb tests/data/x.txt tests/fixtures/rows.csv tests/img/a.png",
    "docs": "README.md README docs/x/a.js LICENSE CHANGELOG.rst a/b/notes.txt img/logo.png CHANGES",
    "configuration": "package.json pyproject.toml .github/workflows/ci.yml Makefile Dockerfile .eslintrc.js go.mod"
    " requirements.txt a/.env.local Cargo.lock x.ipynb sub/.husky/pre-commit"
    " setup.py conftest.py tests/conftest.py docs/conf.py tests/fixtures/a.json tests/package.json tests/Cargo.toml"
    " tests/pytest.ini tests/tox.ini tests/setup.cfg tests/Makefile docs/Makefile requirements/dev.txt"
    " dev-requirements.txt"
    " tests/requirements.txt constraints/base.in build.rs crates/a/build.rs build.gradle app/build.gradle.kts"
    " vite.config.ts jest.config.js karma.conf.js jest.setup.ts noxfile.py tasks.py docs/x.yaml tests/a.snap x.pth",
    "vendored": "vendor/a.go node_modules/x/index.js third_party/z.c static/jquery.min.js api/x_pb2.py dist/app.js",
    "unknown": "bin/tool data.xyz run tests/data/x.bin tests/venv/bin/activate tests/e.git/HEAD tests/e.git/config"
    " tests/e.git/hooks/a.py docs/run tests/HEAD a/b/c.unheard ../app.py src/../../etc/x.py /etc/x.py a\x00.py a\nb.py",
}


@pytest.mark.parametrize(("path", "kind"), [(path, kind) for kind, paths in KINDS.items() for path in paths.split(" ")])
def test_kinds(path: str, kind: str) -> None:
    assert file_kind(path) == kind
    assert is_source(path) == (kind == "source")


def test_no_name_at_all() -> None:
    assert file_kind("") == "unknown"
    assert file_kind("/") == "unknown"


def test_case_and_backslashes_make_no_difference() -> None:
    assert file_kind("SRC\\App.PY") == "source"
    assert file_kind("Tests\\App.py") == "test"


def test_a_name_that_only_contains_a_test_word_is_source() -> None:
    for path in ("src/contest.py", "src/latest/app.py", "src/testing.py", "src/docs/app.py", "src/inspector.py"):
        assert file_kind(path) == "source"


def test_comment_styles() -> None:
    styles = {path: comment_style(path) for path in ("a.py", "a.go", "a.sql", "a.el", "a.erl", "a.html", "a.php")}
    assert list(styles.values()) == ["hash", "slash", "dash", "semicolon", "percent", "markup", "hash and slash"]

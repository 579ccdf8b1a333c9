"""Where paths lie, by their letters alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver.agents.registry import load_known_agents
from aver.gate.effects.known_agents import GUARDED_CLASSES, GUARDED_PATTERNS, GUARDED_SUFFIXES
from aver.gate.effects.paths import (
    PATH_MAX,
    UNKNOWN_LOCATION,
    PathRoots,
    PathZone,
    build_path_roots,
    has_root_inside,
    locate_path,
)

GROUND = PathRoots(workspace="/work/shop", home="/home/me", own=("/srv/aver-home", "/srv/books.db"))
CWD = "/work/shop"


@pytest.mark.parametrize(
    ("path", "whole", "where"),
    [
        ("a.py", "/work/shop/a.py", "workspace"),
        ("./a.py", "/work/shop/a.py", "workspace"),
        (".", "/work/shop", "workspace"),
        ("src/../a.py", "/work/shop/a.py", "workspace"),
        ("src//./a.py/", "/work/shop/src/a.py", "workspace"),
        ("/work/shop", "/work/shop", "workspace"),
        ("/work/shop/", "/work/shop", "workspace"),
        ("//work//shop//a", "/work/shop/a", "workspace"),
        ("..", "/work", "outside"),
        ("../shop", "/work/shop", "workspace"),
        ("../shop2", "/work/shop2", "outside"),
        ("/work/shop2/a", "/work/shop2/a", "outside"),
        ("/work/shopping", "/work/shopping", "outside"),
        ("/WORK/shop/a", "/WORK/shop/a", "outside"),
        ("../../../../etc/passwd", "/etc/passwd", "outside"),
        ("~", "/home/me", "private"),
        ("~/a", "/home/me/a", "outside"),
        ("~/../../work/shop/a", "/work/shop/a", "workspace"),
        ("~you/a", "/home/you/a", "private"),
        ("/tmp/a", "/tmp/a", "temporary"),
        ("/tmp/../etc/a", "/etc/a", "outside"),
        ("/tmpfile", "/tmpfile", "outside"),
        ("/proc/self/root/work/shop/a", "/work/shop/a", "workspace"),
        ("/proc/1/root/proc/self/root/etc/a", "/etc/a", "outside"),
        ("/proc/self/task/7/root/etc/a", "/etc/a", "outside"),
        ("src/*.py", "/work/shop/src/*.py", "workspace"),
        ("*/../../x", "/work/x", "outside"),
    ],
)
def test_a_path_is_placed(path: str, whole: str, where: str) -> None:
    place = locate_path(path, CWD, GROUND)
    assert (place.path, place.where) == (whole, where)


@pytest.mark.parametrize("path", ["", "a\0b", "a/" * PATH_MAX, "/proc/self/cwd/a", ".*/a", ".?/a"])
def test_what_cannot_be_placed_is_unknown(path: str) -> None:
    assert locate_path(path, CWD, GROUND).where == "unknown"


def test_without_a_directory_only_whole_paths_are_placed() -> None:
    assert locate_path("a", None, GROUND).where == "unknown"
    assert locate_path(".env", None, GROUND).classes == {"secret"}
    assert locate_path("/work/shop/a", None, GROUND).where == "workspace"


def test_without_a_workspace_or_home_nothing_is_inside() -> None:
    nowhere = PathRoots()
    assert locate_path("/work/shop/a", "/work/shop", nowhere).where == "outside"
    assert locate_path("~/.ssh/id_rsa", "/work", nowhere).classes == {"secret"}
    assert locate_path("~/x", "/~", PathRoots(workspace="/work")).where == "private"


@pytest.mark.parametrize(
    ("path", "classes"),
    [
        (".env", {"secret"}),
        (".env.production", {"secret"}),
        ("config/prod.env", {"secret"}),
        (".env.example", set()),
        ("~/.ssh/id_ed25519", {"secret"}),
        ("~/.ssh/id_ed25519.pub", set()),
        ("~/.ssh", {"secret"}),
        ("~/.ssh/authorized_keys", {"secret", "startup"}),
        ("~/.aws/credentials", {"secret"}),
        ("certs/server.pem", {"secret"}),
        ("~/.config/gh/hosts.yml", {"secret"}),
        ("/etc/shadow", {"secret", "system"}),
        ("/proc/1/environ", {"secret", "system"}),
        ("~/.zsh_history", {"secret"}),
        (".git", {"git"}),
        (".git/HEAD", {"git"}),
        (".git/hooks/pre-commit", {"git", "hooks"}),
        (".git/hooks/pre-commit.sample", {"git"}),
        (".git/config", {"git", "hooks"}),
        ("sub/.git/hooks/x", {"git", "hooks"}),
        (".husky/pre-push", {"hooks"}),
        (".pre-commit-config.yaml", {"hooks"}),
        (".github/workflows/ci.yml", {"ci"}),
        (".gitlab-ci.yml", {"ci"}),
        ("Jenkinsfile", {"ci"}),
        (".claude/settings.json", {"agent-config"}),
        ("CLAUDE.md", {"agent-config"}),
        (".cursor/mcp.json", {"agent-config"}),
        (".mcp.json", {"agent-config"}),
        ("AGENTS.md", {"agent-config"}),
        ("~/.bashrc", {"startup"}),
        ("~/.config/fish/config.fish", {"startup"}),
        ("~/.config/systemd/user/x.service", {"startup"}),
        ("~/Library/LaunchAgents/x.plist", {"startup"}),
        ("lib/site-packages/x.pth", {"startup"}),
        ("/etc/hosts", {"system"}),
        ("/usr/bin/ls", {"system"}),
        ("/*", {"system"}),
        ("/", {"system"}),
        ("/dev/sda", {"device"}),
        ("/dev/null", set()),
        ("~/.aver/config.toml", {"aver"}),
        ("/srv/aver-home/keys/x", {"aver", "system"}),
        ("/srv/books.db", {"aver", "system"}),
        ("/srv/books.db.lock", {"aver", "system"}),
        ("/srv/books.db-wal", {"aver", "system"}),
        ("src/identity.py", set()),
        ("src/keys.py", set()),
        ("src/git/hooks.py", set()),
        ("docs/environment.md", set()),
        ("secret_santa.py", set()),
        ("tests/test_env.py", set()),
    ],
)
def test_a_path_is_guarded_by_its_names(path: str, classes: set[str]) -> None:
    assert locate_path(path, CWD, GROUND).classes == classes


@pytest.mark.parametrize(
    "path",
    [
        ".ENV",
        ".Env",
        ".env.",
        ".env ",
        ".env/",
        "./.env",
        "a/../.env",
        ".en\u200bv",
        ".e\u00adnv",
        ".\uff45nv",
        ".env::$DATA",
        ".e*",
        ".en?",
        ".[e]nv",
        ".env*",
    ],
)
def test_another_spelling_of_a_guarded_name_is_the_same(path: str) -> None:
    assert "secret" in locate_path(path, CWD, GROUND).classes


@pytest.mark.parametrize("path", ["*", "src/*", "*.py", "**/*.ts", "?", "[a-z]*.txt"])
def test_a_pattern_that_may_match_anything_tells_nothing(path: str) -> None:
    assert locate_path(path, CWD, GROUND).classes == frozenset()


def test_inside_a_system_directory_the_workspace_is_still_the_workspace() -> None:
    place = locate_path("a.py", "/usr/src/app", PathRoots(workspace="/usr/src/app"))
    assert (place.where, place.classes) == ("workspace", frozenset())


def test_settings_may_be_read_and_secrets_may_not() -> None:
    assert locate_path(".claude/settings.json", CWD, GROUND).classes_for("read") == frozenset()
    assert locate_path(".git/config", CWD, GROUND).classes_for("read") == frozenset()
    assert locate_path(".env", CWD, GROUND).classes_for("read") == {"secret"}
    assert locate_path(".git/config", CWD, GROUND).classes_for("write") == {"git", "hooks"}


@pytest.mark.parametrize("path", ["/", "/work", "/work/shop", ".", "./*", "..", "~", "/home", "/*", "~/*"])
def test_what_holds_everything_is_known(path: str) -> None:
    assert has_root_inside(locate_path(path, CWD, GROUND), GROUND)


@pytest.mark.parametrize("path", ["src", "src/*", "/work/other", "/tmp", "*.py"])
def test_what_does_not_is_not(path: str) -> None:
    assert not has_root_inside(locate_path(path, CWD, GROUND), GROUND)


def test_the_ground_comes_from_the_environment_that_is_given() -> None:
    ground = build_path_roots("/w/", {"HOME": "/h", "AVER_HOME": "/a", "AVER_LEDGER": "sqlite:////l/x.db"})
    assert ground == PathRoots(workspace="/w", home="/h", own=("/a", "/l/x.db"))
    assert build_path_roots("w", {"HOME": "h"}) == PathRoots()
    assert build_path_roots("", None) == PathRoots()


def test_every_class_is_used_and_every_name_is_in_lower_case() -> None:
    known = load_known_agents()
    tables = (known.directories, known.files, known.pairs, GUARDED_PATTERNS, GUARDED_SUFFIXES)
    used = {kind for table in tables for kinds in table.values() for kind in kinds}
    assert used | {"system", "device", "root"} == set(GUARDED_CLASSES)
    assert [name for table in tables for name in table if name != name.lower() or name.split() != [name]] == []
    assert [name for name in known.pairs if name.count("/") != 1] == []
    assert [name for table in (known.directories, known.files) for name in table if "/" in name] == []


names = st.sampled_from(["a", "b", "..", ".", "", ".env", "src", "*", "~"]) | st.text(
    st.characters(exclude_characters="/\0", exclude_categories=("Cs",)), max_size=5
)


@given(st.lists(names, max_size=6).map("/".join), st.booleans())
def test_a_path_without_links_is_placed_where_it_is(text: str, is_whole: bool) -> None:
    path = f"/{text}" if is_whole else text
    if not path or path.startswith("~"):
        return
    place = locate_path(path, CWD, GROUND)
    expected = os.path.normpath(os.path.join(CWD, path)).replace("//", "/")
    if not expected.startswith("/proc/"):
        assert place.path == expected
        inside = Path(expected).is_relative_to(CWD)
        assert place.where == "unknown" or (place.where == "workspace") == inside


@given(st.text(max_size=40), st.none() | st.text(max_size=20))
def test_any_text_is_placed(path: str, cwd: str | None) -> None:
    place = locate_path(path, cwd, GROUND)
    assert place.where in get_args(PathZone)
    assert place.classes <= set(GUARDED_CLASSES)


def test_what_is_unknown_is_in_no_class() -> None:
    assert UNKNOWN_LOCATION.classes == frozenset()
    assert UNKNOWN_LOCATION.matters


@pytest.mark.parametrize("path", ["..\\..\\etc\\passwd", "C:\\Windows\\x", "\\\\host\\share", "src\\a.py"])
def test_a_backslash_may_be_a_slash(path: str) -> None:
    assert locate_path(path, "/work/shop", PathRoots(workspace="/work/shop")).where == "unknown"


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        (".git\\hooks\\pre-commit", "hooks"),
        ("src\\.env", "secret"),
        (".env:$DATA", "secret"),
        (".env::$DATA", "secret"),
        ("GIT~1/config", "git"),
    ],
)
def test_other_systems_names_for_guarded_things(path: str, kind: str) -> None:
    assert kind in locate_path(path, "/work/shop", PathRoots(workspace="/work/shop")).classes


@pytest.mark.parametrize(
    ("workspace", "path", "kind"),
    [
        ("/", "/etc/passwd", "system"),
        ("/etc", "/etc/cron.d/x", "startup"),
        ("/etc", "/etc/passwd", "system"),
        ("/etc/nginx", "/etc/nginx/a", "system"),
        ("/proc", "/proc/self/environ", "secret"),
        ("/var", "/var/spool/cron/x", "startup"),
        ("/usr", "/usr/bin/x", "system"),
    ],
)
def test_a_workspace_does_not_make_the_system_less(workspace: str, path: str, kind: str) -> None:
    assert kind in locate_path(path, None, PathRoots(workspace=workspace)).classes


@pytest.mark.parametrize("workspace", ["/usr/src/app", "/opt/shop", "/srv/shop", "/root/shop", "/var/www/shop", "/app"])
def test_a_workspace_may_lie_where_software_lies(workspace: str) -> None:
    place = locate_path("src/a.py", workspace, PathRoots(workspace=workspace))
    assert (place.where, place.classes) == ("workspace", frozenset())

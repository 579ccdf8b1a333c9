"""Policy bundles: taken whole or not at all, and named by a digest of all that decides."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.gate.policy.bundle import (
    FILE_BYTES_MAX,
    FILES_MAX,
    PARSED_STARTER,
    STARTER_DIRECTORY,
    build_policy_bundle,
    dump_parsed_bundle,
    load_policy_bundle,
    read_starter_files,
)
from aver.gate.policy.query import PolicyQuestion, Target, ask_policy

PERMIT = '@id("all") @reason("everything") permit (principal, action, resource);'


def written(directory: Path, **files: str) -> Path:
    for name, text in files.items():
        path = directory / f"{name}.cedar"
        path.write_text(text)
        path.chmod(0o600)
    return directory


def test_the_starter_set_is_a_bundle() -> None:
    bundle = load_policy_bundle()
    assert bundle.files.keys() == {path.name for path in STARTER_DIRECTORY.glob("*.cedar")}
    assert bundle.rules["workspace-reads"].effect == "permit"
    assert all(rule.reason for rule in bundle.rules.values())


def test_the_digest_names_every_byte_of_every_file(tmp_path: Path) -> None:
    first = load_policy_bundle(written(tmp_path, a=PERMIT)).digest
    assert load_policy_bundle(written(tmp_path, a=PERMIT)).digest == first
    assert load_policy_bundle(written(tmp_path, a=PERMIT + " ")).digest != first
    (tmp_path / "a.cedar").rename(tmp_path / "b.cedar")
    assert load_policy_bundle(written(tmp_path, b=PERMIT)).digest != first


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("permit (principal, action", "is not Cedar"),
        ("permit (principal, action, resource);", "has no @id"),
        ('@id("A b") @reason("x") permit (principal, action, resource);', "has no @id"),
        ('@id("x") permit (principal, action, resource);', "has no @reason"),
        ('@id("x") @reason(" ") permit (principal, action, resource);', "has no @reason"),
        (PERMIT + PERMIT, "unique"),
        ('@id("x") @reason("x") permit (principal == ?principal, action, resource);', "template"),
        ('@id("x") @reason("x") forbid (principal, action, resource) when { context.nope };', "schema"),
        ('@id("x") @reason("x") forbid (principal, action, resource) when { context.score > 1 };', "schema"),
        ('@id("x") @reason("x") forbid (principal, action, resource) when { context.risk > 1 };', "schema"),
        ('@id("x") @reason("x") permit (principal, action == Aver::Action::"fly", resource);', "schema"),
        ("", "without rules"),
        ("// nothing\n", "without rules"),
    ],
)
def test_what_could_fail_later_is_refused_at_load(text: str, words: str) -> None:
    """Cedar skips a rule that fails while it is evaluated, even a forbid: so none such is ever loaded."""
    with pytest.raises(BadInput, match=words):
        build_policy_bundle({"a.cedar": text})


def test_one_bad_file_takes_the_bundle_with_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        load_policy_bundle(written(tmp_path, a=PERMIT, b="nonsense"))


def test_a_file_that_others_may_write_is_refused(tmp_path: Path) -> None:
    written(tmp_path, a=PERMIT)
    (tmp_path / "a.cedar").chmod(0o622)
    with pytest.raises(Refused) as caught:
        load_policy_bundle(tmp_path)
    assert caught.value.code == "POLICY_WRITABLE"


def test_a_directory_that_others_may_write_is_refused(tmp_path: Path) -> None:
    """Whoever may add a file to it may add a rule."""
    directory = tmp_path / "rules"
    directory.mkdir()
    written(directory, a=PERMIT)
    directory.chmod(0o777)
    with pytest.raises(Refused) as caught:
        load_policy_bundle(directory)
    assert caught.value.code == "POLICY_WRITABLE"
    directory.chmod(0o755)
    assert load_policy_bundle(directory).rules


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("whose", ["file", "directory"])
def test_what_belongs_to_another_user_is_refused(tmp_path: Path, whose: str) -> None:
    directory = tmp_path / "rules"
    directory.mkdir()
    written(directory, a=PERMIT)
    os.chown(directory if whose == "directory" else directory / "a.cedar", 4711, 4711)
    with pytest.raises(Refused, match="belongs to another user"):
        load_policy_bundle(directory)


def test_rules_of_a_subdirectory_are_not_in_force(tmp_path: Path) -> None:
    written(tmp_path, a=PERMIT)
    (tmp_path / "optional").mkdir()
    written(tmp_path / "optional", b="nonsense")
    assert load_policy_bundle(tmp_path).files.keys() == {"a.cedar"}


def test_ten_megabytes_are_no_rules(tmp_path: Path) -> None:
    written(tmp_path, a=PERMIT + "\n" * 10_000_000)
    with pytest.raises(BadInput, match="has more than"):
        load_policy_bundle(tmp_path)


def test_more_files_than_people_write_are_refused(tmp_path: Path) -> None:
    for number in range(FILES_MAX + 1):
        written(tmp_path, **{f"f{number}": ""})
    with pytest.raises(BadInput, match="more than"):
        load_policy_bundle(tmp_path)


def test_links_pipes_and_floods_are_refused(tmp_path: Path) -> None:
    target = tmp_path / "elsewhere"
    target.write_text(PERMIT)
    (tmp_path / "a.cedar").symlink_to(target)
    with pytest.raises(Unavailable):
        load_policy_bundle(tmp_path)
    (tmp_path / "a.cedar").unlink()
    (tmp_path / "a.cedar").write_bytes(b"/" * (FILE_BYTES_MAX + 1))
    (tmp_path / "a.cedar").chmod(0o600)
    with pytest.raises(BadInput):
        load_policy_bundle(tmp_path)
    (tmp_path / "a.cedar").unlink()
    os.mkfifo(tmp_path / "a.cedar", 0o600)
    with pytest.raises(BadInput):
        load_policy_bundle(tmp_path)
    (tmp_path / "a.cedar").unlink()
    (tmp_path / "a.cedar").write_bytes(b"\xff")
    (tmp_path / "a.cedar").chmod(0o600)
    with pytest.raises(BadInput, match="UTF-8"):
        load_policy_bundle(tmp_path)


def test_a_directory_without_policies_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(NotFound):
        load_policy_bundle(tmp_path)
    with pytest.raises(NotFound):
        load_policy_bundle(tmp_path / "missing")


def test_the_starter_set_is_written_down_as_it_is() -> None:
    """If this fails: python -m aver.gate.policy."""
    assert PARSED_STARTER.read_bytes() == dump_parsed_bundle(read_starter_files())


def test_what_was_written_down_decides_as_its_texts_do() -> None:
    before, now = load_policy_bundle(), build_policy_bundle(read_starter_files())
    assert (before.digest, before.rules, before.looks_at) == (now.digest, now.rules, now.looks_at)
    for effects in ({"read"}, {"delete"}, {"egress", "secret"}, {"write"}):
        question = PolicyQuestion(
            agent="a", action="command", targets=(Target("Path", "x", "workspace"),), effects=frozenset(effects)
        )
        assert ask_policy(before, question) == ask_policy(now, question)

"""Packages of skills: what is read, what is refused, and what the digest stands for."""

from __future__ import annotations

import hashlib
import os
import stat
import zipfile
from pathlib import Path

import pytest

from aver.capsule.canonical import canonical_json
from aver.errors import AverError, BadInput, IntegrityError, NotFound
from aver.gateway.effect_settings import SkillSettings
from aver.gateway.skills import package as package_module
from aver.gateway.skills.package import digest_files, read_package
from aver.gateway.skills.skill_store import SkillStore


@pytest.fixture
def skill(tmp_path: Path) -> Path:
    source = tmp_path / "skill"
    (source / "tools").mkdir(parents=True)
    (source / "SKILL.md").write_text("# A skill\n")
    (source / "tools/run.py").write_text("print(1)\n")
    return source


def zip_of(path: Path, files: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return path


def test_the_digest_is_over_paths_and_contents(skill: Path) -> None:
    files = {"SKILL.md": b"# A skill\n", "tools/run.py": b"print(1)\n"}
    listed = {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}
    assert read_package(skill).digest == hashlib.sha256(canonical_json({"v": 1, "files": listed})).hexdigest()


def test_a_directory_and_its_zip_have_one_digest(skill: Path, tmp_path: Path) -> None:
    files = {"tools/run.py": b"print(1)\n", "SKILL.md": b"# A skill\n"}
    assert read_package(zip_of(tmp_path / "skill.zip", files)).digest == read_package(skill).digest


def test_two_packages_never_share_a_digest_by_moving_a_border() -> None:
    """A digest over `path LF content LF` alone would be the same for both."""
    assert digest_files({"a": b"x\nb\ny"}) != digest_files({"a": b"x", "b": b"y"})


@pytest.mark.parametrize("name", ["../out", "/etc/passwd", "a/../../b", "a\\b", "a//b", "./a", "x" * 600, "a\nb"])
def test_paths_that_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        read_package(zip_of(tmp_path / "bad.zip", {"SKILL.md": b"", name: b"x"}))


def test_a_link_in_a_directory(skill: Path) -> None:
    (skill / "link").symlink_to("/etc/passwd")
    with pytest.raises(BadInput):
        read_package(skill)
    (skill / "link").unlink()
    (skill / "folder").symlink_to("/etc")
    with pytest.raises(BadInput):
        read_package(skill)


def test_a_name_in_a_directory_that_is_not_utf_8(skill: Path) -> None:
    Path(os.fsdecode(os.fsencode(skill) + b"/\xff.md")).write_bytes(b"x")
    with pytest.raises(BadInput, match="cannot have the path"):
        read_package(skill)


def test_a_pipe_in_a_directory_does_not_block(skill: Path) -> None:
    os.mkfifo(skill / "pipe")
    with pytest.raises(BadInput):
        read_package(skill)


def test_a_link_in_a_zip(tmp_path: Path) -> None:
    path = zip_of(tmp_path / "link.zip", {"SKILL.md": b""})
    with zipfile.ZipFile(path, "a") as archive:
        entry = zipfile.ZipInfo("link")
        entry.external_attr = (stat.S_IFLNK | 0o777) << 16
        archive.writestr(entry, "/etc/passwd")
    with pytest.raises(BadInput):
        read_package(path)


def test_a_bomb(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(package_module, "BYTES_MAX", 1000)
    with pytest.raises(BadInput):
        read_package(zip_of(tmp_path / "bomb.zip", {"SKILL.md": b"\0" * 1_000_000}))
    monkeypatch.setattr(package_module, "FILES_MAX", 3)
    with pytest.raises(BadInput):
        read_package(zip_of(tmp_path / "many.zip", {"SKILL.md": b"", **{f"f{n}": b"" for n in range(9)}}))


@pytest.mark.parametrize("data", [b"", b"PK", b"PK\x03\x04" + b"x" * 100, b"no zip at all"])
def test_what_is_no_package(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "x.zip").write_bytes(data)
    with pytest.raises(BadInput):
        read_package(tmp_path / "x.zip")
    with pytest.raises(AverError):
        read_package(tmp_path / "missing")


@pytest.mark.parametrize("method", [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_zip_with_damaged_data(tmp_path: Path, method: int) -> None:
    path = tmp_path / "s.zip"
    content = os.urandom(3000)
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("SKILL.md", content)
    data = bytearray(path.read_bytes())
    refused = 0
    for place in range(38, 400):  # Behind the entry's own header, at which the data begins.
        changed = data[:place] + bytes([data[place] ^ 0xFF]) + data[place + 1 :]
        path.write_bytes(changed)
        try:
            assert read_package(path).files == {"SKILL.md": content}  # A byte that means nothing, such as a version.
        except BadInput:
            refused += 1
    assert refused > 350


@pytest.mark.parametrize("name", ["SKILL.md/run.py", "a" * 256, "\u00e9" * 128 + "/x"])
def test_paths_that_no_directory_can_have(tmp_path: Path, name: str) -> None:
    with pytest.raises(BadInput):
        read_package(zip_of(tmp_path / "s.zip", {"SKILL.md": b"#", name: b"x"}))


def test_a_directory_without_its_manifest(skill: Path) -> None:
    (skill / "SKILL.md").unlink()
    with pytest.raises(BadInput, match="no skill"):
        read_package(skill)


class TestStore:
    @pytest.fixture
    def store(self, tmp_path: Path) -> SkillStore:
        return SkillStore(tmp_path / "home", SkillSettings())

    def test_a_package_comes_in_and_is_installed(self, store: SkillStore, skill: Path) -> None:
        package = store.add(skill)
        assert store.add(skill).digest == package.digest
        assert store.list_packages() == [package.digest]
        place = store.install("notes", store.load(package.digest))
        assert read_package(place).digest == package.digest

    def test_a_new_version_takes_the_place_of_the_old_one(self, store: SkillStore, skill: Path) -> None:
        store.install("notes", store.add(skill))
        (skill / "tools/run.py").unlink()
        place = store.install("notes", store.add(skill))
        assert not (place / "tools").exists()

    def test_a_package_that_was_changed_is_found(self, store: SkillStore, skill: Path, tmp_path: Path) -> None:
        digest = store.add(skill).digest
        place = tmp_path / "home/gateway/skills/packages" / digest
        (place / "tools/run.py").write_text("print(2)\n")
        with pytest.raises(IntegrityError):
            store.load(digest)
        (place / "tools/run.py").unlink()
        (place / "tools/run.py").symlink_to("/etc/passwd")
        with pytest.raises(IntegrityError):
            store.load(digest)

    def test_a_package_that_never_came_in(self, store: SkillStore) -> None:
        with pytest.raises(NotFound):
            store.load("0" * 64)

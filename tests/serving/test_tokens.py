"""The token of a server: a file of its owner alone, made once, and one header of a request."""

from __future__ import annotations

import stat
import threading
from pathlib import Path

import pytest

from aver.errors import BadInput
from aver.serving.tokens import TOKEN_MAX, digest_token, find_bearer_token, is_same_token, read_token
from support.parts import PATIENCE


def test_the_token_is_its_owners_alone(tmp_path: Path) -> None:
    path = tmp_path / "link-token"
    token = read_token(path)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert len(token) >= 32
    assert read_token(path) == token
    path.chmod(0o644)
    with pytest.raises(BadInput, match="read by other users"):
        read_token(path)
    path.chmod(0o600)
    for content in ("short\n", "", "x" * (TOKEN_MAX + 1), "a token with blanks that is long enough", "é" * 40):
        path.write_text(content)
        with pytest.raises(BadInput, match="no token"):
            read_token(path)
    path.unlink()
    path.symlink_to("/etc/hostname")
    with pytest.raises(BadInput, match="cannot read"):
        read_token(path)


def test_servers_that_start_together_agree_on_one_token(tmp_path: Path) -> None:
    together = threading.Barrier(4, timeout=PATIENCE)

    def read(path: Path, found: list[str]) -> None:
        together.wait()
        found.append(read_token(path))

    for number in range(5):
        path, found = tmp_path / f"token-{number}", []
        threads = [threading.Thread(target=read, args=(path, found)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 4
        assert set(found) == {path.read_text().strip()}


def test_a_dangling_link_is_no_place_for_a_token(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BadInput, match="cannot read"):
        read_token(path)
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ([b"Bearer abc"], b"abc"),
        ([b"bearer  abc "], b"abc"),
        ([b"Bearer "], b""),
        ([b"Bearer"], b""),
        ([b"Basic abc"], None),
        ([b"abc"], None),
        ([b""], None),
        ([], None),
        ([b"Bearer abc", b"Bearer abc"], None),
    ],
)
def test_the_token_of_a_request(values: list[bytes], expected: bytes | None) -> None:
    assert find_bearer_token([(b"authorization", value) for value in values]) == expected


def test_only_the_same_token_is_the_same() -> None:
    assert is_same_token(b"abc", b"abc")
    assert not is_same_token(None, b"abc")
    assert not is_same_token(b"", b"abc")
    assert not is_same_token(b"abd", b"abc")
    assert digest_token("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"

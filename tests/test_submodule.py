"""One module of a package is loaded without the others, and the package stays as it was."""

from __future__ import annotations

import subprocess
import sys

import pytest

from aver.submodule import load_submodule


def test_only_this_module_is_loaded() -> None:
    script = """
import sys
from aver.submodule import load_submodule
load_submodule("nacl.bindings", "sodium_core").sodium_init()
made = load_submodule("nacl.bindings", "crypto_sign").crypto_sign_seed_keypair(bytes(32))
assert not [name for name in sys.modules if name.startswith("nacl.bindings")], sys.modules
import nacl.bindings
assert nacl.bindings.crypto_sign_seed_keypair(bytes(32)) == made
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_a_package_that_is_loaded_is_used_as_it_is() -> None:
    import nacl.bindings

    assert load_submodule("nacl.bindings", "crypto_sign") is sys.modules["nacl.bindings.crypto_sign"]
    assert nacl.bindings.crypto_sign is load_submodule("nacl.bindings", "crypto_sign").crypto_sign


@pytest.mark.parametrize(("package", "name"), [("nacl", "none_of_this_name"), ("none_of_this_name", "x")])
def test_what_is_not_there(package: str, name: str) -> None:
    with pytest.raises(ImportError):
        load_submodule(package, name)

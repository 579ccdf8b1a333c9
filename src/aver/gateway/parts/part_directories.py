"""A directory for each part of a gateway that runs apart, with exactly the keys that the part needs.

    AVER_HOME/gateway/
      program.json          the pinned program
      run/                  the sockets: policy0.sock policy1.sock executor.sock gateway.sock
      gateway/              policy-keys.json, link-token of its own clients, and the tokens that it shows to the parts:
                            policy0.token policy1.token executor.token
      policy0/              keyring.json and keys/: the Ed25519 key of policy:0, policy-0.mac, policy-shared.mac;
                            program.json, link-token
      policy1/              the same for policy server 1
      executor/             policy-keys.json, keys/policy-0.mac, keys/policy-1.mac, program.json, link-token

Directories have the mode 0700 and files 0600. `policy-keys.json` has the public keys of both servers. No part has the
private key of another one, and only the two servers have the key from which the masks of shares are made. Gateway and
executor also use the ledger, and thereby the ledger's own key.

The tokens are secrets between the gateway and one part. A part that runs as another user gets its directory moved into
that user's home: see `docs/gateway/deploying.md`.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from aver.capsule.json_document import dump_document
from aver.config import ensure_home
from aver.errors import BadInput, NotFound, Refused, Unavailable
from aver.files.atomic import make_directory, replace_file
from aver.files.regular import require_safe_directory
from aver.gate.ask import load_gate
from aver.gateway.attestation import POLICY_PURPOSE, PolicyKeys
from aver.gateway.evidence import SERVERS
from aver.gateway.parts.pinned_program import PROGRAM_FILE, PinnedProgram
from aver.gateway.settings import GatewaySettings
from aver.keys import KeyStore, RingEntry, build_key_export, read_keys
from aver.keys.mac_keys import SHARED, copy_mac_keys, create_mac_keys, mac_key_path
from aver.ledger import Ledger
from aver.serving.sockets import PartAddress, UnixAddress, parse_address
from aver.serving.tokens import read_token

GATEWAY, EXECUTOR = "gateway", "executor"
POLICY_PARTS = tuple(f"policy{server_id}" for server_id in SERVERS)
PARTS = (*POLICY_PARTS, EXECUTOR, GATEWAY)
"""All parts, in the order in which they start."""

LINK_TOKEN = "link-token"  # noqa: S105 - the name of the file that holds it
POLICY_KEYS_FILE = "policy-keys.json"


class PartDirectories:
    """The directories of one home. Creating this object opens no file."""

    def __init__(self, home: Path) -> None:
        self.root = home / "gateway"
        self.program_path = self.root / PROGRAM_FILE

    def of(self, part: str) -> Path:
        return self.root / part

    @property
    def are_made(self) -> bool:
        """Whether the parts of this home run apart. The program is written last, after all keys."""
        return self.program_path.exists()

    def find_address(self, part: str, settings: GatewaySettings) -> PartAddress:
        """Return where a part listens: as the settings say, else at its socket in `run/`. Raises `BadInput`."""
        given = str(getattr(settings, part, ""))
        if given.startswith(("http:", "unix:")):
            return parse_address(given)
        return UnixAddress((self.root / (given or f"run/{part}.sock")).absolute())


def make_part_directories(ledger: Ledger) -> PinnedProgram:
    """Make the directories and keys of all parts, and pin the present program. Returns the program.

    If this is interrupted, the next call goes on. `Refused` with `PARTS_EXIST` if all is there already.
    """
    directories = PartDirectories(ledger.config.home)
    if directories.are_made:
        raise Refused(
            "PARTS_EXIST", f"{directories.root} has its parts already", advice="to take new rules: aver gateway pin"
        )
    program = PinnedProgram.pin(load_gate(ledger.config, "", ledger=ledger))
    program.build_gate()  # The servers must be able to decide by it.
    ensure_home(ledger.config.home)
    for path in (directories.root, *(directories.of(name) for name in (*PARTS, "run"))):
        try:
            make_directory(path)
        except OSError as error:
            raise Unavailable(f"cannot create {path}: {error.strerror}") from error
        require_safe_directory(path)
    _make_mac_keys(directories)
    entries = [_make_policy_key(ledger, directories, server_id) for server_id in SERVERS]
    for part in (GATEWAY, EXECUTOR):
        replace_file(directories.of(part) / POLICY_KEYS_FILE, dump_document(build_key_export(entries)))
    for part in PARTS:
        token = read_token(directories.of(part) / LINK_TOKEN)
        if part != GATEWAY:
            replace_file(directories.of(GATEWAY) / f"{part}.token", f"{token}\n".encode("ascii"))
    install_program(directories, program)
    return program


def _make_mac_keys(directories: PartDirectories) -> None:
    for server_id in SERVERS:
        path = mac_key_path(directories.of(f"policy{server_id}"), server_id)
        with suppress(Refused):  # It is there already.
            create_mac_keys(path)
        copy_mac_keys(path, mac_key_path(directories.of(EXECUTOR), server_id))
    shared = mac_key_path(directories.of(POLICY_PARTS[0]), SHARED)
    with suppress(Refused):
        create_mac_keys(shared)
    copy_mac_keys(shared, mac_key_path(directories.of(POLICY_PARTS[1]), SHARED))


def _make_policy_key(ledger: Ledger, directories: PartDirectories, server_id: int) -> RingEntry:
    """Make the key of a policy server in its own directory, and register its public half in the ledger's ring."""
    identity, store = f"policy:{server_id}", KeyStore(directories.of(f"policy{server_id}"))
    store.create_if_absent(identity, post_quantum=False)
    entry = store.ring().active(identity)
    if entry is None:
        raise NotFound(f"{identity} has no active key in {store.home}", advice=f"remove {store.home} and start again")
    known = ledger.keys.ring().active(identity)
    if known is None or known.key != entry.key:
        if known is not None:
            # The key of a server that was in one process with the gateway. Its private half is destroyed.
            ledger.keys.retire(identity)
        return ledger.keys.register(identity, entry.key)
    return known


def install_program(directories: PartDirectories, program: PinnedProgram) -> None:
    """Give every part that needs it a copy of the program. The home's own copy comes last: it says that all is done."""
    for part in (*POLICY_PARTS, EXECUTOR):
        if directories.of(part).is_dir():  # A directory that was moved to another user is brought up to date there.
            program.write(directories.of(part) / PROGRAM_FILE)
    program.write(directories.program_path)


def read_policy_keys(directory: Path) -> PolicyKeys:
    """Read the public keys of both policy servers in a part's directory. Raises `BadInput` unless both are there."""
    path = directory / POLICY_KEYS_FILE
    require_safe_directory(directory)
    entries = [found for found in read_keys(path) if isinstance(found, RingEntry) and found.purpose == POLICY_PURPOSE]
    keys = [tuple(found.key for found in entries if found.identity == f"policy:{number}") for number in SERVERS]
    if not all(keys):
        raise BadInput(f"{path} has no key of policy:0 or of policy:1", advice="run: aver gateway init")
    return PolicyKeys(*keys)


def read_link_token(path: Path) -> str:
    """Read a token that `make_part_directories` has written. `NotFound` without a file: none is made here."""
    if not path.exists():
        raise NotFound(f"there is no token in {path}", advice="run: aver gateway init")
    return read_token(path)

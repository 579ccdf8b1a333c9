"""The names that the gate looks up: tools of coding agents, what steers the agents, and guarded files.

The names of an agent's tools, and of the files and variables that steer it, are data about that agent. They stand in
`agents/<name>/names.py`, as one `AgentNames`. `agents/registry` joins them to one `KnownAgents`, together with the
guarded names of this module, which belong to no agent. The gate looks names up in that value: as `Gate.known`, and as
`PathRoots.known` for paths and for the variables of a command.

The gate is a room below `agents` and does not import it. The program that puts the rooms together calls
`set_default_known_agents` once: `aver` does so for its public names, and `cli` for its verbs. A caller may also give a
value of its own. Without any, the gate knows no agent: every tool has the effect `unknown`.

A name of a file or directory is looked up in lower case, because some file systems ignore the case. A directory is
looked up anywhere in a path, a file at its end. The classes of guarded names:

    secret        passwords, tokens, private keys, shell histories
    git           the insides of a repository
    hooks         what git or a hook runner will run
    ci            what a build service will run
    aver          Aver's own home and records
    agent-config  what tells an agent what to do, and what may stop it
    startup       what a shell, an editor, an interpreter or the system runs by itself later
    system        what belongs to the operating system
    device        what is no file at all
    root          the workspace itself, the home, or everything: only of what is deleted

`effects_version` names the tables and the code that say what an action does. Aver seals it with each decision. A
decision of another version cannot be made again here, and says nothing about forgery.

    >>> from aver.gate.effects.arguments import READS
    >>> known = build_known_agents([AgentNames(tools={READS: "Read view"}, files={"agent-config": "claude.md"})])
    >>> known.find_profile("read").on_paths
    ('read',)
    >>> known.find_profile("Bash") is None
    True
    >>> known.files["claude.md"]
    ('agent-config',)
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, field
from typing import Any

from aver.errors import BadInput
from aver.fast_dataclass import dataclass
from aver.gate.effects.arguments import ToolProfile, mcp_server, normalise_name

GUARDED_CLASSES = ("secret", "git", "hooks", "ci", "aver", "agent-config", "startup", "system", "device", "root")


def _index_by_name(names: Mapping[str, str]) -> Mapping[str, tuple[str, ...]]:
    """From names by class to classes by name."""
    table: dict[str, tuple[str, ...]] = {}
    for kind, listed in names.items():
        for name in listed.split():
            table[name] = (*table.get(name, ()), kind)
    return table


GUARDED_DIRECTORIES = _index_by_name(
    {
        "secret": """
            .ssh .aws .azure .gnupg .password-store .kube .keychain .mozilla .thunderbird keychains keyrings .gcloud
        """,
        "git": ".git git~1",
        "hooks": ".husky .githooks .git-hooks",
        "ci": ".circleci .buildkite .teamcity .woodpecker .ci .semaphore .tekton .gitlab-ci",
        "aver": ".aver",
        "startup": ".vscode .idea .direnv autostart launchagents launchdaemons startupitems",
    }
)
"""A path that leads through one of these, or to it."""

GUARDED_PAIRS = _index_by_name(
    {
        "secret": """
            .docker/config.json .config/gcloud .config/gh .config/hub .config/op .config/rclone .config/google-chrome
            .config/chromium .config/doctl .config/heroku .config/netlify .config/stripe .config/sops .config/age
            google/chrome .cargo/credentials .cargo/credentials.toml .gem/credentials .m2/settings.xml
            .terraform.d/credentials.tfrc.json ssl/private .vault-token/token .config/containers run/secrets
        """,
        "startup": """
            .m2/settings.xml .config/fish .config/autostart .config/systemd .config/git .config/nvim .config/zsh
            .config/environment.d .config/pip .config/direnv .config/plasma-workspace .ssh/authorized_keys .ssh/rc
            .ssh/config .ssh/environment cron/crontabs spool/cron etc/profile.d etc/cron.d etc/systemd etc/init.d
            .ipython/profile_default .jupyter/jupyter_notebook_config.py .gnupg/gpg-agent.conf .docker/cli-plugins
            .cargo/config .cargo/config.toml .gradle/init.gradle .gradle/init.d .config/powershell
        """,
        "hooks": ".git/hooks .git/config .git/info info/attributes",
        "ci": ".github/workflows .github/actions .github/dependabot.yml .gitlab/ci",
        "aver": ".config/aver",
    }
)
"""Two names that follow each other."""

GUARDED_FILES = _index_by_name(
    {
        "secret": """
            .env .envrc .netrc _netrc .pgpass .my.cnf .mylogin.cnf .git-credentials .npmrc .pypirc .dockercfg
            .htpasswd .vault-token .boto .s3cfg .rclone.conf rclone.conf .yarnrc.yml id_rsa id_dsa id_ecdsa id_ed25519
            id_ecdsa_sk id_ed25519_sk identity credentials credentials.json credentials.toml credentials.yml
            credentials.yaml credentials.xml .credentials .credentials.json secrets.json secrets.yml secrets.yaml
            secrets.toml secrets.env secret.json secret.yaml secret.yml .secrets .secret service-account.json
            serviceaccount.json client_secret.json master.key shadow shadow- gshadow sudoers master.passwd
            terraform.tfvars terraform.tfstate terraform.tfstate.backup .bash_history .zsh_history .history
            .sh_history .python_history .psql_history .mysql_history .node_repl_history .sqlite_history .lesshst
            fish_history logins.json key4.db cookies.sqlite wp-config.php .databrickscfg .snowsql .oci
            .ngrok2 auth.json token.json tokens.json .dev.vars
        """,
        "startup": """
            .envrc .netrc .npmrc .pypirc .yarnrc.yml .bashrc .bash_profile .bash_login .bash_logout .bash_aliases
            .profile .zshrc .zshenv .zprofile .zlogin .zlogout .kshrc .cshrc .tcshrc .login .logout .inputrc .xprofile
            .xinitrc .xsession .xsessionrc .pam_environment .gitconfig .gitmodules .gitattributes .yarnrc
            .pnpmfile.cjs pip.conf pip.ini .condarc .vimrc .gvimrc .exrc .nvimrc .emacs .tmux.conf .screenrc .lesskey
            .wgetrc .curlrc .pythonrc .pythonrc.py .irbrc .pryrc .gdbinit .lldbinit .rprofile .octaverc .sqliterc
            .psqlrc .mailcap .hgrc .ackrc .ripgreprc sitecustomize.py usercustomize.py crontab rc.local ld.so.preload
            environment bash.bashrc zshrc zshenv .mise.toml mise.toml .tool-versions
        """,
        "hooks": """
            .pre-commit-config.yaml .pre-commit-config.yml lefthook.yml lefthook.yaml .lefthook.yml .overcommit.yml
        """,
        "ci": """
            .gitlab-ci.yml .gitlab-ci.yaml jenkinsfile azure-pipelines.yml azure-pipelines.yaml .travis.yml .drone.yml
            bitbucket-pipelines.yml appveyor.yml .appveyor.yml cloudbuild.yaml cloudbuild.yml buildspec.yml
            codeship-steps.yml .woodpecker.yml .woodpecker.yaml .cirrus.yml
        """,
        "aver": "aver.toml",
    }
)
"""A path that ends in one of these."""

GUARDED_PATTERNS = _index_by_name(
    {
        "secret": """
            .env.* .env-* *.env id_rsa.* id_rsa-* id_ed25519.* *service-account*.json *service_account*.json *_history
        """,
        "startup": "microsoft.powershell_profile.ps1 .#*",
    }
)
"""File names with a place for anything; matched only where nothing above was found."""

GUARDED_SUFFIXES = _index_by_name(
    {
        "secret": """
            pem key p12 pfx pkcs12 jks keystore kdbx kdb ppk agekey gpg ovpn tfstate tfvars p8 pk8 jwk keytab
        """,
        "startup": "pth",
    }
)
"""Endings of file names."""

PUBLIC_FILES = frozenset(
    (
        *(".env.example", ".env.sample", ".env.template", ".env.dist", ".env.defaults", ".env.schema", "example.env"),
        *("known_hosts", "known_hosts.old", "sample.env", "template.env", ".env-example", ".env-sample"),
    )
)
"""Names that look secret and are made to be seen."""

SYSTEM_ROOTS = frozenset(
    (
        *("bin", "boot", "dev", "etc", "lib", "lib32", "lib64", "libx32", "opt", "proc", "root", "run", "sbin", "srv"),
        *("sys", "usr", "var", "system", "library", "applications", "private", "cores", "volumes", "nix", "snap"),
    )
)
"""First names of absolute paths that belong to the operating system, of Linux and macOS."""


READERS_VERSION = 7
"""The version of the code that decides: effects, the shell reader, risk, and the question to the rules. Raise it when
the same action may get another decision. A test compares it with the digest of that code."""

NamesByClass = Mapping[str, str]
"""Names, separated by white space, under the class of guarded things that they belong to (`guarded_names`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentNames:
    """The names of one agent's tools, and of the files and variables that steer it."""

    tools: Mapping[ToolProfile, str] = field(default_factory=dict)
    """Names of tools, separated by white space, under what they do."""
    mcp_callers: str = ""
    """Tools that call the tools of MCP servers, and name the server in their arguments."""
    directories: NamesByClass = field(default_factory=dict)
    """Directories anywhere in a path."""
    pairs: NamesByClass = field(default_factory=dict)
    """Two names that follow each other, such as `.codex/auth.json`."""
    files: NamesByClass = field(default_factory=dict)
    """Names of files, in lower case."""
    readable: str = ""
    """Files below the home that the client keeps for the agent to read, as patterns separated by white space: outputs
    of tools that were too long, notes, skills. `*` stands for any part of a name, `**` for any directories."""
    variables: str = ""
    """Families of environment variables that steer it: `CODEX` stands for all names that start with `CODEX_`."""
    descriptive: Mapping[str, str] = field(default_factory=dict)
    """Arguments that only describe a call, separated by white space, by the exact name of the tool. The digest of an
    action leaves them out, so a name may be added here and never taken away: old digests would not hold any more."""
    telling: Mapping[str, str] = field(default_factory=dict)
    """Arguments that together tell what a call would do, in the same form. The digest of such a call leaves out the
    action's own description, so a tool may be added here, and none changed or taken away."""


class KnownAgents:
    """The names of all known agents, ready to be looked up. Immutable; compared and hashed by identity."""

    __slots__ = (
        *("_descriptive", "_effects_version", "_mcp_callers", "_profiles", "_readable", "_telling"),
        *("directories", "files", "pairs", "variables"),
    )

    def __init__(
        self,
        profiles: Mapping[str, ToolProfile],
        mcp_callers: frozenset[str],
        directories: Mapping[str, tuple[str, ...]],
        pairs: Mapping[str, tuple[str, ...]],
        files: Mapping[str, tuple[str, ...]],
        variables: frozenset[str],
        descriptive: Mapping[str, frozenset[str]],
        readable: frozenset[str] = frozenset(),
        telling: Mapping[str, frozenset[str]] | None = None,
    ) -> None:
        self._profiles = profiles
        self._mcp_callers = mcp_callers
        self.directories = directories
        self.pairs = pairs
        self.files = files
        self.variables = variables
        self._descriptive = descriptive
        self._readable = readable
        self._telling = telling or {}
        self._effects_version = ""

    def find_profile(self, tool: str) -> ToolProfile | None:
        """Return the effects of a tool; None for an unknown one. Aver knows no tool of an MCP server by its name."""
        return None if mcp_server(tool) else self._profiles.get(normalise_name(tool))

    def find_descriptive(self, tool: str) -> frozenset[str]:
        """Return the arguments of a tool that only describe a call. Only the exact name of a known tool has any."""
        return self._descriptive.get(tool, frozenset())

    def find_telling(self, tool: str) -> frozenset[str]:
        """Return the arguments that together tell what a call of a tool would do; none where no table says so."""
        return self._telling.get(tool, frozenset())

    def is_mcp_caller(self, tool: str) -> bool:
        """Whether a tool calls the tools of MCP servers, and names the server in its arguments."""
        return normalise_name(tool) in self._mcp_callers

    def is_tool_of_server(self, tool: str, server: str) -> bool:
        """Whether an MCP tool is of this server: `mcp__a__b__c` may be of `a` and of `a__b`."""
        return self.is_mcp_caller(tool) or "__" not in tool.removeprefix(f"mcp__{server}__")

    def is_readable(self, below_home: str) -> bool:
        """Whether a client keeps a file for its agent to read. The path is relative to the home."""
        # Compiled at first use, and kept by `re`: most paths do not lie in a hidden directory of the home.
        return any(re.fullmatch(_translate_pattern(pattern), below_home, re.I) for pattern in self._readable)

    @property
    def effects_version(self) -> str:
        """`<version of the readers>.<16 hex digits over the tables>`. Worked out once, and only where it is needed."""
        if not self._effects_version:
            from aver.capsule.canonical import canonical_bytes  # Not above: looking names up needs no JSON.
            from aver.capsule.masking.rules_table import VERSION as MASKING_VERSION

            # A handful of profiles serves all names, so each is turned into a dict once.
            distinct = {id(profile): profile for profile in self._profiles.values()}
            shown = {key: asdict(profile) for key, profile in distinct.items()}
            tables: dict[str, Any] = {
                "tools": {name: shown[id(profile)] for name, profile in self._profiles.items()},
                "mcp_callers": sorted(self._mcp_callers),
                "directories": {name: sorted(classes) for name, classes in self.directories.items()},
                "pairs": {name: sorted(classes) for name, classes in self.pairs.items()},
                "files": {name: sorted(classes) for name, classes in self.files.items()},
                "variables": sorted(self.variables),
                # By these rules the gate finds secrets in what would be sent.
                "masking": MASKING_VERSION,
                "readable": sorted(self._readable),
            }
            digest = hashlib.sha256(canonical_bytes(tables)).hexdigest()
            self._effects_version = f"{READERS_VERSION}.{digest[:16]}"
        return self._effects_version


def build_known_agents(agents: Iterable[AgentNames]) -> KnownAgents:
    """Join the names of several agents. Raises `BadInput` where two agents say different things of one tool."""
    agents = tuple(agents)
    profiles: dict[str, ToolProfile] = {}
    callers: set[str] = set()
    variables: set[str] = set()
    readable: set[str] = set()
    descriptive: dict[str, frozenset[str]] = {}
    directories, pairs, files = dict(GUARDED_DIRECTORIES), dict(GUARDED_PAIRS), dict(GUARDED_FILES)
    for agent in agents:
        for profile, names in agent.tools.items():
            for name in map(normalise_name, names.split()):
                if profiles.setdefault(name, profile) != profile:
                    raise BadInput(f"two coding agents have a tool {name!r} that does different things")
        callers.update(map(normalise_name, agent.mcp_callers.split()))
        variables.update(agent.variables.split())
        readable.update(agent.readable.split())
        for name, described in agent.descriptive.items():
            descriptive[name] = descriptive.get(name, frozenset()) | frozenset(described.split())
        for table, named in ((directories, agent.directories), (pairs, agent.pairs), (files, agent.files)):
            for kind, names in named.items():
                table.update({name: tuple({*table.get(name, ()), kind}) for name in names.split()})
    return KnownAgents(
        profiles,
        frozenset(callers),
        directories,
        pairs,
        files,
        frozenset(variables),
        descriptive,
        frozenset(readable),
        {tool: frozenset(names.split()) for agent in agents for tool, names in agent.telling.items()},
    )


def _translate_pattern(pattern: str) -> str:
    """Return a pattern of `AgentNames.readable` as a regular expression. `*` matches no slash and no hidden file."""
    parts = (
        r"(?:[^/.][^/]*/)*" if name == "**" else re.escape(name).replace(r"\*", "[^/]*") + "/"
        for name in pattern.split("/")
    )
    return "".join(parts).removesuffix("/")


NO_AGENTS = build_known_agents(())


_load_default: Callable[[], KnownAgents] = lambda: NO_AGENTS  # noqa: E731 - a value that is replaced


def set_default_known_agents(load: Callable[[], KnownAgents]) -> None:
    """Have `load` called where a caller of the gate gives no `KnownAgents`. It returns the same value each time."""
    global _load_default
    _load_default = load


def default_known_agents() -> KnownAgents:
    """The value for callers that give none."""
    return _load_default()

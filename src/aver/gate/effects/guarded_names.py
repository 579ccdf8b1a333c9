"""Names of files and directories that are more than files: secrets, hooks, what runs at start-up.

A name is looked up in lower case (some file systems do not tell the cases apart), anywhere in a path where it is a
directory, at its end where it is a file. The classes:

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

The names of the files that steer a coding agent are data about that agent, in `agents/<name>/names.py`. The gate gets
them, together with these, as one `known_agents.KnownAgents`.
"""

from __future__ import annotations

from collections.abc import Mapping

__all__ = [
    "GUARDED_CLASSES",
    "GUARDED_DIRECTORIES",
    "GUARDED_FILES",
    "GUARDED_PAIRS",
    "GUARDED_PATTERNS",
    "GUARDED_SUFFIXES",
    "PUBLIC_FILES",
    "SYSTEM_ROOTS",
]

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

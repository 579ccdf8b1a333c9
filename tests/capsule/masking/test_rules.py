"""The rules of masking: the table is that of the file, published formats are found, and ordinary texts stay."""

from __future__ import annotations

import base64
import json
import random
import string
from pathlib import Path
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from capsule.masking.test_mask import shortest

from aver import mask
from aver.capsule.masking import rules_table
from aver.capsule.masking.mask import RULES_VERSION
from support.bench_modules import masking_rules


def test_the_table_is_made_from_the_file() -> None:
    assert masking_rules.RULES.with_name("rules_table.py").read_text() == masking_rules.build_table(
        masking_rules.RULES.read_text()
    )
    assert RULES_VERSION == rules_table.VERSION == 4


def word(alphabet: str, length: int) -> str:
    """A random word with a digit, and a capital where the alphabet has one. Nothing here looks like a real secret."""
    picker = random.Random(f"{alphabet}{length}")
    sure = [
        sort for sort in (string.digits, string.ascii_uppercase, string.ascii_lowercase) if set(sort) <= set(alphabet)
    ]
    letters = [picker.choice(sort) for sort in sure] + [picker.choice(alphabet) for _ in range(length)]
    return "".join(letters[:length])


ALNUM = string.ascii_letters + string.digits
LOWER = string.ascii_lowercase + string.digits
UPPER = string.ascii_uppercase + string.digits
HEX = "0123456789abcdef"
SECRET = "Zq8-Pr0duct1on.x"
UUID = "0b7e4f3c-7f5d-4d39-9a53-0a4a5f0b8a1e"
B64_USER = base64.b64encode(b"ann:" + SECRET.encode()).decode()
DISCORD = (
    base64.urlsafe_b64encode(b"123456789012345678").decode().rstrip("=") + "." + word(ALNUM, 6) + "." + word(ALNUM, 38)
)
WIF = "5HueCGU8rMjxEXxiPuD5BDku4MkFqeZyd4dZ1jvhTVqvbTLvyTJ"
"""The example of Bitcoin's own documentation."""

AROUND = [
    f"aws configure set aws_secret_access_key {SECRET}",
    f"aws configure --profile x set aws_session_token {SECRET}",
    f"mysql -h db -uroot -p{SECRET} shop",
    f"mysqldump -p'{SECRET}' shop",
    f'{{"auths": {{"host": {{"auth": "{B64_USER}"}}}}}}',
    f"docker login -u ann -p {SECRET} registry.example",
    f"podman login --username ann -p={SECRET} registry.example",
    f"sshpass -p '{SECRET}' ssh host",
    f'sshpass -p "{SECRET}" scp a host:',
    f'client.login("{DISCORD}")',
    f'curl -b "session={SECRET}" https://host',
    f"https://host/callback?code={SECRET}&state=1",
    f"ansible_become_pass={SECRET}",
    f"htpasswd -b passwords ann {SECRET}",
    f"htpasswd -nb ann {SECRET}",
    f"openssl enc -aes-256-cbc -k {SECRET} -in a",
    f"openssl rsa -in a -passin pass:{SECRET}",
    f'secret_key_base = "{SECRET}"',
    f"curl -H 'Authorization:\n  Bearer {SECRET}' https://host",
    f"curl -H 'Authorization: Bearer \\\n  {SECRET}' https://host",
    f"X-Api-Key:\r\n {SECRET}\r\nHost: a",
    f"CREATE USER ann WITH PASSWORD '{SECRET}';",
    f"ALTER USER 'ann'@'%' IDENTIFIED BY '{SECRET}';",
    f"nmcli device wifi connect home password {SECRET}",
    f"db.example:5432:shop:ann:{SECRET}",
    f"root:$6$saltsalt${word(ALNUM, 86)}:19000:0:99999:7:::",
    f"key {WIF} end",
    f'mnemonic = "{" ".join(["abandon"] * 11)} about"',
    *(f"{name}={SECRET}" for name in ("DB_PASS", "SMTP_PASS", "JWT_KEY", "LICENSE_KEY", "AUTH", "SECRET_KEY_BASE")),
    *(f"{name}={SECRET}" for name in ("ACCESS_TOKENS", "DBPASS", "MYSQL_ROOT_PASS", "APP_KEY", "DJANGO_KEY")),
    *(f'{lead}: {name}="{SECRET}"' for lead in ("Bash", "INFO", "config") for name in ("PGPASSWORD", "token")),
    f'error: api_key = "{SECRET}"',
    f'Bash: SECRET_KEY="{SECRET}" ./run',
    f'shell: db_password = "{SECRET}"',
    f"redis-cli -h host -a {SECRET} ping",
    f"ldapsearch -x -D cn=admin -w {SECRET}",
    f"mongosh -u ann -p {SECRET} db",
    f"sqlcmd -S host -U sa -P {SECRET}",
    f"zip -P {SECRET} a.zip a",
    f"7z a -p{SECRET} a.7z a",
    f"keytool -list -storepass {SECRET}",
    f"smbclient //host/share -U ann%{SECRET}",
    f"vault login {SECRET}",
    f"kubectl create secret generic x --from-literal=key={SECRET}",
    f"echo 'ann:{SECRET}' | sudo chpasswd",
    f"xfreerdp /u:ann /p:{SECRET} /v:host",
    f"http -a ann:{SECRET} https://host",
    f"npm config set //registry.example/:_authToken {SECRET}",
]


@pytest.mark.parametrize("text", AROUND, ids=lambda text: text[:28])
def test_a_secret_is_known_by_what_stands_around_it(text: str) -> None:
    hidden = [SECRET, B64_USER, DISCORD, WIF, "abandon abandon", word(ALNUM, 86)]
    for given in (text, {"result": text}, {"command": f"cd /w && {text}"}, ["sh", "-c", text]):
        masked = mask(given)
        assert not [secret for secret in hidden if secret in json.dumps(masked.value)], masked.value
        assert mask(masked.value).count == 0


@pytest.mark.parametrize(
    "words",
    [["mysql", "-uroot", f"-p{SECRET}"], ["sshpass", "-p", SECRET, "ssh"], ["docker", "login", "-p", SECRET, "host"]],
)
def test_a_command_that_is_a_list(words: list[str]) -> None:
    assert SECRET not in json.dumps(mask({"command": words}).value)


@pytest.mark.parametrize("option", ["-u", "-U", "-sSu", "--user", "--proxy-user", "--user=", "-u="])
def test_the_password_that_curl_is_given(option: str) -> None:
    given = [f"{option}ann:{SECRET}"] if option.endswith("=") else [option, f"ann:{SECRET}"]
    for words in (["curl", *given, "https://host"], ["curl", "https://host?a=1&b=2", *given]):
        for form in (" ".join(words), words, {"command": words}, json.dumps({"command": words}), f"ran {words}"):
            assert SECRET not in json.dumps(mask(form).value), form


def a_sample(pattern: Any, chance: random.Random) -> str:
    """The shortest text of a pattern, with `SECRET` for its password."""
    made = ""
    for operator, argument in pattern:
        if operator == sre.SUBPATTERN and argument[0] in pattern.state.groupdict.values():
            made += SECRET
        elif operator == sre.SUBPATTERN:
            made += a_sample(argument[-1], chance)
        elif operator == sre.BRANCH:
            made += a_sample(argument[1][-1] if len(argument[1]) == 3 else chance.choice(argument[1]), chance)
        elif operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            made += "".join(a_sample(argument[2], chance) for _ in range(argument[0]))
        else:
            made += shortest([(operator, argument)], chance)
    return made


@pytest.mark.parametrize("number", range(len(rules_table.COMMANDS)))
def test_the_password_of_every_command_is_masked_in_a_text_and_in_lists(number: int) -> None:
    programs, _, pattern, _, words = rules_table.COMMANDS[number]
    chance, tried = random.Random(number), 0
    for _ in range(20):
        option, said = a_sample(_parser.parse(pattern), chance), " ".join(words)
        for line in (f"{programs[0]} {said} {option}", f"{option} {said}", f"{option} | {programs[0]}"):
            # The value of a cookie has its name before it.
            text = " ".join(line.split()).replace(SECRET, chance.choice([SECRET, f"sid={SECRET}"]))
            masked = mask(text)
            if (
                masked.count
                and any(each in text for each in programs)
                and SECRET not in masked.value
                and SECRET in text
            ):
                tried += 1
                listed = text.split()
                if "|" in text:  # A list starts one program. It has no pipes.
                    continue
                for form in (listed, {"command": listed}, json.dumps(listed), json.dumps({"command": listed})):
                    assert SECRET not in json.dumps(mask(form).value), form
    assert tried, "no sample of this command is masked"


PUBLISHED = [
    *("amzn.mws." + UUID, "1//0" + word(ALNUM, 40), "LTAI" + word(ALNUM, 20), "AKID" + word(ALNUM, 32)),
    *("pul-" + word(HEX, 40), "nfp_" + word(ALNUM, 36), "rnd_" + word(ALNUM, 28), "sha256~" + word(ALNUM, 43)),
    *("A3-" + "-".join(word(UPPER, size) for size in (6, 6, 5, 5, 5, 5)), "fo1_" + word(ALNUM, 43)),
    *("tvly-" + word(ALNUM, 30), "pcsk_" + word(ALNUM, 60), "sk_" + word(HEX, 48), "csk-" + word(LOWER, 48)),
    *("EAAA" + word(ALNUM, 60), "FLWSECK-" + word(LOWER, 32) + "-X", "rzp_live_" + word(ALNUM, 14)),
    *("access-production-" + UUID, "CLOJARS_" + word(LOWER, 60), "AKCp" + word(ALNUM, 69), "live_" + word(ALNUM, 32)),
    *("xkeysib-" + word(HEX, 64) + "-" + word(ALNUM, 16), "CFPAT-" + word(ALNUM, 43), "EZAK" + word(ALNUM, 54)),
    *("sqp_" + word(HEX, 40), "CCIPAT_" + word(ALNUM, 22) + "_" + word(HEX, 40), "pat-na1-" + UUID),
    *(
        "re_" + word(ALNUM, 8) + "_" + word(ALNUM, 24),
        word(HEX, 32) + "-us12",
        "dt0c01." + word(UPPER, 24) + "." + word(UPPER, 64),
    ),
    *("pat" + word(ALNUM, 14) + "." + word(HEX, 64), word(ALNUM, 6) + "_" + word(ALNUM, 29) + "_mmk", "waka_" + UUID),
    *(
        "glrtr-" + word(ALNUM, 24),
        "GR1348941" + word(ALNUM, 20),
        "ATCTT3" + word(ALNUM, 60),
        "sb_secret_" + word(ALNUM, 24),
    ),
    *(
        "ghp_" + word(ALNUM, 18),
        "oauth:" + word(LOWER, 30),
        word(ALNUM, 76) + "AZDO" + word(ALNUM, 4),
        "API-" + word(UPPER, 26),
    ),
]


@pytest.mark.parametrize("secret", PUBLISHED, ids=lambda secret: secret[:10])
def test_published_formats_are_found(secret: str) -> None:
    for text in (secret, f"key {secret} end", f'"{secret}"', f"x={secret};", json.dumps({"a": [secret]})):
        assert secret.removeprefix("oauth:") not in mask(text).value, text


def test_a_secret_is_masked_wherever_the_record_repeats_it() -> None:
    masked = mask({"token": SECRET, "log": f"using {SECRET}.", "cut": f"using {SECRET[:9]}…", "also": f"x{SECRET[:7]}"})
    assert masked.value == {
        "token": "[masked:named]",
        "log": "using [masked:repeated].",
        "cut": "using [masked:repeated]…",
        "also": f"x{SECRET[:7]}",
    }
    assert (
        mask({"password": "secret-word", "text": "secret-words and a secret"}).value["text"]
        == "secret-words and a secret"
    )


BENIGN = [
    *("API_KEY=your-api-key-here", "token: 12345", "password: changeit-here", "TOKEN=<your token>", "SECRET=example"),
    *(
        "CACHE_KEY=user:42:profile2",
        "PRIMARY_KEY=id42abcd",
        'SORT_KEY = "createdAt2024"',
        "PUBLIC_KEY=ssh-ed25519-abc1",
    ),
    *(
        "docker run -p 8080:80 nginx",
        "mkdir -p a/b",
        "ssh -p 2222 host",
        "cp -p a b",
        "nmap -p 1-1000 host",
        "git log -p a1b2",
    ),
    *(
        "mysql -u root -p shop",
        "mysql -P 3306 -h db",
        "psql -p 5432 db",
        "openssl version -a",
        "openssl x509 -in a.pem",
    ),
    *(
        "curl -b cookies.txt https://host",
        "redis-cli -h host -p 6379",
        "zip -r a.zip dir",
        "unzip -p a.zip b",
        "vault login",
    ),
    *(
        "git config user.name ann",
        "git config --get user.email",
        "npm config set registry https://host",
        "aws configure list",
    ),
    *(
        "3 passed, 1 failed",
        "PASS: tests/a.sh",
        "render_pass = 1",
        "first_pass=yes2024x",
        "bypass=1",
        "compass: north4",
    ),
    *("max_tokens=4096", "tokens_in: 512, tokens_out: 99", "access tokens are short-lived", "total_tokens=123456789"),
    *("exit code=0", "?code=404", "status_code=200", "https://host/x?zip=12345&code=US", "country_code=DE"),
    *(
        "sha256:" + word(HEX, 64),
        "commit " + word(HEX, 40),
        UUID,
        f"api/v1/items/{UUID}",
        "integrity sha512-" + word(ALNUM, 86) + "==",
    ),
    *(
        "private_key = ~/.ssh/id_ed25519.pem",
        "ssl_key: /etc/ssl/private/server.key",
        "identified by its name",
        "password 'required'",
    ),
    *("$1 $2 $5", "awk '{print $1$2}'", "echo $6$HOME", "127.0.0.1:5432:5432", "a:b:c:d", "ports: 5432:5432"),
    *(
        "test_that_a_long_name_is_kept_as_it_is",
        "live_reload_of_the_development_server",
        "https://example.com/path/to/a/file",
    ),
    *(
        "import { api } from './api-client-4'",
        "const sdk = new Sdk()",
        "pattern = compile(x)",
        "the path of the pat",
        "re_export_all",
    ),
    *(
        "basic auth is off",
        '"auth": "none"',
        'auth: "required"',
        "author: Ann",
        "oauth: on",
        "x-api-key: <key>",
        "Authorization: none",
    ),
]


def test_ordinary_texts_stay() -> None:
    """Nothing of the list is masked but what is named here."""
    masked = {text: mask(text).value for text in BENIGN if mask(text).count}
    assert masked == {}, f"{len(masked)} of {len(BENIGN)}"


COMMANDS = Path(__file__).parents[4] / "shared" / "data" / "commands"
OVER_MASKED_MAX = 0.004
"""Of real commands, at most this share is masked. Those that are contain passwords of exercises and examples."""


@pytest.mark.skipif(not COMMANDS.is_dir(), reason="the published commands are not here")
def test_real_commands_are_hardly_ever_masked() -> None:
    commands = [json.loads(line)["command"] for file in sorted(COMMANDS.glob("*.jsonl")) for line in file.open()]
    masked = [command for command in commands if mask(command).count]
    assert len(masked) <= OVER_MASKED_MAX * len(commands), (len(masked), len(commands))

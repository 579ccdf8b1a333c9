"""Masking: what is a secret is gone, what is none stays, and no text takes long."""

from __future__ import annotations

import base64
import json
import random
import re
import string
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from aver import Capsule, Context, Execution, Ledger, NotCanonical, Option, Outcome, Reasoning, ToolCall, Trigger
from aver.capsule import json_reader
from aver.capsule.masking import command_options, named_values, rules_table, secret_values, token_patterns
from aver.capsule.masking import mask as masking
from aver.capsule.masking.mask import NOTE_KEY, RULES_VERSION, mask, mask_draft
from aver.capsule.masking.token_patterns import TOKEN_PATTERNS, TokenPattern
from aver.lazy_pattern import lazy_pattern
from support.many_cases import first_now
from support.strategies import capsules, json_values

# Secrets are put together here, so that nothing in this file looks like one to those who search repositories.
UPPER, LOWER, DIGITS, HEX = string.ascii_uppercase, string.ascii_lowercase, string.digits, "0123456789abcdef"


def of(alphabet: str, length: int) -> str:
    """A random word that has every sort of character of its alphabet."""
    picker = random.Random(f"{alphabet}{length}")
    sorts = [sort for sort in (UPPER, LOWER, DIGITS) if set(sort) & set(alphabet)]
    word = [picker.choice([c for c in sort if c in alphabet]) for sort in sorts]
    return "".join(word + [picker.choice(alphabet) for _ in range(length - len(word))])


ALNUM = UPPER + LOWER + DIGITS
URL_SAFE = ALNUM + "_-"

SECRETS: list[tuple[str, str]] = [
    ("aws-key", "AKIA" + of(UPPER + DIGITS, 16)),
    ("aws-key", "ASIA" + of(UPPER + DIGITS, 16)),
    ("aws-key", "AKIA" + of(UPPER, 16)),
    ("llm-key", "hf_" + of(UPPER + LOWER, 34)),
    ("registry-token", "npm_" + of(UPPER + LOWER, 36)),
    ("service-key", "sntrys_" + of(ALNUM, 60) + "==_" + of(ALNUM, 12) + "/+" + of(ALNUM, 29)),
    ("google-key", "AIza" + of(URL_SAFE, 35)),
    ("google-key", "ya29." + of(URL_SAFE, 60)),
    ("google-key", "GOCSPX-" + of(URL_SAFE, 28)),
    ("azure-key", "abC" + "8Q~" + of(ALNUM, 34)),
    ("cloud-token", "dop_v1_" + of(HEX, 64)),
    ("cloud-token", "dapi" + of(HEX, 32)),
    ("cloud-token", "hvs." + of(URL_SAFE, 30)),
    ("cloud-token", of(ALNUM, 14) + ".atlasv1." + of(URL_SAFE, 60)),
    ("cloud-token", "dp.st." + of(ALNUM, 43)),
    ("cloud-token", "tskey-auth-" + of(ALNUM, 30)),
    ("github-token", "ghp_" + of(ALNUM, 36)),
    ("github-token", "ghs_" + of(ALNUM, 40)),
    ("github-token", "github_pat_" + of(ALNUM + "_", 82)),
    ("gitlab-token", "glpat-" + of(URL_SAFE, 20)),
    ("atlassian-token", "ATATT3" + of(URL_SAFE, 180)),
    ("slack-token", "xoxb-" + of(DIGITS, 12) + "-" + of(ALNUM, 24)),
    ("telegram-token", ":AA" + of(URL_SAFE, 33)),
    ("llm-key", "sk-" + of(ALNUM, 48)),
    ("llm-key", "sk-proj-" + of(URL_SAFE, 60)),
    ("llm-key", "sk-ant-api03-" + of(URL_SAFE, 90)),
    ("llm-key", "hf_" + of(ALNUM, 34)),
    ("llm-key", "gsk_" + of(ALNUM, 52)),
    ("payment-key", "sk_live_" + of(ALNUM, 24)),
    ("payment-key", "rk_test_" + of(ALNUM, 24)),
    ("payment-key", "whsec_" + of(ALNUM, 32)),
    ("payment-key", "shpat_" + of(HEX, 32)),
    ("registry-token", "npm_" + of(ALNUM, 36)),
    ("registry-token", "pypi-AgEI" + of(URL_SAFE, 150)),
    ("registry-token", "dckr_pat_" + of(URL_SAFE, 27)),
    ("service-key", "SG." + of(URL_SAFE, 22) + "." + of(URL_SAFE, 43)),
    ("service-key", "lin_api_" + of(ALNUM, 40)),
    ("private-key", "k4.secret." + of(URL_SAFE, 86)),
    ("age-key", "AGE-SECRET-KEY-1" + of(UPPER + DIGITS, 58)),
    ("jwt", "eyJ" + of(URL_SAFE, 20) + ".eyJ" + of(URL_SAFE, 60) + "." + of(URL_SAFE, 43)),
]
CONTEXTS = [
    "{}",
    "key {} in the text",
    '"{}"',
    "line\\n{}",
    "value%3D{}",
    "https://host/{}",
    "a={};b=c",
    "<{}>",
    "({}).",
]


@pytest.mark.parametrize(("rule", "secret"), SECRETS, ids=lambda value: value[:12])
def test_a_key_is_known_by_its_form_wherever_it_stands(rule: str, secret: str) -> None:
    for context in CONTEXTS:
        before = "12345678" if rule == "telegram-token" else ""
        text = context.format(before + secret)
        masked = mask(text)
        assert secret not in masked.value, text
        assert secret[6:] not in masked.value, text
        assert f"[masked:{rule}]" in masked.value, masked.value
        assert masked.by_rule == {rule: 1}
        assert mask(masked.value).count == 0


def credentials(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


GIVEN: list[tuple[str, str, str]] = [
    # what stands before, the secret, what stands after
    ("password=", "hunter2", ""),
    ("password = '", "hunter2", "'"),
    ('"api_key": "', "abc", '", "other": 1'),
    ('{\\"client_secret\\": \\"', "s3cret", '\\"}'),
    ("export TOKEN=", "abc123def", "\nexport OTHER=kept"),
    ("DB_PASSWORD=", "a&b;c", "\nNAME=kept"),
    ("aws_secret_access_key = ", of(ALNUM + "/+", 40), "\nregion = kept"),
    ("db:\n  password: ", "letmein", "\n  host: kept"),
    ("Server=tcp:db,1433;Uid=sa;Pwd=", "p4ssw0rd!", ";Encrypt=kept"),
    ("AccountName=kept;AccountKey=", of(ALNUM, 60) + "==", ";EndpointSuffix=kept"),
    ("https://host/cb?code=kept&access_token=", "abc123", "&state=kept"),
    ("access_token%3D", "abc123", "%26x"),
    ("access_token%3D", "%2Babc123%3D", "%26x"),
    ("tokenStaging: ", "abc123def", "\n"),
    ('const apiKey: string = "', "hunter2", '";'),
    ("password: str = '", "hunter2", "'"),
    ('os.environ["API_KEY"] = "', "hunter2", '"'),
    ("'secret' => '", "hunter2", "',"),
    ("token := `", "abc 123", "`"),
    ('password="""', "two\nlines", '"""'),
    ("mytool --password ", "hunter2", " --verbose"),
    ("mytool --api-key=", "hunter2x", " --verbose"),
    ("<password>", "hunter2", "</password>"),
    ("<ns:clientSecret>", "hunter2", "</ns:clientSecret>"),
    ("//registry/:_authToken=", "abc-def-123", "\n"),
    ("X-Api-Key: ", "abc123", "\r\nHost: kept"),
    ("postgres://bob:", "s3cr3t", "@db.host/kept"),
    ("amqp://bob:", "p@ss", "@queue:5672/"),
    ("Authorization: Bearer ", "abcdefghijkl", ""),
    ("authorization: token ", "abcdef", ""),
    ("curl -H 'Authorization: Basic ", credentials("bob:hunter2"), "' host"),
    ("use Basic ", credentials("bob:hunter2"), " there"),
    ("Bearer ", of(ALNUM, 24), " there"),
    ("Cookie: ", "sid=abcdef; theme=dark", "\r\nHost: kept"),
    ("curl -s -u bob:", "hunter2", " https://kept"),
    ("machine host login bob password ", "hunter2", "\nmachine kept"),
    ("https://host/x?sv=1&sig=", of(ALNUM, 43) + "%3D", "&se=kept"),
    ("seed phrase: ", " ".join(["abandon"] * 11 + ["about"]), "\nkept"),
    ("https://hooks.slack.com/services/", "T0000/B0000/" + of(ALNUM, 24), " kept"),
]


@pytest.mark.parametrize(("before", "secret", "after"), GIVEN, ids=lambda value: value[:20])
def test_what_a_secret_name_is_given_is_masked_and_nothing_else(before: str, secret: str, after: str) -> None:
    masked = mask(before + secret + after)
    assert masked.count == 1
    rule = next(iter(masked.by_rule))
    assert masked.value == f"{before}[masked:{rule}]{after}"
    assert mask(masked.value).count == 0


NO_SECRETS = [
    "the password is required",
    "Password: required",
    "Enter password: ",
    "password: ********",
    "password=<your password>",
    'password="${DB_PASSWORD}"',
    "TOKEN=$TOKEN",
    "curl -H 'Authorization: Bearer $TOKEN' https://host",
    "password: string;",
    "password: Optional[str] = None",
    "def login(user: str, password: str) -> Token:",
    "connect(user=user, password=password)",
    "connect(password=args.password, token=self._token)",
    "token = get_token(user)",
    'if token == "else":',
    "max_tokens=4096 tokens_in: 512 total_token=12",
    "next_page_token=abcdef",
    "the secret: it is simple",
    "Reset your password: click here",
    "basic authentication and bearer of news",
    "the key-value store and its primary_key=id",
    "PWD=/work/main OLDPWD=/tmp",
    "password_policy: strict and token_type: Bearer",
    "commit 3f786850e387550fdab836ed7e6dc881de23001b",
    "id 0b7e4f3c-7f5d-4d39-9a53-0a4a5f0b8a1e",
    "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "image docker://alpine:3.19@sha256:" + "a" * 64,
    "http://localhost:8080/path and git@host:owner/repo.git",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAI" + "B" * 40 + " bob@host",
    "-----BEGIN PUBLIC KEY-----\n" + "MCowBQYDK2VwAyEA" * 3 + "\n-----END PUBLIC KEY-----",
    "begin with -----BEGIN PRIVATE KEY----- and end with -----END PRIVATE KEY-----",
    "data:image/png;base64," + base64.b64encode(bytes(range(256)) * 20).decode(),
    "sk-loading-spinner-container-wrapper-large",
    "the skip-list and task-sk-42",
    "prompt='Password: ', stream=None",
    'print("raw token=" + repr(result))',
    "self.token = nextchar",
    "password = auth[2]",
    'headers["Authorization"] = "Basic %s" % credentials',
    "password=... and token=\u2026",
    '<input type="password" name="password">',
    "AKIA is a prefix, AKIA" + "A" * 40 + " is too long for a key",
]


@pytest.mark.parametrize("text", NO_SECRETS, ids=lambda text: text[:24])
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask(text).value == text
    assert mask(text).by_rule == {}


# --- private keys


KEY_LINES = [of(ALNUM + "+/", 64) for _ in range(6)]
BEGIN, END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


@pytest.mark.parametrize(
    "block",
    [
        "\n".join([BEGIN, *KEY_LINES, END]),
        "\\n".join([BEGIN, *KEY_LINES, END]),
        "\r\n".join([BEGIN, "Proc-Type: 4,ENCRYPTED", "", *KEY_LINES, END]),
        "\n".join(f"{number:>6}\t{line}" for number, line in enumerate([BEGIN, *KEY_LINES, END], 1))[7:],
        "\n> ".join([BEGIN, *KEY_LINES, END]),
        BEGIN + "".join(KEY_LINES) + END,
        "\n".join(["-----BEGIN OPENSSH PRIVATE KEY-----", *KEY_LINES, "-----END OPENSSH PRIVATE KEY-----"]),
        "\n".join(["-----BEGIN PGP PRIVATE KEY BLOCK-----", "", *KEY_LINES, "-----END PGP PRIVATE KEY BLOCK-----"]),
        "\n".join(["-----BEGIN PRIVATE KEY-----", *KEY_LINES, "-----END PRIVATE KEY-----"]),
    ],
)
def test_a_private_key_goes_whole(block: str) -> None:
    masked = mask(f"before\n{block}\nafter")
    assert masked.value == "before\n[masked:private-key]\nafter"
    assert masked.by_rule == {"private-key": 1}


def test_a_private_key_that_was_cut_goes_as_far_as_it_is_there() -> None:
    text = "\n".join([BEGIN, *KEY_LINES[:3]])
    assert mask(text).value == "[masked:private-key]"
    followed = mask(text + "\n\n(the rest of the file: omitted)").value
    assert followed == "[masked:private-key](the rest of the file: omitted)"


def test_every_block_of_a_file_goes_and_the_certificate_stays() -> None:
    block = "\n".join([BEGIN, *KEY_LINES, END])
    certificate = "\n".join(["-----BEGIN CERTIFICATE-----", *KEY_LINES, "-----END CERTIFICATE-----"])
    masked = mask("\n".join([certificate, block, certificate, block]))
    assert masked.value == "\n".join([certificate, "[masked:private-key]", certificate, "[masked:private-key]"])


def test_other_forms_of_private_keys() -> None:
    jwk = {"kty": "RSA", "n": "modulus", "e": "AQAB", "d": "private", "p": "prime", "kid": "key-1"}
    assert mask(jwk).value == {**jwk, "d": "[masked:private-key]", "p": "[masked:private-key]"}
    putty = f"PuTTY-User-Key-File-3: ssh-rsa\nPublic-Lines: 1\nAAAA\nPrivate-Lines: 2\n{KEY_LINES[0]}\n{KEY_LINES[1]}\n"
    assert not any(line in mask(putty).value for line in KEY_LINES)


# --- values of JSON


def words(text: str) -> list[str]:
    return text.split()


@pytest.mark.parametrize(
    "name",
    words("""
        password db_password dbPassword PGPASSWORD Pwd client_secret apiKey api-key x-api-key accessToken
        refresh_token GITHUB_TOKEN privateKey Authorization set-cookie passphrase credentials secrets
        AWS_SECRET_ACCESS_KEY password2 token_value _auth connectionString
    """),
)
def test_what_stands_under_a_secret_name_is_masked(name: str) -> None:
    masked = mask({name: "abc def", "kept": "ghi jkl"})
    assert masked.value == {name: "[masked:named]", "kept": "ghi jkl"}
    assert masked.by_rule == {"named": 1}


@pytest.mark.parametrize(
    "name",
    words("""
        tokens tokens_in max_tokens token_count token_type tokenizer public_key key primary_key
        password_policy secret_name next_token is_secret has_password cache_key author auth idempotency_key
        keyboard compass session_id signature secretary pwd_days
    """),
)
def test_what_stands_under_another_name_stays(name: str) -> None:
    assert mask({name: "abc def"}).value == {name: "abc def"}


def test_masks_reach_into_everything() -> None:
    masked = mask(
        {
            "secrets": {"db": "hunter2", "list": ["one", {"b": "two"}], "on": True, "none": None},
            "login": {"password": 1234, "otp": 99, "attempts": 3, "token": 5},
            "argv": ["tool", "--password", "hunter2", "--token", "-v", "--user", "bob"],
            "header": ["Authorization", "Digest abc"],
            "env": [{"name": "API_KEY", "value": "abc"}, {"name": "HOME", "value": "/home/bob"}],
            "schema": {"properties": {"password": {"type": "string", "description": "must be long"}}},
            "errors": {"password": ["This field may not be blank."]},
            "states": {"password": "required", "token": "${TOKEN}", "secret": ""},
        }
    )
    assert masked.value == {
        "secrets": {
            "db": "[masked:named]",
            "list": ["[masked:named]", {"b": "[masked:named]"}],
            "on": True,
            "none": None,
        },
        "login": {"password": "[masked:named]", "otp": "[masked:named]", "attempts": 3, "token": 5},
        "argv": ["tool", "--password", "[masked:named]", "--token", "-v", "--user", "bob"],
        "header": ["Authorization", "[masked:named]"],
        "env": [{"name": "API_KEY", "value": "[masked:named]"}, {"name": "HOME", "value": "/home/bob"}],
        "schema": {"properties": {"password": {"type": "string", "description": "must be long"}}},
        "errors": {"password": ["This field may not be blank."]},
        "states": {"password": "required", "token": "${TOKEN}", "secret": ""},
    }
    assert masked.count == sum(masked.by_rule.values()) == 8


def test_a_key_that_is_a_secret_itself() -> None:
    first, second = "ghp_" + of(ALNUM, 36), "ghp_" + of(ALNUM, 37)
    masked = mask({first: 1, second: 2, "kept": 3})
    assert masked.value == {"[masked:github-token]": 1, "[masked:github-token]#2": 2, "kept": 3}
    assert mask(masked.value).count == 0


def test_what_is_given_is_not_changed() -> None:
    value = {"password": "hunter2", "list": ["token=abc123"]}
    before = json.dumps(value)
    mask(value)
    assert json.dumps(value) == before


def test_too_deep_is_said_and_not_a_crash() -> None:
    deep: Any = "password=hunter2"
    for _ in range(150):
        deep = [deep]
    assert "hunter2" not in json.dumps(mask(deep).value)
    for _ in range(100):
        deep = {"secret": [deep]}
    with pytest.raises(NotCanonical, match="deeper than 200"):
        mask(deep)
    loop: list[Any] = []
    loop.append(loop)
    with pytest.raises(NotCanonical):
        mask(loop)


# --- masking the masked, and anything at all


PIECES = [
    *(before + secret + after for before, secret, after in GIVEN),
    *(secret for _, secret in SECRETS),
    *("password", "token=", ": ", '"', "'", "\\", "\n", "[masked:", "]", "[masked:jwt]", "--secret ", "key", "=", "a1"),
    *(
        "-----BEGIN PRIVATE KEY-----",
        "-----END ",
        "://",
        "@",
        ":",
        "eyJ",
        "Bearer ",
        "<token>",
        "</",
        "secret",
        "#2",
        " ",
    ),
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=8).map("".join)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=10,
)


@given(values | json_values)
def test_masking_the_masked_changes_nothing(value: Any) -> None:
    masked = mask(value)
    again = mask(masked.value)
    assert again.value == masked.value
    assert again.by_rule == {}


@pytest.mark.long
def test_masking_the_masked_changes_nothing_for_a_long_time() -> None:
    picker = random.Random(7)
    for _ in range(60_000):
        text = "".join(picker.choice(PIECES) for _ in range(picker.randint(1, 14)))
        masked = mask(text).value
        assert mask(masked).value == masked, text


@given(st.data())
def test_a_secret_that_is_planted_anywhere_does_not_survive(data: st.DataObject) -> None:
    words = st.text(string.ascii_letters + string.digits + " .,\n'\"{}[]()=:;/\\-_<>é", max_size=40)
    _, secret = data.draw(st.sampled_from([one for one in SECRETS if one[0] != "telegram-token"]))
    text = f"{data.draw(words)} {secret} {data.draw(words)}"
    assert secret not in mask(text).value
    nested = {"list": [text, {"deeper": text}]}
    assert secret not in json.dumps(mask(nested).value)


@pytest.mark.more
@given(capsules())
def test_a_masked_draft_is_a_draft_still(draft: Capsule) -> None:
    masked = mask_draft(draft)
    note = masked.context.environment[NOTE_KEY]
    assert note["rules"] == RULES_VERSION
    assert note["count"] == sum(note["by_rule"].values())
    assert mask_draft(masked) == masked
    if note["count"] == 0:
        environment = {key: value for key, value in masked.context.environment.items() if key != NOTE_KEY}
        assert environment == {key: value for key, value in draft.context.environment.items() if key != NOTE_KEY}
    assert (masked.id, masked.parent_id, masked.trigger.timestamp) == (
        draft.id,
        draft.parent_id,
        draft.trigger.timestamp,
    )


@pytest.mark.parametrize("colour", ["\x1b[31m", "\x1b[m", "\x1b[1;32m", "\x1b[0;1;4m", "\\u001b[31m"])
def test_a_secret_right_behind_a_colour_is_masked(colour: str) -> None:
    secret = "ghp_" + of(ALNUM, 36)
    assert secret not in mask(f"token {colour}{secret}\x1b[0m").value


@pytest.mark.parametrize("before", ["-", "+", "@@ -1 +1 @@\n-", '"diff": "a\\n-'])
@pytest.mark.parametrize("secret", ["ghp_" + of(ALNUM, 36), "AKIA" + of("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", 16)])
def test_a_secret_right_at_the_beginning_of_a_line_that_a_diff_removes_is_masked(before: str, secret: str) -> None:
    assert secret not in mask(f"{before}{secret}\n").value


# --- drafts


def test_every_text_of_a_draft_is_masked_and_the_note_counts() -> None:
    secret = "ghp_" + of(ALNUM, 36)
    draft = Capsule(
        type="tool",
        trigger=Trigger(source=secret, request=f"use {secret}", correlation_id=secret, user_id=secret),
        context=Context(agent_id=secret, session_id=secret, environment={"a": {"b": [secret]}}),
        reasoning=Reasoning(
            analysis=secret,
            options=[
                Option(description=f"take {secret}", pros=[secret], selected=True, estimated_impact={"x": secret})
            ],
            selected_option=f"take {secret}",
            reasoning=secret,
            model=secret,
        ),
        execution=Execution(tool_calls=[ToolCall(tool="sh", arguments={"cmd": secret}, result=secret, error=secret)]),
        outcome=Outcome(
            result={"out": secret}, summary=secret, error=secret, side_effects=[secret], metrics={"m": secret}
        ),
    )
    masked = mask_draft(draft)
    assert secret not in json.dumps(masked.to_dict())
    note = masked.context.environment[NOTE_KEY]
    assert note == {"rules": RULES_VERSION, "count": 22, "by_rule": {"github-token": 22}}
    again = mask_draft(masked)
    assert again == masked


def test_a_draft_is_masked_before_its_long_texts_become_blobs(ledger: Ledger) -> None:
    secret = "ghp_" + of(ALNUM, 36)
    text = "word " * 10_000 + secret + " word" * 10_000
    sealed = ledger.append("demo.masked", mask_draft(Capsule(type="tool", outcome=Outcome(result=text, summary=text))))
    content = sealed.to_dict()
    blob = ledger.blob(content["outcome"]["result"]["blob"]["digest"]).decode()
    assert blob == text.replace(secret, "[masked:github-token]")
    assert content["context"]["environment"][NOTE_KEY]["count"] == 2
    assert ledger.verify().status == "verified"


def test_a_draft_keeps_its_kind_and_its_hashes() -> None:
    draft = Capsule(
        type="tool",
        context=Context(environment={"aver": {"kind": "audit.intent", "refs": {"token": "abc"}}}),
        reasoning=Reasoning(prompt_hash="a" * 64),
    )
    masked = mask_draft(draft)
    assert masked.context.environment["aver"] == {"kind": "audit.intent", "refs": {"token": "abc"}}
    assert masked.reasoning.prompt_hash == "a" * 64


# --- time: counted, not measured


STEPS_MAX = 20_000
"""Ways in which a bounded pattern may try one place; times the length of the text this is the worst there is."""

SINGLE = {sre.IN, sre.LITERAL, sre.NOT_LITERAL, sre.ANY}


def steps(parsed: Any) -> int:
    """Upper bound of the ways to match. What repeats without bound must be a run that keeps what it takes."""
    ways = 1
    for operator, argument in parsed:
        if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            least, most, inner = argument
            if most == sre.MAXREPEAT:
                assert operator == sre.POSSESSIVE_REPEAT, "a repeat without bound may give back"
            single = len(inner) == 1 and inner[0][0] in SINGLE
            assert single or most != sre.MAXREPEAT or steps(inner) <= 64
            if operator != sre.POSSESSIVE_REPEAT:
                ways *= (int(most) - int(least) + 1) * (1 if single else steps(inner))
        elif operator == sre.BRANCH:
            ways *= sum(steps(branch) for branch in argument[1])
        elif operator == sre.SUBPATTERN:
            ways *= steps(argument[-1])
        elif operator in (sre.ASSERT, sre.ASSERT_NOT):
            ways *= steps(argument[1])
    return ways


PATTERN_TYPES = (re.Pattern, type(lazy_pattern("")))

PATTERNS = {
    **{f"{form.rule} {form.needles[0]}": form.pattern for form in TOKEN_PATTERNS},
    **{
        f"{module.__name__.rpartition('.')[2]}.{name}": value
        for module in (token_patterns, named_values, secret_values, masking)
        for name, value in vars(module).items()
        if isinstance(value, PATTERN_TYPES)
    },
    **{f"{shape.rule} shape": shape.pattern for shape in token_patterns.SHAPE_PATTERNS},
    **{f"command {number}": pattern for number, pattern in enumerate(command_options._PATTERNS)},
    "command_options._PROGRAM": command_options._PROGRAM,
    "command_options._OPTION": command_options._OPTION,
}
WHOLE_MATCHES = {
    *("secret_values._PLACEHOLDER", "secret_values._PATH", "secret_values._KEY_FILE"),
    *("named_values._LOOKUP", "named_values._IDENTIFIER"),
}
"""Tried once on a value that is consumed, and only as a whole: one run to the end and back."""


@pytest.mark.parametrize("name", sorted(set(PATTERNS) - WHOLE_MATCHES))
def test_no_pattern_tries_a_place_more_than_so_often(name: str) -> None:
    pattern = PATTERNS[name]
    if name in ("mask._MARK", "named_values._SEPARATORS"):
        return  # one run each
    assert steps(_parser.parse(pattern.pattern, pattern.flags)) <= STEPS_MAX


HOSTILE = [
    *("eyJ1", "eyJa1.", "AKIA1", "-----BEGIN PRIVATE KEY-----", "-----BEGIN PRIVATE KEY----- -----END ", "password="),
    *(
        'password="',
        "password: ",
        "token:",
        "--password ",
        "curl -u-u ",
        "://a:",
        "://",
        "bearer ",
        "bearer+1",
        "cookie: a=",
    ),
    *(
        "Authorization: ",
        "<password>",
        '\\"token\\": \\"',
        "login a password ",
        "sk-1A",
        "aA1.",
        "secret1",
        "secret_1_",
    ),
    *(
        "Q~1",
        " ",
        "\\",
        " -a",
        "'",
        "password='''",
        "pwd:1",
        "passwordx : str ",
        "token: a a ",
        "sig=",
        "1:AA",
        "basic a",
        "=",
    ),
    *("{", '["--password","a"', "acme_a1B2c3-", "密码：", "\u200b", "set -x a ", "echo a|gh ", "net user a ", "a_A1"),
    *("Private-Lines: 1\n", "[masked:", "[masked:jwt]", "é=", "\U0001f600", "İ=token"),
]


class Counting:
    """A pattern that counts how often it is tried and over how much text its matches run."""

    def __init__(self, pattern: re.Pattern[str], counted: dict[str, int]) -> None:
        self.pattern = pattern
        self.counted = counted

    def match(self, text: str, at: int) -> re.Match[str] | None:
        found = self.pattern.match(text, at)
        self.counted["tried"] += 1
        self.counted["run"] += 0 if found is None else found.end() - found.start()
        return found


@pytest.mark.sample(4)
@pytest.mark.parametrize("piece", first_now(HOSTILE, 12), ids=[f"piece{number}" for number in range(len(HOSTILE))])
def test_the_work_on_a_hostile_text_grows_as_its_length(piece: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every form is tried at most once where one of its needles stands, and matches run over a place once per form."""
    counted = {"tried": 0, "run": 0}
    counting = tuple(form._replace(pattern=Counting(form.pattern, counted)) for form in TOKEN_PATTERNS)  # type: ignore[arg-type]
    monkeypatch.setattr(token_patterns, "TOKEN_PATTERNS", counting)
    text = piece * (200_000 // len(piece))
    spans = list(token_patterns.find_token_spans(text))
    assert counted["tried"] <= sum(
        text.lower().count(needle.lower()) + 1 for form in TOKEN_PATTERNS for needle in form.needles
    )
    assert counted["run"] <= 8 * len(text)
    given_values = list(named_values.find_assignment_spans(text))
    flagged = sum(span.end - span.start for span in given_values)
    assert flagged <= 3 * len(text)  # names, flags and elements each read the text once
    assert len(spans) + len(given_values) <= len(text)


@pytest.mark.sample(4)
@pytest.mark.parametrize("piece", first_now(HOSTILE, 12), ids=[f"piece{number}" for number in range(len(HOSTILE))])
def test_a_hostile_text_is_masked(piece: str) -> None:
    assert_masked_for_good(piece * (200_000 // len(piece)))


@pytest.mark.long
@pytest.mark.parametrize("piece", HOSTILE, ids=[f"piece{number}" for number in range(len(HOSTILE))])
def test_hostile_megabytes_are_masked(piece: str) -> None:
    assert_masked_for_good(piece * (4_000_000 // len(piece)))


def assert_masked_for_good(text: str) -> None:
    masked = mask(text)
    assert mask(masked.value).count == 0


def patterns_of(module: Any) -> list[str]:
    values = [getattr(value, "__self__", value) for value in vars(module).values()]
    values += [each for value in values if isinstance(value, dict) for each in value.values()]
    return [value.pattern for value in values if isinstance(value, PATTERN_TYPES)]


def looks_around(tree: Any, *, possessive: bool = False) -> bool:
    """Whether a parsed pattern looks ahead or behind within a part that it never gives back."""
    for operator, argument in tree:
        if possessive and operator in (sre.ASSERT, sre.ASSERT_NOT):
            return True
        within = possessive or operator is sre.POSSESSIVE_REPEAT
        parts = argument if isinstance(argument, tuple | list) else [argument]
        trees = [each for part in parts for each in (part if isinstance(part, list) else [part])]
        if any(looks_around(each, possessive=within) for each in trees if isinstance(each, _parser.SubPattern)):
            return True
    return False


def test_no_pattern_looks_around_within_what_it_never_gives_back() -> None:
    """Python before 3.11.5 goes on from the wrong place then."""
    assert looks_around(_parser.parse("a(?:b|(?:%(?!26)[a-z]*+)*+)"))
    patterns = [form.pattern.pattern for form in TOKEN_PATTERNS]
    modules = (token_patterns, named_values, secret_values, command_options, json_reader)
    patterns += [pattern for module in modules for pattern in patterns_of(module)]
    patterns += [pattern.pattern for pattern in command_options._PATTERNS]
    patterns += [shape.pattern.pattern for shape in token_patterns.SHAPE_PATTERNS]
    assert len(patterns) > len(TOKEN_PATTERNS) + 30
    assert [pattern for pattern in patterns if looks_around(_parser.parse(pattern))] == []


def test_lower_case_keeps_every_place() -> None:
    """Needles are looked for in the text in lower case, and found at the same place in the text."""
    everything = "".join(map(chr, range(0x110000)))
    assert len(token_patterns._to_lower(everything)) == len(everything)


def test_every_form_begins_with_its_needle() -> None:
    """A needle that no match begins with would be a form that never matches."""
    found = {rule for text in PIECES for rule in mask(text).by_rule}
    untested = {"discord-token", "tangled", "password-hash", "sql-password", "oauth-code"}
    assert {form.rule for form in TOKEN_PATTERNS} - found <= untested | {"telegram-token"}
    assert isinstance(TOKEN_PATTERNS[0], TokenPattern)
    hook = "https://discord.com/api/webhooks/123456/" + of(URL_SAFE, 40)
    assert mask(hook).value == "https://discord.com/api/webhooks/123456/[masked:discord-token]"


# --- a record is looked through once, as a whole; that must find what looking text by text finds


def shortest(pattern: Any, chance: random.Random) -> str:
    """A text that a pattern matches, with as few repetitions as it allows."""
    made = ""
    for operator, argument in pattern:
        if operator == sre.LITERAL:
            made += chr(argument)
        elif operator == sre.NOT_LITERAL:
            made += "x" if argument != ord("x") else "y"
        elif operator == sre.IN:
            made += chance.choice([c for c in map(chr, range(32, 127)) if re.fullmatch(_class_of(argument), c)])
        elif operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            made += "".join(shortest(argument[2], chance) for _ in range(argument[0]))
        elif operator == sre.SUBPATTERN:
            made += shortest(argument[-1], chance)
        elif operator == sre.BRANCH:
            made += shortest(chance.choice(argument[1]), chance)
    return made


def _class_of(members: Any) -> str:
    names = {
        sre.CATEGORY_DIGIT: r"\d",
        sre.CATEGORY_WORD: r"\w",
        sre.CATEGORY_SPACE: r"\s",
        sre.CATEGORY_NOT_SPACE: r"\S",
    }
    parts = []
    for operator, argument in members:
        if operator == sre.NEGATE:
            parts.insert(0, "^")
        elif operator == sre.RANGE:
            parts.append(f"{re.escape(chr(argument[0]))}-{re.escape(chr(argument[1]))}")
        else:
            parts.append(names[argument] if operator == sre.CATEGORY else re.escape(chr(argument)))
    return f"[{''.join(parts)}]"


STANDS_BEFORE = [
    *(
        "",
        " ",
        "it is ",
        "12345678",
        "&",
        "12345678&",
        "é",
        "\u2028",
        "x.",
        "-",
        "\n",
        "\n-",
        "\t",
        "\b",
        "\x1f",
        "\\n",
    ),
    *("\\t", "\\n-", "%3D", "\\u003d", "\x1b[m", "\x1b[1m", "\x1b[31m", "\x1b[1;31m", '"', "\\", "a/", "a:", "a~"),
]
"""Texts before a key, behind which it begins a word, or may be thought to."""


@pytest.mark.sample(12)
@pytest.mark.parametrize("form", TOKEN_PATTERNS, ids=lambda form: f"{form.rule} {form.needles[0]}")
@pytest.mark.parametrize("draws", [15, pytest.param(400, marks=pytest.mark.long)])
def test_the_shortest_of_every_form_is_seen_as_possible(form: TokenPattern, draws: int) -> None:
    """What `possible_patterns` rests on."""
    assert all(json.dumps(needle)[1:-1] == needle for needle in form.needles)
    # Runs of these characters alone are left out, but in texts such a needle is looked for everywhere.
    everywhere = {needle for _, needles in rules_table.TEXT_NEEDLES for needle, _ in needles}
    assert all(re.search("[^0-9a-f-]", needle) or needle in everywhere for needle in form.needles)
    chance = random.Random(form.needles[0])
    tree = _parser.parse(form.pattern.pattern, form.pattern.flags)
    eager = form._replace(accepted=lambda _: True)
    tried = 0
    for _ in range(draws):
        secret = shortest(tree, chance)
        for before in STANDS_BEFORE:
            text = before + secret
            spans = [span for span in token_patterns.find_token_spans(text, [eager]) if span.rule == form.rule]
            for value in (text, {"said": text}, [f"{text}\n", text], {text: 1}):
                possible = token_patterns.possible_patterns(orjson.dumps(value).decode())
                same = [eager._replace(needles=each.needles) for each in possible if each.pattern is form.pattern]
                found = [span for span in token_patterns.find_token_spans(text, same) if span.rule == form.rule]
                assert set(found) == set(spans), text
            tried += bool(spans)
    assert tried, "no text was made that this form matches"


@given(st.text(st.sampled_from("tokensTOKENS_secretpasswordkeyPassWdcookieAuthpwdotp-.:=\u212a\u0130 1"), max_size=60))
def test_a_name_that_sounds_secret_is_seen_as_possible(name: str) -> None:
    if named_values.is_sensitive_name(name) or list(named_values.find_assignment_spans(name)):
        assert named_values.may_name_secret(name.lower()), name


@pytest.mark.parametrize(
    "name",
    [
        "tokenSecret",
        "tokens_token",
        "xtokens-PASSWD",
        "passphrase",
        "tokensKey",
        "api-key",
        "_auth",
        "token",
        "tokenStaging",
    ],
)
def test_names_around_those_that_are_passed_over_are_seen(name: str) -> None:
    assert mask({"a": f"{name}=q8Zr4TtW1x", "b": 1}).count == mask({name: "q8Zr4TtW1x"}).count
    assert named_values.may_name_secret(name.lower())


TELLING = [secret for _, secret in SECRETS] + [f"{before}{secret}{after}" for before, secret, after in GIVEN]


@given(json_values, st.sampled_from(TELLING))
def test_masking_a_value_is_masking_each_of_its_texts(value: Any, telling: str) -> None:
    value = {"value": value, "texts": ["nothing", f"first {telling} last"], telling: 1}
    oracle = masking._MaskingRun(masking.Counter(), set())
    walked = masking._mask_value(value, oracle, 0)
    assert mask(value).value == masking._mask_all_repeated({"": walked}, oracle)[""]


@given(capsules(), st.sampled_from(TELLING), st.sampled_from(["request", "analysis", "summary", "nowhere"]))
def test_masking_a_draft_is_masking_each_of_its_sections(draft: Capsule, telling: str, where: str) -> None:
    content = draft.to_dict()
    content["trigger"]["request"] += f" {telling}" if where == "request" else ""
    content["reasoning"]["analysis"] += f"{telling}\n" if where == "analysis" else ""
    content["outcome"]["summary"] += f"({telling})" if where == "summary" else ""
    draft = Capsule.from_dict(content)
    masked = mask_draft(draft).to_dict()
    if masked["context"]["environment"][NOTE_KEY]["by_rule"].get("repeated"):
        return
    for name in ("trigger", "reasoning", "execution", "outcome"):
        oracle = masking._MaskingRun(masking.Counter(), set())
        walked = masking._mask_value(draft.to_dict()[name], oracle, 1)
        left = {key: content[name][key] for key in masking._UNMASKED_FIELDS.get(name, ())}
        walked.pop("options_considered", None)
        assert {**walked, **left} == {key: masked[name][key] for key in {**walked, **left}}

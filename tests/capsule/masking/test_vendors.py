"""Keys of vendors by their forms, keys of nobody that is known, names in other letters, and programs: found, wherever
they stand. Of forty ordinary texts none is."""

from __future__ import annotations

import base64
import json
import random
import string
import tomllib
import uuid
from typing import Any

import pytest

from aver import mask
from aver.capsule.masking.token_patterns import looks_like_key
from support.bench_modules import masking_rules

VENDORS = tomllib.loads(masking_rules.RULES.read_text())["vendor"]
FORMS = [(vendor["rule"], form) for vendor in VENDORS for form in vendor["forms"].split()]

LOWER, UPPER, DIGITS = string.ascii_lowercase, string.ascii_uppercase, string.digits
ALNUM = LOWER + UPPER + DIGITS
SORTS = {"d": DIGITS, "x": "0123456789abcdef", "l": LOWER + DIGITS, "U": UPPER + DIGITS}
SORTS |= {"w": ALNUM, "u": ALNUM + "_-", "b": ALNUM + "+/"}
SECRET = "Zq8-Pr0duct1on.x"
UUID = "0b7e4f3c-7f5d-4d39-9a53-0a4a5f0b8a1e"


def of(alphabet: str, length: int, seed: object = 0) -> str:
    """A random word with each sort of characters of its alphabet. Nothing here looks like a real secret."""
    picker = random.Random(f"{alphabet}{length}{seed}")
    sure = [picker.choice(sort) for sort in (DIGITS, UPPER, LOWER) if set(sort) <= set(alphabet)]
    return "".join([*sure, *(picker.choice(alphabet) for _ in range(length))])[:length]


def make_key(form: str, seed: int) -> str:
    """A key of a form, as short as the form allows."""
    return masking_rules.PART.sub(
        lambda part: UUID if part["uuid"] else of(SORTS[part["sort"]], int(part["least"]), seed), form
    )


def test_each_vendor_says_who_and_when() -> None:
    assert all(vendor["name"] and vendor["source"] and len(vendor["date"]) == 7 for vendor in VENDORS)
    assert len(VENDORS) >= 40


@pytest.mark.parametrize(("rule", "form"), FORMS, ids=[form[:24] for _, form in FORMS])
def test_a_key_of_a_vendor_is_found(rule: str, form: str) -> None:
    for seed in range(3):
        key = make_key(form, seed)
        for text in (key, f"key {key} end", f'"{key}"', f"X={key};", json.dumps({"a": [key]}), f"line\n{key}\nline"):
            masked = mask(text)
            assert key not in masked.value, text
            assert rule in masked.by_rule, (text, masked.value)
            assert mask(masked.value).count == 0


JWT = "eyJ" + of(SORTS["u"], 20) + ".eyJ" + of(SORTS["u"], 60) + "." + of(SORTS["u"], 43)
CHANGED = [
    *("ghs_123456_" + JWT, "ghs_" + of(ALNUM, 36), "xoxc-" + of(DIGITS, 12) + "-" + of(ALNUM, 24)),
    *(
        "xoxd-" + of(ALNUM, 60),
        "eyJ" + of(ALNUM, 20) + ".." + of(SORTS["u"], 16) + "." + of(ALNUM, 40) + "." + of(ALNUM, 22),
    ),
    # Nobody knows these vendors.
    *(
        "acme_" + of(ALNUM, 40),
        "acme_live_" + of(ALNUM, 36),
        "ACME-" + of(ALNUM, 48),
        "zz-key-" + of(LOWER + DIGITS, 40),
    ),
]


@pytest.mark.parametrize("key", CHANGED, ids=lambda key: key[:16])
def test_new_forms_of_old_vendors_and_keys_of_unknown_ones(key: str) -> None:
    for text in (key, f"key {key} end", f"X={key};", json.dumps({"a": [f"line\n{key}"]})):
        masked = mask(text).value
        assert key[-30:] not in masked, masked
        assert mask(masked).count == 0


NAMED: list[Any] = [
    *(
        {"auth": {"user": "a", "pass": "open-sesame"}},
        {"pass": SECRET},
        {"db": [{"pw": SECRET}]},
        {"card": {"pin": 4711}},
    ),
    *(f"DB_PW={SECRET}", f"TF_VAR_master_pw={SECRET}", f'x "pass": "{SECRET}"', "pin=4711", {"pin": "471199"}),
    *(f'["--password","{SECRET}"]', f"argv: ['--password', '{SECRET}']", f'{{"password":\n  "{SECRET}"}}'),
    *(f'#define API_SECRET "{SECRET}"', f"setx API_SECRET {SECRET}", f"set -x API_SECRET {SECRET}"),
    *(f"ENV API_SECRET {SECRET}", f"Passwort: {SECRET}", f"mot de passe : {SECRET}", f"contraseña: {SECRET}"),
    *(
        f"密码：{SECRET}",
        f"パスワード: {SECRET}",
        f"пароль={SECRET}",
        f"ｐａｓｓｗｏｒｄ＝{SECRET}",
        f"pass\u200bword={SECRET}",
    ),
    *({"ｐａｓｓｗｏｒｄ": SECRET}, {"pass\u00adword": SECRET}, {"selector": "#password", "text": SECRET}),
    *(
        {"selector": "input[name='password']", "value": SECRET},
        {"element": "Password field", "ref": "e1", "text": SECRET},
    ),
    json.dumps({"selector": "#password", "text": SECRET}),
    json.dumps({"cmd": ["sshpass", "-p", SECRET, "ssh"]}),
    json.dumps([{"name": "DB_PASSWORD", "value": SECRET}]),
    f"jdbc:oracle:thin:scott/{SECRET}@//db:1521/x",
    f"host.example\tFALSE\t/\tTRUE\t1700000000\tsid\t{SECRET}",
    "seed phrase: " + " ".join(["abandon"] * 11 + ["about"]),
]
COMMANDS = [
    *(f"vault kv put secret/x value={SECRET}", f"gh secret set NAME --body {SECRET}", f"gh secret set NAME -b{SECRET}"),
    *(f"aws secretsmanager create-secret --name a --secret-string '{SECRET}'", f"heroku config:set A=b FOO={SECRET}"),
    *(f"aws ssm put-parameter --name a --value {SECRET}", f"az keyvault secret set --name n --value {SECRET}"),
    *(f"fly secrets set FOO={SECRET}", f"redis-cli -h h AUTH {SECRET}", f"net user bob {SECRET} /add"),
    *(f"echo {SECRET} | gh auth login --with-token", f"printf %s '{SECRET}' | wrangler secret put NAME"),
    *(f"echo '{SECRET}' | docker login -u x --password-stdin host", f"gh auth login --with-token <<< {SECRET}"),
    *(f'ConvertTo-SecureString "{SECRET}" -AsPlainText', f"ConvertTo-SecureString -String '{SECRET}'"),
]
HIDDEN = (SECRET, "open-sesame", "4711", "abandon abandon")


@pytest.mark.parametrize("given", [*NAMED, *COMMANDS], ids=lambda given: str(given)[:30])
def test_a_secret_that_a_name_or_a_program_is_given(given: Any) -> None:
    forms = [given, {"arguments": given}, {"result": [{"text": given}]}]
    if given in COMMANDS:
        forms += [f"cd /w && {given}", {"command": f"sudo {given}"}, given.replace("'", "").replace('"', "").split(" ")]
    for form in forms:
        masked = mask(form)
        left = json.dumps(masked.value, ensure_ascii=False)
        assert not [secret for secret in HIDDEN if secret in left], left
        assert mask(masked.value).count == 0


PNG = base64.b64encode(random.Random(5).randbytes(3000)).decode()
SHA512 = base64.b64encode(random.Random(6).randbytes(64)).decode()
URL_SAFE = base64.urlsafe_b64encode(random.Random(7).randbytes(32)).decode().rstrip("=")
BENIGN: list[Any] = [
    *(of(SORTS["x"], 40), f"commit {of(SORTS['x'], 64)}", UUID, f"task-{UUID}", "01ARZ3NDEKTSV4RRFFQ69G5FAV"),
    *(f"evt_{'01ARZ3NDEKTSV4RRFFQ69G5FAV'}", f"data:image/png;base64,{PNG}", f'"integrity": "sha512-{SHA512}"'),
    *(f"aver/x.py,sha256={URL_SAFE},1204", f"sha256-{URL_SAFE}", f"nonce-{of(ALNUM, 40)}", f"h1:{SHA512[:43]}="),
    *(f"image@sha256:{of(SORTS['x'], 64)}", f"main-{of(SORTS['x'], 32)}.js", f"layer-{of(SORTS['x'], 64)}"),
    "test_that_a_name_of_more_than_forty_letters_is_kept_as_it_is_2",
    "manylinux_2_17_x86_64_manylinux2014_x86_64_and_py3_none_any_1",
    "btn-primary-large-rounded-shadow-hover-2xl-dark-mode-3-col",
    "my-service-with-a-long-name-7d4b9c6f5-x2x9z",
    "kube-system-coredns-5d78c9869d-4xk2p-with-a-very-long-suffix-1",
    "tests/test_a.py::TestSomeVeryLongCamelCaseName2::test_Http2OverTls13",
    "getServerSidePropsForSomeVeryLongComponentNameInV2OfTheApi3",
    "function a(b,c){return b.d?e(c,b.f):g[h](b)}var i=1,j={k:2,l:'m3n4'};",
    *("@types/node@22.1.0", "lodash.template@4.5.0", "serde_json v1.0.117", "aver-ledger==1.0.0"),
    *('{"pass": 12, "fail": 3}', '{"pass": "allowed", "skip": "refused"}', "PASS: tests/a.sh", "pass=3", "pin: 13"),
    *("LED_PIN=13", '"pin": "A0"', "import playwright as pw", "def f(pw: Playwright):", "pw = sync_playwright()"),
    *("net use x", "gh pr create --body text -b main", "echo done | gh pr comment 1", "docker login", "set -x FOO bar"),
    *("ENV PATH /usr/bin", "seed phrase: keep it", "le temps passe : rien", '["--token", "--verbose"]', "密码不能为空"),
    *(f"token = {word} f()" for word in ("await", "yield", "new", "typeof", "async")),
    *("secret = lambda: 1", "password=getpass.getpass()", "passwordHash = bcrypt", "existingSecret: my-db-creds"),
    *("phc_" + of(ALNUM, 43), "POSTHOG_KEY=phc_" + of(ALNUM, 43), "prj_" + of(ALNUM, 32), "curl -u bob https://x:8"),
    {"existingSecret": "my-db-creds", "api_key": "phc_" + of(ALNUM, 43)},
    {"id": "password-help", "text": "Your password has 8 letters"},
    {"name": "token count", "value": 12},
    json.dumps({"password": {"label": "Password", "help": "At least 8 letters"}, "tokens": {"red": "#f00a12"}}),
    str(uuid.UUID(int=7)) + "_" + str(uuid.UUID(int=8)),
]


def test_ordinary_texts_stay() -> None:
    assert len(BENIGN) >= 40
    masked = {str(text): mask(text).value for text in BENIGN if mask(text).count}
    assert masked == {}, f"{len(masked)} of {len(BENIGN)}"


def test_what_looks_like_a_key() -> None:
    """Nearly every random text does, and no name: 0 of the names that any text here has."""
    picker = random.Random(11)
    keys = ["".join(picker.choices(ALNUM, k=40)) for _ in range(500)]
    assert sum(map(looks_like_key, keys)) >= 450
    assert not any(map(looks_like_key, ("x" * 40, "a1B" * 11, of(SORTS["x"], 64), "A1" * 20, "", "Aa1" * 4000)))
    words = [
        f"{a}{b.title()}{c.upper()}{n}" for n, (a, b, c) in enumerate(zip(*[iter(__doc__.split())] * 3, strict=False))
    ]
    assert not any(looks_like_key("".join(picker.sample(words, 4))) for _ in range(200))

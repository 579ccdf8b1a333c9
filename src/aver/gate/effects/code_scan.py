r"""Looks for places in a text of code that reach out: a pure function from text to findings.

Aver asks this about lines that an agent adds to a file, and about files that a build, a test or a script would run.
Code *reaches out* if it does one of these things:

    process       starts another program
    network       opens a connection
    environment   reads the environment, where secrets are
    decoding      decodes data, which may be code
    code          runs code that it builds or loads
    native        calls native code
    reflection    finds a function by a name that it computes
    files         names files outside of the workspace, or overwrites files by name
    hidden        hides its text: escapes for plain letters, long texts without a blank, binary data
    unreadable    is of a kind that Aver cannot look into, or too long

The ending of the file's name decides the language. Aver fails closed: a file of an unknown kind has a finding, and so
has one that is too long. Rules are regular expressions over the text, so they also find words in strings and comments.
This error makes Aver ask more often, not less. A rule is compiled only if one of its needles is in the text, because
most changes reach nowhere, and a hook lives for one call.

    >>> [str(found) for found in scan_code("import json\nimport subprocess\n", "tests/test_a.py")]
    ['line 2 starts a program (subprocess)']
    >>> scan_code("def test_a():\n    assert add(1, 2) == 3\n", "tests/test_a.py")
    ()

This is no sandbox. Code can call other code of the workspace, which reaches out already, and a text can be hidden in
ways that no list knows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Literal

from aver.fast_dataclass import dataclass
from aver.lazy_pattern import lazy_pattern

TEXT_MAX = 512 * 1024
"""Characters of a text that Aver looks at. A longer text has a finding."""

LINE_MAX = 1000
"""Characters of a line. Nobody reads a longer one, and Aver looks at its beginning only."""

FINDINGS_MAX = 20
"""Findings that are listed for one text."""

WORD_MAX = 40
"""Characters of a text that a finding quotes."""

SCANS_KEPT = 4
"""Texts whose findings a process keeps: those of the change that it decides about."""

ReachKind = Literal[
    "process",
    "network",
    "environment",
    "decoding",
    "code",
    "native",
    "reflection",
    "files",
    "hidden",
    "unreadable",
]

REACHES: Mapping[str, str] = {
    "process": "starts a program",
    "network": "opens a connection",
    "environment": "reads the environment",
    "decoding": "decodes data",
    "code": "runs code that it builds or loads",
    "native": "calls native code",
    "reflection": "finds a function by a computed name",
    "files": "reaches files outside, or overwrites files",
    "hidden": "hides what it does",
    "unreadable": "cannot be looked into",
}
"""The kinds, as a reason says them."""

DISGUISES = frozenset({"decoding", "code", "hidden"})
"""Kinds by which a change may be more than its lines show. Such a change is never of low risk."""


@dataclass(frozen=True, slots=True)
class Reach:
    """One place at which a text reaches out."""

    kind: ReachKind
    line: int
    """The number of the line in the text, from 1; 0 if it is about the whole text."""
    word: str
    """The words that show it."""

    def __str__(self) -> str:
        place = f"line {self.line} " if self.line else ""
        return f"{place}{REACHES[self.kind]} ({self.word})"


CodeLanguage = Literal["python", "javascript", "shell", "script", "source", "prose", "data", "unknown"]
"""`script`: languages with backquotes that run commands. `source`: all other languages. `prose`: text in which only
lines of an interactive Python session are code. `data`: nothing runs it."""


def _word_set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_ENDINGS: Mapping[CodeLanguage, frozenset[str]] = {
    "python": _word_set("py pyi pyx pxd pyw"),
    "javascript": _word_set("js jsx mjs cjs ts tsx mts cts vue svelte astro html htm xhtml mdx ejs coffee"),
    "shell": _word_set("sh bash zsh ksh"),
    "script": _word_set("rb rake erb pl pm t php phtml lua r jl cr tcl ex exs awk"),
    "source": _word_set(
        "c h cc cpp cxx c++ hh hpp hxx inl m mm java go rs swift kt scala cs fs fsx dart zig v groovy proto sol cu cuh",
        "glsl vert frag hlsl wgsl d css scss sass less styl sql hs elm ada adb ads vhd vhdl lisp cl clj cljs cljc el",
        "scm ss rkt erl hrl nim graphql gql jinja j2 jinja2 hbs mustache twig",
    ),
    "prose": _word_set("md markdown rst txt adoc asciidoc tex textile org pod rdoc"),
    # No program is loaded from a compressed file or a checksum. Python imports from `zip` and from `tar` around one.
    "data": _word_set("png jpg jpeg gif webp ico svg pdf csv tsv gz tgz bz2 tbz2 xz txz zst md5 sha1 sha256 sha512"),
}
_LANGUAGE_BY_ENDING = {ending: language for language, endings in _ENDINGS.items() for ending in endings}


def find_language(path: str) -> CodeLanguage:
    """Return the language of a file by its name."""
    name = path.rpartition("/")[2].lower()
    stem, dot, ending = name.rpartition(".")
    return _LANGUAGE_BY_ENDING.get(ending, "unknown") if dot and stem else "unknown"


def scan_code(text: str, path: str) -> tuple[Reach, ...]:
    """Return the places at which a text of the file `path` reaches out; none if it reaches nowhere."""
    return scan_text(text, find_language(path))


def scan_text(text: str, language: CodeLanguage) -> tuple[Reach, ...]:
    """Return the places at which a text reaches out. A shell script is not judged here: see `workspace_code`."""
    if language == "data" or not text.strip():
        return ()
    if language in ("unknown", "shell"):
        return (Reach("unreadable", 0, "a kind of file that Aver does not know"),)
    if len(text) > TEXT_MAX:
        return (Reach("unreadable", 0, f"more than {TEXT_MAX} characters"),)
    return _scan_code(text, language)


@lru_cache(maxsize=SCANS_KEPT)
def _scan_code(text: str, language: CodeLanguage) -> tuple[Reach, ...]:
    """Scan a text of a language that Aver knows, and that is not too long. A decision asks for the same one twice."""
    if "\0" in text:
        return (Reach("hidden", 0, "binary data"),)
    lines = _LINE_END.sub("\n", text).split("\n")
    if language == "prose":
        # Test runners can run interactive sessions in prose. All else in it is read by people alone.
        lines = [line if line.lstrip().startswith((">>>", "...")) else "" for line in lines]
        return _scan_lines(lines, "python")
    return _scan_lines(lines, language)


def _scan_lines(lines: list[str], language: CodeLanguage) -> tuple[Reach, ...]:
    found: dict[Reach, None] = {}
    text = "\n".join(lines)
    if language == "python" and (coded := _CODING.search(text)):
        found[Reach("hidden", 0, " ".join(coded[0].split())[:WORD_MAX])] = None
    comment, marks = _COMMENT_STARTS.get(language, ()), _MARKS_IN_COMMENTS.get(language, ())
    # Most changes have no comment and no long line: two searches are faster than looking at each line.
    if max(map(len, lines)) > LINE_MAX or any(start in text for start in comment):
        for number, line in enumerate(lines, 1):
            if len(line) > LINE_MAX:
                found[Reach("unreadable", number, f"{len(line)} characters in one line")] = None
                lines[number - 1] = line[:LINE_MAX]
            elif comment and line.lstrip().startswith(comment) and not any(mark in line for mark in marks):
                # A line that begins so is a comment, or text inside a string.
                lines[number - 1] = ""
        text = "\n".join(lines)
    if not text or text.isspace():
        return tuple(found)  # Mostly prose: every rule wants a character that is no blank.
    # Code repeats its words. A needle that is a word is sought in each word once, which takes half the time or less.
    words = " ".join(set(_WORD.findall(text)))
    for rule in _RULES_BY_LANGUAGE[language]:
        place = words if rule.has_word_needles else text
        for needle in rule.needles:  # `any` would take twice as long, and there are some hundred needles.
            if needle in place:
                break
        else:
            continue
        for reach in rule.find_reaches(text):
            found[reach] = None
            if len(found) >= FINDINGS_MAX:
                return tuple(found)
    return tuple(found)


_WORD = lazy_pattern(r"\w+")
_LINE_END = lazy_pattern(r"\r\n?|[\u2028\u2029]")
"""Ends of lines besides a newline: a comment ends there in Python and JavaScript, and code follows."""

_CODING = lazy_pattern(
    r"^[ \t\f]{0,40}#[^\n]{0,400}?coding[:=][ \t]{0,40}"
    r"(?!(?:utf-?8|ascii|us-ascii|latin-?1|iso-8859-1)(?![\w.-]))[\w.-]",
    re.MULTILINE | re.IGNORECASE,
)
"""A file of Python that says how its letters are to be read: in `utf-7`, a comment may hold the end of its line."""

_MARKS_IN_COMMENTS: Mapping[str, tuple[str, ...]] = {
    "python": ("{",),
    "javascript": ("${",),
    "source": ("go:", "cgo", "{", "(", "\\", '"'),
}
"""Marks of a line that begins as a comment does, and may be code: a string runs what stands in brackets, Java reads
`\\u000a` as the end of the comment, tools of Go run or compile comments, and in Haskell `//` is an operator."""

_COMMENT_STARTS: Mapping[str, tuple[str, ...]] = {"python": ("#",), "javascript": ("//",), "source": ("//",)}


@dataclass(frozen=True, slots=True)
class ReachRule:
    """A pattern, and texts of which at least one is in everything that it matches."""

    kind: ReachKind
    needles: tuple[str, ...]
    pattern: re.Pattern[str]
    has_word_needles: bool
    """Every needle consists of letters, so no needle reaches from one word of a text into the next."""

    def find_reaches(self, text: str) -> Iterator[Reach]:
        line, at = 1, 0
        for match in self.pattern.finditer(text):
            # Count on from the last match, so that the text is gone through once.
            line, at = line + text.count("\n", at, match.start()), match.start()
            # Data may be a secret: a finding shows where it begins, and no more.
            shown, length = " ".join(match[0].split()), 12 if self.kind == "hidden" else WORD_MAX
            yield Reach(self.kind, line, shown if len(shown) <= length else shown[: length - 1] + "…")


def _rule(kind: ReachKind, needles: str, pattern: str) -> ReachRule:
    """Build a rule. Needles are separated by blanks. Without any, the pattern is tried on every text."""
    listed = tuple(needles.split()) or ("",)
    are_words = all(needle.isascii() and needle.isidentifier() for needle in listed)
    return ReachRule(kind, listed, lazy_pattern(pattern, re.MULTILINE), are_words)


# Every repetition below is bounded, or its characters cannot begin another match: all rules take linear time. A test
# holds them to that.

_ANY_LANGUAGE = (
    # Escapes for letters that need none, many in a row.
    _rule("hidden", r"\x", r"(?:\\x[2-7][0-9A-Fa-f]){4}"),
    _rule("hidden", r"\u", r"(?:\\u\{?00[2-7][0-9A-Fa-f]\}?){4}"),
    _rule("hidden", "\\", r"(?:\\[01][0-7]{2}){4}"),
    _rule("hidden", "chr fromCharCode", r"\bmap\(\s{0,9}chr\b|\bchr\(\s{0,9}[0-9]{1,7}\s{0,9}\)\s{0,9}\+|fromCharCode"),
    # A text of several hundred characters without a blank is data, and may be code.
    _rule("hidden", "", r"[A-Za-z0-9+/_-]{200}"),
    _rule(
        "files",
        ".ssh .aws .gnupg .netrc .bash .zsh .profile .git/ .aver .claude .codex .cursor .env .npmrc .pypirc .kube",
        r"[\"'/~`]\.(?:ssh|aws|gnupg|netrc|bash\w{1,20}|zsh\w{1,20}|profile|git/|aver|claude|codex|cursor|env|npmrc"
        r"|pypirc|kube)(?![\w-])|\.git/(?:hooks|config)",
    ),
    _rule(
        "files", "~/ /etc/ /proc/ /dev/ id_", r"[\"'`]~/|/etc/|/proc/|/dev/(?:tcp|udp)\b|\bid_(?:rsa|ed25519|ecdsa)\b"
    ),
)

_DECODERS = (
    "b64decode b32decode b16decode b85decode a85decode decodebytes unhexlify fromhex decompress codecs zlib uudecode"
    " a2b_ rot"
)
_OS_CALLS = (
    r"(?:system|popen\w{0,9}|exec[lv]p?e?|spawn[lv]p?e?|posix_spawnp?|fork(?:pty)?|startfile|killpg|kill|dup2|putenv)"
)
_PYTHON = (
    _rule(
        "process",
        "subprocess multiprocessing pexpect ptyprocess plumbum paramiko asyncssh fabric create_subprocess Popen popen"
        " getoutput getstatusoutput webbrowser antigravity pipepager",
        r"\b(?:subprocess|_posixsubprocess|multiprocessing|pexpect|ptyprocess|plumbum|paramiko|asyncssh"
        r"|create_subprocess_\w{1,9}|[Pp]open\w{0,9}|getoutput|getstatusoutput|webbrowser|antigravity|pipepager)\b"
        r"|\b(?:import|from)\s{1,9}fabric\b",
    ),
    _rule("process", "import from", r"\b(?:import|from)\s{1,9}(?:sh|pty|posix|nt|invoke)\b"),
    _rule("process", "pty posix", r"\b(?:pty|posix)\s{0,9}\.\s{0,9}\w"),
    _rule("process", "os", rf"\bos\s{{0,9}}\.\s{{0,9}}{_OS_CALLS}\b"),
    _rule("process", "os", rf"\bfrom\s{{1,9}}os\s{{1,9}}import\b[^\n]{{0,400}}(?:\b{_OS_CALLS}\b|\*)"),
    _rule(
        "process",
        "system popen exec spawn fork startfile kill dup2 putenv",
        rf"^[ \t]{{0,40}}{_OS_CALLS}(?:[ \t]{{1,9}}as[ \t]{{1,9}}\w{{1,40}})?[ \t]{{0,9}},?[ \t]{{0,9}}\)?"
        r"[ \t]{0,9}$",
    ),
    # A function of `os` by whatever name the module has. `platform.system()` has no arguments.
    _rule(
        "process",
        "system popen exec spawn fork",
        r"(?<!platform)\.\s{0,9}(?:system\b(?!\s{0,9}\(\s{0,9}\))|popen\b|exec[lv]p?e?\b|spawn[lv]p?e?\b|posix_spawnp?\b"
        r"|forkpty\b)",
    ),
    _rule(
        "process",
        "subprocess_ pipe_pager pip setuptools distutils aver",
        r"\bsubprocess_(?:shell|exec)\b|\bpipe_pager\b|^[ \t]{0,40}(?:import|from)\s{1,9}(?:pip|setuptools|distutils)\b"
        r"|\baver\s{0,9}\.\s{0,9}(?:cli|gate|keys|config|hooks|agents)\b",
    ),
    # A module that another one has imported, or that is put into something.
    _rule(
        "reflection",
        "os sys",
        r"(?<!self)\.\s{0,9}_{0,2}(?:os|sys)\b(?!\s{0,9}\.\s{0,9}path\b)|\b(?:os|sys)\s{1,9}as\b"
        r"|(?:[{:]|\b(?:or|and|else|in|yield)\b)[ \t]{0,9}os[ \t]{0,9}(?:[,)\];}:]|$)"
        r"|(?<![\w.])os[ \t]{1,9}(?:if|or|and)\b"
        r"|^(?![ \t]{0,40}(?:import|from)\b)[^\n]{1,400},[ \t]{0,9}os[ \t]{0,9}(?:[,)\];}]|$)",
    ),
    _rule(
        "reflection",
        "f_ _frame tb_ currentframe get_objects get_refer modules",
        r"\b(?:f_builtins|f_globals|f_locals|gi_frame|cr_frame|ag_frame|tb_frame|currentframe|get_objects|get_referrers"
        r"|get_referents)\b|\bmodules\s{0,9}(?:\[|\.\s{0,9}get\b)",
    ),
    _rule(
        "network",
        "create_datagram_endpoint Handler unix_connection",
        r"\bcreate_datagram_endpoint\b|\b(?:HTTP|Socket|Datagram|SMTP|SysLog)Handler\b|\w_unix_connection\b",
    ),
    # The module under another name, or given to a function that finds the rest.
    _rule("reflection", "os", r"\bimport\s{1,9}os\s{1,9}as\b|(?:=|\(|\[|return)[ \t]{0,9}os[ \t]{0,9}(?:[,)\];]|$)"),
    _rule("environment", "environ getenv dotenv", r"\b(?:environb?|getenvb?|(?:load_)?dotenv\w{0,9})\b"),
    _rule(
        "network",
        "socket urllib http ftplib smtplib poplib imaplib nntplib telnetlib xmlrpc urlopen urlretrieve connection"
        " pycurl",
        r"\b(?:_?socket|socketserver|urllib[23]|urllib(?!\s{0,9}\.\s{0,9}parse\b)|httpx|httplib2?|aiohttp|ftplib|smtplib"
        r"|poplib|imaplib|nntplib|telnetlib|xmlrpc\w{0,9}|urlopen|urlretrieve|(?:open|create)_connection|pycurl)\b"
        r"|\bhttp\s{0,9}\.\s{0,9}(?:client|server)\b|\bfrom\s{1,9}http\s{1,9}import\b",
    ),
    _rule(
        "network",
        "requests websocket boto grpc zmq scapy tornado twisted smtp slack_sdk telegram openai anthropic google azure"
        " kafka pika redis pymongo psycopg dns",
        r"\b(?:import|from)\s{1,9}(?:requests\w{0,20}|websockets?|boto\w{0,9}|grpc\w{0,9}|zmq|scapy|tornado|twisted"
        r"|aiosmtplib|slack_sdk|telegram|openai|anthropic|google|azure|kafka|pika|redis|pymongo|psycopg\w{0,9}|dns)\b"
        r"|\brequests\s{0,9}\.\s{0,9}(?:get|post|put|patch|delete|head|request|[Ss]ession|api|adapters)\b|\bboto3\b",
    ),
    _rule(
        "code",
        "eval exec compile __import__",
        r"(?<![.\w])(?:eval|exec|execfile|compile)\s{0,9}\(|__import__"
        r"|(?:=|\(|,|\[|@|return)[ \t]{0,9}(?:eval|exec|compile)[ \t]{0,9}(?:[,)\];]|$)",
    ),
    _rule(
        "code",
        "importlib runpy builtins ickle dill marshal shelve joblib yaml code pdb timeit rofile zipimport customize"
        " Interactive bdb trace",
        r"\bimportlib\b(?!\s{0,9}\.\s{0,9}(?:metadata|resources)\b)|\b(?:runpy|_?_?builtins(?:__)?|_?[cC]?[pP]ickle|dill"
        r"|cloudpickle|marshal|shelve|joblib|zipimport|timeit|sitecustomize|usercustomize|InteractiveInterpreter"
        r"|InteractiveConsole)\b|\byaml\s{0,9}\.\s{0,9}(?:unsafe_|full_)?load(?:_all)?\b|\bcode\s{0,9}\.\s{0,9}interact\b"
        r"|\b(?:pdb|c?[pP]rofile|bdb|trace)\s{0,9}\.\s{0,9}run\w{0,9}\b|\bfrom\s{1,9}code\s{1,9}import\b",
    ),
    _rule(
        "decoding",
        _DECODERS,
        r"\b(?:standard_|urlsafe_)?(?:b64|b32|b16|b85|a85)decode\b|\b(?:decodebytes|unhexlify|a2b_\w{1,9}|fromhex"
        r"|decompress\w{0,9}|zlib|uudecode)\b|\bcodecs\s{0,9}\.\s{0,9}(?:decode|getdecoder|open)\b|\brot_?13\b",
    ),
    _rule("native", "ctypes cffi CDLL dlopen LoadLibrary", r"\b(?:_?ctypes\w{0,9}|cffi|CDLL|dlopen|LoadLibrary)\b"),
    _rule(
        "reflection",
        "globals vars __dict__ __globals__ __subclasses__ __getattribute__ __loader__ __code__ __reduce modules"
        " _getframe CodeType FunctionType attrgetter methodcaller __mro__ __spec__ __bases__ path_hooks meta_path",
        r"(?<![.\w])(?:globals|vars)\s{0,9}\(|__dict__\s{0,9}\[|__(?:globals|subclasses|getattribute|loader|code"
        r"|reduce(?:_ex)?|mro|bases|spec)__|\bsys\s{0,9}\.\s{0,9}(?:modules|_getframe|meta_path|path_hooks)\b"
        r"|\b(?:CodeType|FunctionType)\b"
        r"|\bfrom\s{1,9}sys\s{1,9}import\b[^\n]{0,400}\b(?:modules|_getframe|meta_path|path_hooks)\b"
        r"|\b(?:attrgetter|methodcaller)\s{0,9}\(\s{0,9}(?![\s\"'])",
    ),
    _rule(
        "reflection",
        "getattr",
        r"(?<![.\w])getattr\s{0,9}\([^,()\n]{1,100}(?:\([^()\n]{0,40}\))?,\s{0,9}(?:(?![\s\"'])|[\"'][^\"'\n]{0,60}"
        r"[\"']\s{0,9}[+%.])|(?:=|\(|,|\[|return)[ \t]{0,9}getattr[ \t]{0,9}(?:[,)\];]|$)",
    ),
    _rule("files", "expanduser home", r"\bexpanduser\b|\bPath\s{0,9}\.\s{0,9}home\b"),
    _rule(
        "files",
        "open Path",
        r"\bopen\s{0,9}\(\s{0,9}[rbfu]{0,2}[\"'][^\"'\n]{0,200}[\"']\s{0,9},\s{0,9}(?:mode\s{0,9}=\s{0,9})?[\"'][^\"'\n]{0,3}"
        r"[wax+]|\bPath\s{0,9}\(\s{0,9}[\"'][^\"'\n]{0,200}[\"']\s{0,9}\)\s{0,9}\.\s{0,9}(?:write_|unlink|rename|replace"
        r"|symlink|hardlink|chmod|open|rmdir)",
    ),
)

_JAVASCRIPT = (
    _rule(
        "process",
        "child_process execa shelljs exec spawn fork cluster worker_threads Deno Bun node-pty zx dlopen inding kill"
        " mainModule",
        r"\b(?:child_process|execa|shelljs|cross-spawn|node-pty|worker_threads)\b|(?<!\.)\b(?:exec|spawn|fork)(?:Sync|File"
        r"|FileSync)?\s{0,9}\(|\b(?:execSync|execFile|spawnSync|execFileSync)\b|\bDeno\s{0,9}\.\s{0,9}(?:run|Command)\b"
        r"|\bBun\s{0,9}\.\s{0,9}(?:spawn\w{0,9}|\$)|[\"'](?:node:)?(?:cluster|zx)[\"']|\bprocess\s{0,9}\.\s{0,9}(?:binding"
        r"|_linkedBinding|dlopen|kill|mainModule)\b",
    ),
    _rule(
        "network",
        "fetch XMLHttpRequest WebSocket EventSource sendBeacon axios undici got superagent http net tls dgram dns"
        " socket importScripts ws",
        r"\b(?:fetch|got)\s{0,9}\(|\b(?:XMLHttpRequest|WebSocket|EventSource|sendBeacon|axios|undici|superagent"
        r"|importScripts|socket\.io\w{0,20})\b|[\"'](?:node:)?(?:https?|http2|net|tls|dgram|dns|node-fetch|ws)(?:/\w{1,20})?"
        r"[\"']",
    ),
    _rule(
        "environment",
        "env process",
        r"\bprocess\s{0,9}(?:\?\.|\.)\s{0,9}env\b|\bimport\.meta\.env\b|\b(?:Deno|Bun)\s{0,9}\.\s{0,9}env\b|\bdotenv\b"
        r"|(?:=|\(|,|return)\s{0,9}process\s{0,9}(?:[,;)\]}]|$)|[\"'](?:node:)?process[\"']",
    ),
    _rule(
        "code",
        "eval Function vm require import constructor setTimeout setInterval module repl inspector createRequire",
        r"\beval\b|\bFunction\s{0,9}\(|[\"'](?:node:)?(?:vm|module|repl|inspector)[\"']|\brequire\s{0,9}\(\s{0,9}(?![\s\"'])"
        r"|\brequire\s{0,9}\(\s{0,9}[\"'][^\"'\n]{0,200}[\"']\s{0,9}\+|\bimport\s{0,9}\(\s{0,9}(?![\s\"'])"
        r"|\.\s{0,9}constructor\s{0,9}[.(\[]|\bcreateRequire\b|\bset(?:Timeout|Interval)\s{0,9}\(\s{0,9}[\"'`]",
    ),
    _rule(
        "decoding",
        "atob base64 hex unescape inflate gunzip Decompress unzip latin1",
        r"\b(?:atob|unescape)\s{0,9}\(|[\"'](?:base64(?:url)?|hex|latin1)[\"']|\b(?:inflate|gunzip|brotliDecompress|unzip)"
        r"\w{0,9}\b",
    ),
    # A function under another name, and a file that is no code by its name: `require` runs it as code.
    _rule(
        "network",
        "fetch",
        r"(?:[=(,\[?:|&]|\breturn\b)\s{0,9}fetch\s{0,9}(?:[,;)\]}?|]|$)|(?<![.\w])fetch\s{0,9}(?:\?\.|\.\s{0,9}(?:call|apply|bind)\b)"
        r"|(?<![.\w])fetch[ \t]{1,9}[\"'`]",
    ),
    _rule(
        "code",
        "require from import constructor",
        r"(?:[=(,\[?:|&]|\breturn\b)\s{0,9}require\s{0,9}(?:[,;)\]}?|]|$)|\brequire\s{0,9}\.\s{0,9}(?:call|apply|bind|main|cache"
        r"|extensions)\b|\bmodule\s{0,9}\.\s{0,9}require\b|[\"'`]constructor[\"'`]"
        r"|\brequire\s{0,9}\(\s{0,9}[\"'][^\"'\n]{0,200}\.(?:txt|md|markdown|rst|log|out|bak|orig|csv|tsv|svg|png|jpe?g|gif|webp"
        r"|ico|pdf|diff|patch|org|tex|adoc)[\"']"
        r"|\b(?:from|import)\s{0,9}\(?\s{0,9}[\"'][^\"'\n]{0,200}\.(?:txt|log|out|bak|orig|csv|tsv|diff|patch|org|tex|adoc|md)[\"']",
    ),
    _rule("native", "WebAssembly ffi .node", r"\bWebAssembly\b|\bffi(?:-napi)?\b|\.node[\"']"),
    _rule(
        "reflection",
        "globalThis global window process Reflect this self",
        r"\b(?:globalThis|global|window|process|self)\s{0,9}\[|\bReflect\s{0,9}\.|\bglobalThis\b(?!\s{0,9}\.\w)",
    ),
    _rule("files", "homedir writeFile rm unlink", r"\bhomedir\b|\bwriteFile(?:Sync)?\s{0,9}\(\s{0,9}[\"']"),
)

_SOURCE = (
    _rule(
        "process",
        "exec system popen posix_spawn fork Shell CreateProcess Process Runtime Command syscall proc_open passthru"
        " pcntl Open3 Kernel NSTask spawn cmd process open_port Port.open shell",
        r"(?<![\w.>$])(?:system|_?popen|exec[lv]?p?e?|posix_spawnp?|v?fork|spawn|shell_exec|proc_open|passthru)\s{0,9}\("
        r"|\b(?:pcntl_\w{1,20}|ShellExecute\w{0,9}|CreateProcess\w{0,9}|ProcessBuilder|ProcessStartInfo|NSTask|Open3)\b"
        r"|\bRuntime\s{0,9}\.\s{0,9}getRuntime\b|\bProcess(?:\s{0,9}\.\s{0,9}(?:Start|start|run|new|spawn)\b|\s{0,9}\(\s{0,9}\))"
        r"|\b(?:std|tokio|async_std)::process\b|\bCommand::new\b|\"os/exec\"|\bexec\.Command\w{0,9}\b|\bsyscall\b"
        r"|\bIO\.popen\b|\bKernel\.\w|\bio\.popen\b|\bos\.(?:execute|StartProcess)\b|\bSystem\.(?:cmd|shell)\b"
        r"|:os\.cmd\b|\bopen_port\b|\bPort\.open\b",
    ),
    _rule(
        "network",
        "net http Http HTTP Tcp Udp TCP socket Socket curl URL reqwest hyper ureq open-uri Faraday fsockopen Guzzle LWP"
        " file_get_contents getaddrinfo asio WebClient isahc Unix RestClient",
        r"\"net(?:/http|/rpc|/smtp|/url)?\"|\bnet\.(?:Dial|Listen)\w{0,9}\b|\bhttp\.(?:Get|Post|Head|NewRequest\w{0,20}|Client"
        r"|ListenAndServe\w{0,9})\b|\b(?:std|tokio|async_std)::net\b|\b(?:Tcp|Udp|Unix)(?:Stream|Listener|Socket|Client|Server)"
        r"\b|\b(?:reqwest|hyper|ureq|isahc)\b|\bjava\.net\b|\b(?:HttpClient|HttpURLConnection|OkHttp\w{0,9}|URLSession"
        r"|URLConnection|HttpWebRequest|WebClient|ServerSocket|TCPSocket|UDPSocket)\b|(?<![\w.])[sS]ocket\s{0,9}\("
        r"|\bnew\s{1,9}(?:Socket|URL)\b|\bcurl_\w{1,20}|\bNet::HTTP\b|\bopen-uri\b|\b(?:Faraday|HTTParty|RestClient|LWP)\b"
        r"|\b(?:fsockopen|file_get_contents|getaddrinfo)\b|\bGuzzle\w{0,9}|\basio::|\bIO::Socket\b|\bimport\s{1,9}socket\b",
    ),
    _rule(
        "environment",
        "env Env ENV ProcessInfo",
        r"\b(?:getenv|secure_getenv|environ)\b|\benv::var\w{0,9}\b|\bstd::env\b|\bSystem\.getenv\b|\bos\.(?:Getenv|Environ"
        r"|LookupEnv|ExpandEnv)\b|\bENV\s{0,9}(?:\[|\.|\{)|\bGetEnvironmentVariables?\b|\bProcessInfo\b|\$_ENV\b|[%$]ENV\b"
        r"|\bSystem\.get_env\b|\boption_env!|\benv!",
    ),
    _rule(
        "code",
        "eval Marshal unserialize ScriptEngine forName ClassLoader Assembly dlopen LoadLibrary plugin include"
        ' proc_macro cgo go: asm load "C" create_function',
        r"\b(?:instance_|class_|module_)?eval\b|\bMarshal\.load\b|\bunserialize\b|\bScriptEngine\w{0,9}\b|\bClass\.forName\b"
        r"|\b\w{0,20}ClassLoader\b|\bAssembly\.Load\w{0,9}\b|\bdlopen\b|\bLoadLibrary\w{0,9}\b|\bplugin\.Open\b"
        r"|\binclude(?:_str|_bytes)?!|\bproc_macro\b|#cgo\b|^import\s{1,9}\"C\"|//go:(?:generate|linkname|embed)|\b__asm__\b"
        r"|\basm!|\bload(?:string|file)\s{0,9}\(|\bcreate_function\b",
    ),
    _rule(
        "decoding",
        "base64 Base64 BASE64 inflate unhex DecodeString unpack gunzip gzuncompress zlib",
        r"\b\w{0,20}[bB]ase64\w{0,20}\b|\bBASE64\w{0,9}\b|\b(?:inflate|gzinflate|gzuncompress|unhex|DecodeString|gunzip|zlib)"
        r"\w{0,9}\b|\bunpack\s{0,9}\(",
    ),
)

_OTHER_SOURCES = (
    _rule("hidden", "000", r"\\u{1,9}000[aAdD]"),
    # Languages whose ways no other one has: Haskell, Clojure, Lisp, Erlang, Nim, D, Zig, Groovy, Scala, Verilog, SQL.
    _rule(
        "process",
        "Process Command clojure (sh shell- call-process start-process make-process run- system os: exec staticExec"
        " gorge osproc Shell spawn std.process ChildProcess .execute sys.process PROGRAM xp_cmdshell .shell \\!",
        r"\bSystem\.Process\b|\b(?:call|shell|read(?:Create)?|create|spawn)(?:Command|Process)\w{0,20}\b|\bclojure\.java\.shell\b"
        r"|\(sh\s|\b(?:async-)?shell-command\b|\b(?:call|start|make)-process\b|\brun-(?:program|shell-command)\b"
        r"|\(system\*?\s|\bos:cmd\b|\bexecCmd\w{0,9}\b|\bexecProcess\w{0,9}\b|\bstartProcess\b|\bstaticExec\b|\bgorge\w{0,9}\b"
        r"|\bosproc\b|\b(?:execute|spawn|pipe)(?:Shell|Process)\b|\bstd\.process\b|\bChildProcess\b|[\"'\])}]\s{0,9}\.\s{0,9}execute\("
        r"|\bsys\.process\b|\bPROGRAM\s{1,9}'|\bxp_cmdshell\b|^\.(?:shell|system)\b|^\\!|\$system\b",
    ),
    _rule(
        "process",
        "process exec StartProcess",
        r"\bprocess\s{0,9}::|\bprocess\s{1,9}as\b|[\"`]os/exec[\"`]|\.\s{0,9}StartProcess\b",
    ),
    _rule(
        "network",
        "net gen_ httpc Network std. toURL openStream openConnection SocketChannel url-retrieve URI httpclient",
        r"\bnet\s{0,9}::|[\"`]net(?:/\w{1,20})?[\"`]|\b(?:gen_tcp|gen_udp|httpc|httpclient)\b|\bNetwork\.\w"
        r"|\bstd\.(?:net|http|socket)\b|\b(?:toURL|openStream|openConnection|SocketChannel|url-retrieve)\b",
    ),
    _rule(
        "code",
        "## include C nuget load_extension cImport incbin OUTFILE #r",
        r"\w\s{0,9}##\s{0,9}\w|#\s{0,9}include\s{1,9}[\"<][^\">\n]{1,200}\.(?!(?:h|hh|hpp|hxx|inl|inc|c|cc|cpp|cxx|ipp|tpp|def|cuh|cu)"
        r"[\">])\w{1,12}[\">]|^[ \t]{0,40}(?:import[ \t]{1,9})?[\"`]C[\"`][ \t]{0,9};?$|^#r\s{1,9}\"|\bload_extension\b"
        r"|@cImport\b"
        r"|\.incbin\b|\bOUTFILE\b",
    ),
)

_TEXT_ENDINGS = (
    r"(?:txt|md|markdown|rst|log|out|bak|orig|csv|tsv|svg|png|jpe?g|gif|webp|ico|pdf|diff|patch|org|tex|adoc)"
)
_LOADED_TEXTS = (
    # A file that is no code by its name, and is run as code.
    _rule(
        "code",
        "load require include do source path",
        r"\b(?:load|load-file|require\w{0,9}|include\w{0,9}|do|dofile|source|path)\b[^\n;]{0,120}"
        rf"[\"'./\w]\.{_TEXT_ENDINGS}[\"'\s)\]]",
    ),
)

_SCRIPT = (
    # Calls without brackets, pipes, and functions by their name: Ruby, Perl, Tcl, awk, Lua, R, Julia, PHP.
    _rule(
        "process",
        "system exec spawn popen fork eval run Cmd getline print open",
        r"(?<![\w.>$:@-])(?:system|exec|spawn|popen)\s{1,9}[\"'$@%\[\w{]|\bsystem2\b|:(?:system|exec|spawn|eval|fork|popen)\b"
        r"|\b(?:run|Cmd)\s{0,9}\(\s{0,9}(?:Cmd\b|\[|`)|\|\s{0,9}getline\b|\bprintf?\b[^\n|]{0,200}\|\s{0,9}\""
        r"|\bopen\b[^\n]{0,200}(?:[\"']\s{0,9}\||\|\s{0,9}[\"'])",
    ),
    _rule(
        "network",
        "require use",
        r"\brequire\s{1,9}[\"'](?:net/\w|socket|open3|open-uri|pty|fiddle|drb|httparty|faraday|rest-client|webrick)"
        r"|\buse\s{1,9}(?:IO::Socket|Socket|LWP|HTTP::|Net::)",
    ),
    _rule(
        "reflection",
        "$ = send method",
        r"(?<![>\w])\$\w{1,40}\s{0,9}\(|=\s{0,9}(?:os|io)\s{0,9}(?:[;,]|$)|\b(?:public_|__)?send(?:__)?\s{0,9}\(",
    ),
)

_BACKQUOTES = (_rule("process", "` %x qx", r"`[^`\n]{1,200}`|%x[\[{(|]|\bqx\s{0,9}[/{(|\[]"),)

_RULES_BY_LANGUAGE: Mapping[str, tuple[ReachRule, ...]] = {
    "python": (*_PYTHON, *_ANY_LANGUAGE),
    "javascript": (*_JAVASCRIPT, *_ANY_LANGUAGE),
    "source": (*_SOURCE, *_OTHER_SOURCES, *_LOADED_TEXTS, *_ANY_LANGUAGE),
    "script": (*_SOURCE, *_SCRIPT, *_LOADED_TEXTS, *_BACKQUOTES, *_ANY_LANGUAGE),
}

_STRICT_JAVASCRIPT = (
    _rule("code", "import", r"\bimport\b(?!\s{1,9}[\w{},* ]{1,200}\s{0,9}from\s{0,9}[\"']\.{1,2}/)"),
    _rule(
        "code",
        "require",
        r"\brequire\b(?!\s{0,9}\(\s{0,9}[\"'](?:\./(?:[\w-]{1,60}/){0,9}[\w-]{1,60}(?:\.(?:js|cjs|json|test|min)){0,2}"
        r"|(?:node:)?(?:path|util|assert|url|events|querystring))[\"']\s{0,9}\))",
    ),
    _rule(
        "reflection",
        "process global this constructor rototype __proto__ Proxy module Buffer window self exports"
        " arguments OwnProperty",
        r"\b(?:process|global|globalThis|constructor|prototype|__proto__|Proxy|module|Buffer|window|self|exports"
        r"|arguments|[gs]etPrototypeOf|getOwnProperty\w{1,20})\b"
        r"|\bthis\s{0,9}\[",
    ),
    # Names that are put together from pieces, or found in a variable: `f[name]` may be the maker of functions.
    _rule(
        "reflection",
        "[",
        r"[\w$)\]}]\s{0,9}\[\s{0,9}[A-Za-z_$]|[{,]\s{0,9}\[\s{0,9}[A-Za-z_$][\w$]{0,60}\s{0,9}\]\s{0,9}:",
    ),
    _rule("reflection", "[ + \\", r"\[\s{0,9}[\"'`(+!\[]|[\"'`]\s{0,9}\+\s{0,9}[\"'`]|\\[xu0-7]"),
    _rule("network", "://", r"\w{1,12}://"),
    _rule("files", ". / ~", r"[\"'`](?:/|~|[^\"'`\n]{0,200}\.\./)"),
)
"""Rules for a whole program that a command runs. No test or build of the workspace is known to need them."""


def scan_javascript_program(text: str) -> tuple[Reach, ...]:
    """Return the places at which a program of JavaScript reaches out, by rules that are stricter than for a change."""
    found = scan_text(text, "javascript")
    if found and found[0].line == 0:
        return found
    reaches = (reach for rule in _STRICT_JAVASCRIPT for reach in rule.find_reaches(text))
    return tuple(dict.fromkeys((*found, *reaches)))[:FINDINGS_MAX]

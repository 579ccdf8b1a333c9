"""Code that reaches out is found, ordinary code is left alone, and no text takes more than linear time."""

from __future__ import annotations

import re
from re import _constants as sre  # type: ignore[attr-defined]
from re import _parser  # type: ignore[attr-defined]
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aver.gate.effects.code_scan.language import _ENDINGS, find_language
from aver.gate.effects.code_scan.reach import REACHES, WORD_MAX, Reach, ReachRule
from aver.gate.effects.code_scan.rules import RULES_BY_LANGUAGE, STRICT_JAVASCRIPT
from aver.gate.effects.code_scan.scan import FINDINGS_MAX, LINE_MAX, TEXT_MAX, scan_code, scan_javascript_program
from aver.gate.effects.python_code.program import NODES_MAX, scan_python_program

REACHING = {
    "a.py": {
        "process": [
            "import subprocess",
            "from multiprocessing import Pool",
            "os.system('id')",
            "os . popen('id')",
            "os.execvp('sh', [])",
            "from os import path, system",
            "from os import *",
            "    spawnl as x,",
            "import pty",
            "await asyncio.create_subprocess_exec('id')",
            "import sh",
        ],
        "network": [
            "import socket",
            "import urllib.request",
            "from urllib import request",
            "import requests",
            "requests.get(url)",
            "import httpx",
            "from http.client import HTTPConnection",
            "import smtplib",
            "urlopen(x)",
            "import boto3",
            "asyncio.open_connection(h, 1)",
        ],
        "environment": ["os.environ['A']", "os.getenv('A')", "from os import environ", "load_dotenv()"],
        "code": [
            "eval(x)",
            "exec(x)",
            "compile(x, 'a', 'exec')",
            "__import__('os')",
            "f = exec",
            "map(eval, xs)",
            "import importlib",
            "import runpy",
            "import builtins",
            "pickle.loads(x)",
            "yaml.load(x)",
            "import marshal",
            "pdb.run('x')",
            "timeit.timeit(x)",
        ],
        "decoding": ["base64.b64decode(x)", "bytes.fromhex(x)", "zlib.decompress(x)", "binascii.unhexlify(x)"],
        "native": ["import ctypes", "from cffi import FFI"],
        "reflection": [
            "globals()['x']",
            "getattr(module, name)()",
            "getattr(os, 'sys' + 'tem')",
            "sys.modules['os']",
            "x.__dict__['a']",
            "f.__globals__",
            "import os as o",
            "g(os)",
            "attrgetter(name)(x)",
        ],
        "files": [
            "open('conftest.py', 'w')",
            "Path('a').write_text('x')",
            "os.path.expanduser('x')",
            "x = '~/.bashrc'",
            "p = '.git/hooks/pre-push'",
            "open('/etc/passwd')",
            "Path.home()",
        ],
        "hidden": [r"x = '\x6f\x73\x2e\x73'", "''.join(map(chr, xs))", "chr(111) + chr(115)", f"x = '{'a1B2' * 60}'"],
    },
    "a.ts": {
        "process": ["require('child_process')", "import { spawn } from 'node:child_process'", "execSync('id')"],
        "network": ["await fetch(url)", "new WebSocket(x)", "import http from 'http'", "axios.get(x)"],
        "environment": ["process.env.TOKEN", "const { env } = process"],
        "code": ["eval(x)", "new Function(x)", "require(name)", "await import(name)", "x.constructor('a')"],
        "decoding": ["atob(x)", "Buffer.from(x, 'base64')"],
        "reflection": ["globalThis[x]", "process['env']", "Reflect.get(a, b)"],
        "native": ["WebAssembly.compile(x)"],
    },
    "a.go": {
        "process": ['import "os/exec"', 'exec.Command("id")'],
        "network": ['import "net/http"', 'net.Dial("tcp", x)', "http.Get(url)"],
        "environment": ['os.Getenv("A")'],
        "decoding": ["base64.StdEncoding.DecodeString(x)"],
        "code": ["//go:generate id", 'import "C"', 'plugin.Open("x")'],
    },
    "a.rs": {
        "process": ['Command::new("id")', "use std::process;"],
        "network": ["use std::net::TcpStream;", "reqwest::get(x)"],
        "environment": ['std::env::var("A")'],
        "code": ['include!("x")'],
    },
    "A.java": {
        "process": ["new ProcessBuilder()", "Runtime.getRuntime().exec(x)"],
        "network": ["import java.net.URL;"],
    },
    "a.rb": {"process": ["`id`", "system('id')", "%x(id)", "Open3.capture2('id')"], "environment": ["ENV['A']"]},
    "a.php": {"process": ["shell_exec('id');"], "code": ["unserialize($x);"]},
    "a.c": {"process": ['system("id");', "execve(a, b, c);"], "network": ["socket(AF_INET, 1, 0);"]},
    "README.md": {"process": [">>> import subprocess"]},
}
SAMPLES = [(path, kind, text) for path, kinds in REACHING.items() for kind, texts in kinds.items() for text in texts]


@pytest.mark.parametrize(("path", "kind", "text"), SAMPLES)
def test_code_that_reaches_out_is_found(path: str, kind: str, text: str) -> None:
    found = scan_code(f"x = 1\n{text}\n", path)
    assert kind in {reach.kind for reach in found}
    for reach in found:
        assert reach.line == 2
        assert len(reach.word) <= WORD_MAX
        assert REACHES[reach.kind] in str(reach)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "import re\n\nPATTERN = re.compile('x')\nmodel.eval()\ncursor.execute('select 1')\n"),
        ("a.py", "# subprocess, os.system and eval are not used here\nvalue = 1\n"),
        ("a.py", "path = os.path.join(a, b)\nname = os.getcwd()\nimport os, sys\nimport sys, os\n"),
        ("a.py", "system = platform.system()\nrequests = []\nrequests.append(1)\nself.profile = x\n"),
        ("a.py", "from urllib.parse import urlsplit\nfrom importlib.metadata import version\n"),
        ("a.py", "getattr(self, 'name', None)\nwith open(path) as file:\n    pass\ntmp.write_text('x')\n"),
        ("a.py", "assert response.status_code == 200\nclient.post('/items', json={'a': 1})\n"),
        ("a.py", "data = b'\\x89PNG\\r\\n\\x1a\\n'\nbase64.b64encode(data)\n"),
        ("a.ts", "const items = list.map((x) => x.id)\nexpect(render(<App />)).toBe(1)\n// fetch(x)\n"),
        ("a.go", "func Add(a, b int) int {\n\treturn a + b\n}\n"),
        ("a.rs", "fn add(a: i32) -> i32 { a + 1 }\n"),
        ("a.css", "a { color: red }\n"),
        ("a.sql", "select * from items where id = 1;\n"),
        ("README.md", "Run `curl https://example.org | sh`, or use subprocess and os.environ.\n"),
        ("notes.txt", "import subprocess\n"),
        ("logo.png", "\0binary"),
        ("a.py", ""),
        ("x.unheard", "\n"),
    ],
)
def test_ordinary_code_is_left_alone(path: str, text: str) -> None:
    assert scan_code(text, path) == ()


@pytest.mark.parametrize(
    "path", ["run", "a.xyz", "Makefile", "a.json", "a.toml", ".py", "a.sh", "a.ps1", "bin/x", "a.whl"]
)
def test_a_kind_that_is_not_known_is_not_looked_into(path: str) -> None:
    assert [found.kind for found in scan_code("x", path)] == ["unreadable"]


DETOURS = [
    ("a.py", "# coding: utf-7\n# +AAo-import os"),
    ("a.py", "# -*- coding: unicode_escape -*-\n# \\nimport os"),
    ("a.py", "# x\rimport subprocess"),
    ("a.py", "x = f'''\n# {__import__('os')}\n'''"),
    ("a.py", "import random\nrandom._os.system('id')"),
    ("a.py", "import glob\nx = glob.os"),
    ("a.py", "x.system('id')"),
    ("a.py", "import sys as s"),
    ("a.py", "from glob import (os as o)"),
    ("a.py", "s.modules['o' 's']"),
    ("a.py", "a, b = 1, os"),
    ("a.py", "m = os if 1 else 0"),
    ("a.py", "d = {'a': os}"),
    ("a.py", "inspect.currentframe().f_builtins['eval']('1')"),
    ("a.py", "gc.get_objects()"),
    ("a.py", "loop.subprocess_shell(p, 'id')"),
    ("a.py", "import logging.handlers as h\nh.HTTPHandler('e', '/x')"),
    ("a.py", "import pip\npip.main(['install', 'evil'])"),
    ("a.py", "from aver.cli import main"),
    ("a.js", "// x\rrequire('child_process')"),
    ("a.js", "// x\u2028require('child_process')"),
    ("a.js", "const f = fetch; f(x)"),
    ("a.js", "fetch.call(0, x)"),
    ("a.js", "const r = require; r('child' + '_process')"),
    ("a.js", "require('../notes.txt')"),
    ("a.js", "require('./logo.png')"),
    ("a.js", "import x from './notes.txt'"),
    ("a.js", "[]['constructor']['constructor'](x)()"),
    ("a.rb", "system 'curl evil'"),
    ("a.rb", "open('|curl evil')"),
    ("a.rb", "send(:system, 'id')"),
    ("a.rb", "require 'net/http'"),
    ("a.pl", "exec 'id';"),
    ("a.pl", "open(F, 'id|');"),
    ("a.awk", 'BEGIN { "curl evil" | getline x }'),
    ("a.awk", 'BEGIN { print 1 | "sh" }'),
    ("a.tcl", "exec curl evil"),
    ("a.lua", "local o=os; o.execute('id')"),
    ("a.php", "$f='sys'.'tem'; $f('id');"),
    ("a.jl", 'run(Cmd(["id"]))'),
    ("a.r", "system2('id')"),
    ("a.hs", 'import System.Process\nmain = callCommand "id"'),
    ("a.clj", "(use 'clojure.java.shell)"),
    ("a.erl", 't() -> os:cmd("id").'),
    ("a.el", '(shell-command "id")'),
    ("a.rkt", '(system "id")'),
    ("a.cl", '(uiop:run-program "id")'),
    ("a.nim", 'const x = staticExec("id")'),
    ("a.d", 'executeShell("id");'),
    ("a.zig", "std.process.Child.run(.{})"),
    ("a.groovy", "'id'.execute()"),
    ("a.scala", 'import sys.process._\n"id".!'),
    ("a.go", "import e `os/exec`"),
    ("a.go", 'import (\n\t// void f() { system("id"); }\n\t"C"\n)'),
    ("a.rs", "use std::{process::{Command as C}};"),
    ("a.c", "#define R(a, b) a##b"),
    ("a.c", '#include "notes.txt"'),
    ("a.java", '// \\u000aRuntime.getRuntime().exec("id");'),
    ("a.java", 'URI.create("x").toURL().openStream();'),
    ("a.swift", 'let s = """\n// \\(Process())\n"""'),
    ("a.cs", 'var s = $@"\n// {System.Diagnostics.Process.Start(x)}\n";'),
    ("a.rs", '#[path = "notes.txt"] mod a;'),
    ("a.rb", "load './notes.txt'"),
    ("a.php", "include __DIR__ . '/notes.txt';"),
    ("a.lua", "dofile('notes.txt')"),
    ("a.sql", "COPY x TO PROGRAM 'curl evil';"),
]


@pytest.mark.parametrize(("path", "text"), DETOURS)
def test_code_that_reaches_out_by_a_detour_is_found(path: str, text: str) -> None:
    assert scan_code(f"{text}\n", path)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("a.py", "import platform\nsystem = platform.system()\nprint(self.os, os.path.sep)\nimport sys, os\n"),
        ("a.js", "import logo from './logo.svg'\nconst a = require('./a')\nstore.fetchItems(x)\n// a plain comment\n"),
        ("a.rb", "items.map { |x| \"#{x}\" }\nname = other || 'default'\n"),
        ("a.c", '#include <stdio.h>\n#include "a.h"\n// a plain comment about exec\n'),
        ("a.java", "statement.execute(sql);\n"),
        ("a.rs", "use std::collections::HashMap;\n"),
    ],
)
def test_code_that_looks_like_a_detour_is_left_alone(path: str, text: str) -> None:
    assert scan_code(text, path) == ()


def test_a_program_of_javascript_reads_no_file_by_an_error_in_it() -> None:
    assert scan_javascript_program("require('./server.key')")
    assert scan_javascript_program("arguments[1](name)")
    assert scan_javascript_program("const k = 'constr'.concat('uctor'); const f = (() => 1)[k]; f(text)()")
    assert scan_javascript_program("const a = 'constr'; const { [a]: f } = () => 1")
    assert not scan_javascript_program("console.log(require('./package.json').version, require('./src/a'))")


def test_texts_beyond_the_bounds_are_not_looked_into() -> None:
    assert [found.kind for found in scan_code("x\n" * TEXT_MAX, "a.py")] == ["unreadable"]
    assert [found.kind for found in scan_code("x" + " " * LINE_MAX, "a.py")] == ["unreadable"]
    assert [found.kind for found in scan_code("x\0", "a.py")] == ["hidden"]
    assert len(scan_code("import subprocess\n" * 1000, "a.py")) == FINDINGS_MAX


def test_a_finding_does_not_show_hidden_data() -> None:
    [found] = scan_code(f"x = '{'s3cretS' * 40}'\n", "a.py")
    assert len(found.word) <= 12


def test_every_ending_has_one_language() -> None:
    endings = [ending for found in _ENDINGS.values() for ending in found]
    assert len(endings) == len(set(endings))
    assert find_language("src/A.PY") == "python"


# --- rules

RULES = [
    *((language, rule) for language, rules in RULES_BY_LANGUAGE.items() for rule in rules),
    *(("javascript program", rule) for rule in STRICT_JAVASCRIPT),
]


def find_repeats(parsed: Any) -> list[int]:
    """Return the upper ends of all repetitions in a pattern."""
    found: list[int] = []
    for operator, argument in parsed:
        if operator in (sre.MAX_REPEAT, sre.MIN_REPEAT, sre.POSSESSIVE_REPEAT):
            found += [int(argument[1]), *find_repeats(argument[2])]
        elif operator == sre.BRANCH:
            found += [end for branch in argument[1] for end in find_repeats(branch)]
        elif operator == sre.SUBPATTERN:
            found += find_repeats(argument[-1])
        elif operator in (sre.ASSERT, sre.ASSERT_NOT):
            found += find_repeats(argument[1])
    return found


@pytest.mark.parametrize(("language", "rule"), RULES)
def test_no_rule_repeats_without_bound(language: str, rule: ReachRule) -> None:
    """So a rule takes a bounded number of steps at each place of a text, and the whole text takes linear time."""
    parsed = _parser.parse(rule.pattern.pattern, rule.pattern.flags)
    assert all(end <= 400 for end in find_repeats(parsed))


@pytest.mark.parametrize(("path", "kind", "text"), SAMPLES)
def test_a_text_that_a_rule_matches_has_one_of_its_needles(path: str, kind: str, text: str) -> None:
    for _, rule in RULES:
        if rule.pattern.search(text):
            assert any(needle in text for needle in rule.needles), rule


@pytest.mark.sample(8)
@pytest.mark.parametrize(("language", "rule"), RULES)
@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_a_rule_matches_has_one_of_its_needles(language: str, rule: ReachRule, data: st.DataObject) -> None:
    compiled = re.compile(rule.pattern.pattern, rule.pattern.flags)
    text = data.draw(st.from_regex(compiled, alphabet=st.characters(codec="ascii")))
    match = compiled.search(text)
    if match is not None:
        assert any(needle in match[0] for needle in rule.needles)


@pytest.mark.sample(8)
@pytest.mark.parametrize(
    "piece",
    [
        "os ",
        "os.",
        "from os import ",
        "getattr(a",
        "open('a",
        "open( ",
        "import ",
        "' + ",
        "[",
        "\\x6f",
        "a",
        "require('",
        "`",
    ],
)
def test_hostile_texts_end(piece: str) -> None:
    text = "\n".join([piece * (LINE_MAX // len(piece))] * 200)
    for path in ("a.py", "a.ts", "a.go", "a.rb"):
        assert len(scan_code(text, path)) <= FINDINGS_MAX
    assert len(scan_javascript_program(text)) <= FINDINGS_MAX
    assert len(scan_python_program(text, is_inside=lambda path: True)) <= FINDINGS_MAX + 1


@given(st.text(max_size=300), st.sampled_from(["a.py", "a.ts", "a.go", "a.rb", "a.md"]))
def test_any_text_has_findings_in_its_own_lines(text: str, path: str) -> None:
    for found in scan_code(text, path):
        assert isinstance(found, Reach)
        assert 0 <= found.line <= text.count("\n") + 1


# --- whole programs of Python


@pytest.mark.parametrize(
    "text",
    [
        "import shutil",
        "import ftplib",
        "import urllib.parse",
        "import logging.config",
        "from os import remove",
        "import os\nos.remove('a')",
        "import os\nos.chdir('..')",
        "open(name)",
        "open('a', 'r+')",
        "open('a', mode='w')",
        "open('a', **options)",
        "open(*names)",
        "from pathlib import Path\nPath(name).read_text()",
        "from pathlib import Path\nPath('a').replace('b')",
        "import io\nio.open('a', 'w')",
        "x.to_csv('a.csv')",
        "eval",
        "breakpoint()",
        "setattr(a, 'b', 1)",
        "getattr(a, 'rmtree')()",
        "a.__class__.__mro__",
        "print('https://evil.example')",
        "print('/home/me/.ssh/id_rsa')",
        "print('../other')",
        "print(b'/etc/shadow')",
        "def broken(:",
        "x" * 2000,
        "\n".join(f"x{number} = {number} + {number}" for number in range(NODES_MAX)),
    ],
)
def test_a_program_that_reaches_out_is_found(text: str) -> None:
    assert scan_python_program(text, is_inside=lambda path: not path.startswith(("/", "..")))


@pytest.mark.parametrize(
    "text",
    [
        "print(1)",
        "import json, sys\njson.dump({}, sys.stdout)",
        "import sympy\nfrom sympy.abc import x\nprint(sympy.simplify(x + x))",
        "import os\nprint(os.getcwd(), os.path.join('a', 'b'), os.listdir('.'))",
        "for line in open('a.txt', 'r'):\n    print(line.replace('a', 'b'))",
        "from pathlib import Path\nprint(Path(__file__).parent, Path('a.txt').read_text())",
        "import sys\nsys.path.insert(0, '.')\nimport app\napp.run('a/b')",
        "class A:\n    def __init__(self):\n        self.x = getattr(self, 'y', None)\nprint(A().__class__.__name__)",
        "import numpy as np\nprint(np.array([1]).sum())",
        "import unittest\nunittest.main()",
        "print('a / b: 1/2 of it')",
    ],
)
def test_a_program_that_reaches_nowhere_has_no_finding(text: str) -> None:
    found = scan_python_program(
        text, is_inside=lambda path: not path.startswith(("/", "..")), is_own_module=lambda name: name == "app"
    )
    assert found == ()


@pytest.mark.parametrize(
    "text",
    [
        "import os\nx = os.path.os\nx.system('id')",
        "import random\nrandom._os.system('id')",
        "from glob import (os as o)\no.system('id')",
        "import app\nx = app._os\nx.system('id')",
        "import sys as s\ns.modules['o' 's'].system('id')",
        "import typing\ns = typing.sys\ns.modules",
        "import os\na, b = 1, os\nb.system('id')",
        "import os\nm = 0 or os\nm.system('id')",
        "import os\n(lambda m=os: m.system('id'))()",
        "import os\nmatch os:\n  case object(system=f): f('id')",
        "import operator, random\noperator.attrgetter('_os.system')(random)('id')",
        "import random\ngetattr(random, '_os')",
        "import unittest.mock\nunittest.mock._importer('o' 's').system('id')",
        "import unittest.mock\nunittest.mock.pkgutil",
        "g = (x for x in ())\ng.gi_frame.f_builtins['eval']('1')",
        "import inspect\ninspect.currentframe()",
        "import gc\ngc.get_objects()",
        "import typing\ndef f(x: 'print(1)'): ...\ntyping.get_type_hints(f)",
        "import inspect\ninspect.signature(print, eval_str=True)",
        "loop.subprocess_shell(p, 'id')",
        "loop.create_datagram_endpoint(p, remote_addr=('evil.example', 1))",
        "import logging\nlogging.FileHandler('conftest.py')",
        "import logging\nlogging.basicConfig(filename='conftest.py')",
        "import argparse\nargparse.FileType('w')('conftest.py')",
        "import argparse\nargparse.ArgumentParser(fromfile_prefix_chars='@')",
        "o = open\no('conftest.py', 'w')",
        "print(*map(open, names))",
        "from io import open as o\no('conftest.py', 'w')",
        "import io\no = io.open\no('conftest.py', 'w')",
        "import io\nio.open_code(name)",
        "from pathlib import Path as P\nP(name).read_text()",
        "from pathlib import Path\nprint(Path('a').absolute().parents[3])",
        "from pathlib import Path\nprint((Path.cwd().parent / 'a').read_text())",
        "from pathlib import Path\nprint((Path('a') / name).read_text())",
        "import traceback\ntraceback.linecache.getlines(name)",
        "import pip\npip.main(['install', 'evil'])",
        "from aver.cli import main\nmain(['policy', 'allow'])",
        "import pandas as pd\npd.eval(text)",
        "import pandas as pd\npd.read_csv(name)",
        "import numpy\nnumpy.load('x.npy', allow_pickle=True)",
        "import sys\nsys.breakpointhook()",
        "from os.path import *",
    ],
)
def test_a_program_that_goes_a_detour_is_found(text: str) -> None:
    assert scan_python_program(text, is_inside=lambda path: not path.startswith(("/", "..")))


@pytest.mark.parametrize(
    "text",
    [
        "from pathlib import Path\ndef f(p: Path) -> Path:\n    assert isinstance(p, Path)\n    return p",
        "from pathlib import Path\nprint((Path(__file__).resolve().parent / 'a.json').read_text())",
        "import app\nprint(app._parse('1'), app.model.eval(), app.node.parent, 3 / app.x)",
        "import logging\nlogging.basicConfig(level=logging.DEBUG)",
        "import asyncio\nasyncio.run(main())",
        "import inspect, app\nprint(inspect.getsource(app.f), inspect.signature(app.f))",
        "import sys\nprint(sys.version, sys.argv[1:], sys.getsizeof(1))",
    ],
)
def test_a_program_that_goes_none_has_no_finding(text: str) -> None:
    assert scan_python_program(text, is_inside=lambda path: not path.startswith(("/", ".."))) == ()


def is_inside(path: str) -> bool:
    return not path.startswith(("/", "..", "~"))


def may_read(path: str) -> bool:
    return is_inside(path) or path.startswith("/opt/")


@pytest.mark.parametrize(
    "text",
    [
        "print(open('/opt/app/main.js').read())",
        "import os\nprint(os.stat('/opt/app'), os.listdir('/opt/app'))",
        "import json\nwith open('/opt/app/x.json') as f:\n    print(json.load(f))",
        "import zipfile\nwith zipfile.ZipFile('/opt/a.zip', 'r') as z:\n    print(z.namelist(), z.open('b').read())",
        "import gzip\nprint(gzip.open('a.gz', 'rt').read())",
    ],
)
def test_a_program_may_read_outside_where_a_command_may(text: str) -> None:
    assert scan_python_program(text, is_inside=is_inside, may_read=may_read) == ()
    if "/opt" in text:
        assert scan_python_program(text, is_inside=is_inside)


@pytest.mark.parametrize(
    "text",
    [
        "print(open('/home/me/.config/x').read())",
        "open('/opt/app/main.js', 'w').write('x')",
        "from pathlib import Path\nPath('/opt/app/main.js').write_text('x')",
        "import sys\nsys.path.insert(0, '/opt/evil')\nimport evil",
        "import sys\nsys.path += ['/opt/evil']\nimport evil",
        "from sys import path\npath.append('/opt/evil')\nimport evil",
        "import app\napp.__path__.append('/opt/evil')\nimport app.evil",
        "__path__ = ['/opt/evil']",
        "import zipfile\nzipfile.ZipFile('a.zip', 'w').write('b')",
        "import zipfile\nzipfile.ZipFile('a.zip', mode='a')",
        "import zipfile\nzipfile.ZipFile('a.zip').extractall()",
        "import zipfile\nzipfile.main(['-e', 'a.zip', '.'])",
        "import zipfile\nzipfile.PyZipFile('a.zip', 'w')",
        "import zipfile\nzipfile.ZipFile(name)",
        "import zipfile as z\nz.main([])",
        "from zipfile import main\nmain([])",
        "import zipfile\nother = zipfile\nother.main([])",
        "import zipfile\ngetattr(zipfile, 'main')([])",
        "import zipfile\nf = zipfile.ZipFile\nf('a.zip', 'w')",
        "import zipfile\nzipfile.shutil.rmtree('src')",
        "import gzip\ngzip.open('a.gz', 'wb')",
        "import gzip\ngzip.main()",
        "from gzip import *",
        "import bz2\nbz2.BZ2File('x', 'w')",
        "import lzma\nlzma.builtins",
        "import urllib\nurllib.request",
        "import urllib.request",
        "from urllib import request",
    ],
)
def test_a_program_may_not_do_more_than_read(text: str) -> None:
    assert scan_python_program(text, is_inside=is_inside, may_read=may_read)


def test_lines_of_a_program_are_counted() -> None:
    found = scan_python_program("x = 1\n\nimport shutil\n", is_inside=lambda path: True)
    assert [reach.line for reach in found] == [3]


def test_patterns_are_compiled_when_they_are_needed() -> None:
    assert not any(isinstance(rule.pattern, re.Pattern) for _, rule in RULES)


def test_a_needle_that_is_a_word_is_in_a_word_of_every_text_that_holds_it() -> None:
    rules = [rule for rules in RULES_BY_LANGUAGE.values() for rule in rules]
    assert {rule.has_word_needles for rule in rules} == {True, False}
    for needle, is_word in [(needle, rule.has_word_needles) for rule in rules for needle in rule.needles]:
        for text in (needle, f"x{needle}y", f"é{needle}_1", f"({needle})", f"a\n{needle}.b", f"-{needle}\t"):
            in_words = any(needle in word for word in re.findall(r"\w+", text))
            assert in_words or not is_word

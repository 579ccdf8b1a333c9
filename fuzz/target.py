"""A target: one parser, verb or store, its seeds, its mutations, and the call that must hold.

    class Uri(Target):
        name = "uri"

        def seeds(self): return [b"capsule://…"]
        def run(self, data): call_parser(lambda: parse_uri(data.decode("utf-8", "surrogateescape")))

`run` raises `Defect` where the input breaks a promise. The files of `fuzz/corpus/<name>/` are seeds, too.
"""

from __future__ import annotations

from pathlib import Path
from random import Random
from typing import ClassVar

from fuzz.byte_edits import mutate_text
from fuzz.honest import HonestThings, write_files
from fuzz.recipes import Fit, Members, RecipeBook, apply_recipe, parse_recipe

CORPUS = Path(__file__).resolve().parent / "corpus"


class Target:
    """A target whose input is the bytes that the parser gets."""

    name: ClassVar[str]
    share: ClassVar[int] = 10
    """The part of a run's inputs that this target gets, relative to the others."""

    def __init__(self, things: HonestThings) -> None:
        self.things = things
        self.prepare()

    def prepare(self) -> None:
        """Make what `run` needs, once."""

    def seeds(self) -> list[bytes]:
        """Honest inputs."""
        raise NotImplementedError

    def mutate(self, data: bytes, random: Random) -> bytes:
        """A hostile input from another input."""
        return mutate_text(data, random)

    def run(self, data: bytes) -> None:
        """Give the input to Aver. Raises `Defect` where that breaks a promise."""
        raise NotImplementedError

    def corpus(self) -> dict[str, bytes]:
        """The inputs that are kept in the repository, by file name."""
        found = sorted((CORPUS / self.name).glob("*"))
        return {path.name: path.read_bytes() for path in found if path.is_file()}

    def write_damaged(self, data: bytes, directory: Path) -> None:
        """Write the hostile thing that an input makes, for a person to look at. Nothing, where the input is it."""


class RecipeTarget(Target):
    """A target whose input is a recipe: see `fuzz.recipes`."""

    def prepare(self) -> None:
        self.members = self.honest_members()
        self._book = RecipeBook(self.members)

    def honest_members(self) -> Members:
        """The parts of the honest thing."""
        raise NotImplementedError

    def fit(self) -> Fit:
        """The function that computes again what the thing says about itself."""
        return lambda members, signer: members

    def judge(self, members: Members) -> None:
        """Give the damaged thing to Aver. Raises `Defect` where that breaks a promise."""
        raise NotImplementedError

    def seeds(self) -> list[bytes]:
        return [b"[]"]

    def mutate(self, data: bytes, random: Random) -> bytes:
        return self._book.mutate(data, random)

    def run(self, data: bytes) -> None:
        self.judge(self.damaged(data))

    def damaged(self, data: bytes) -> Members:
        """The members as a recipe leaves them."""
        scratch = self.things.new_path(f"{self.name}-edited.db")
        return apply_recipe(self.members, parse_recipe(data), self.fit(), scratch)

    def write_damaged(self, data: bytes, directory: Path) -> None:
        write_files(directory, self.damaged(data))

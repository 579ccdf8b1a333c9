"""Where skills are: packages that came in, under their digest, and skills that are installed, under their name.

    AVER_HOME/gateway/skills/packages/<digest>/      made by `aver gateway skill add PATH`
    <directory>/<skill id>/                          made by the effect of `CommitSkillInstall`

`<directory>` is `[gateway.skills] directory`, or `AVER_HOME/gateway/skills/installed`. A package is read again, and its
digest computed again, whenever it is used: nobody who changes the files changes what a decision was about.
"""

from __future__ import annotations

from pathlib import Path

from aver.errors import BadInput, IntegrityError, NotFound
from aver.files.atomic import make_directory, replacement_directory
from aver.gateway.effect_settings import SkillSettings
from aver.gateway.skills.package import SkillPackage, read_package, write_package

PACKAGES, INSTALLED = "packages", "installed"


class SkillStore:
    """The skills of one home."""

    def __init__(self, home: Path, settings: SkillSettings) -> None:
        base = home / "gateway" / "skills"
        self.packages = base / PACKAGES
        self.installed = Path(settings.directory) if settings.directory else base / INSTALLED

    def add(self, source: Path) -> SkillPackage:
        """Bring a package in. It is only kept: nothing of it is installed or run."""
        package = read_package(source)
        try:
            return self.load(package.digest)
        except (NotFound, IntegrityError):
            self._write(package, self.packages / package.digest)
        return self.load(package.digest)

    def load(self, digest: str) -> SkillPackage:
        """Read a package that came in. Raises `NotFound`, or `IntegrityError` where its files were changed."""
        place = self.packages / digest
        if not place.is_dir():
            raise NotFound(
                f"no package {digest} came in",
                advice="aver gateway skill add PATH brings a package in, and prints its digest",
            )
        try:
            package = read_package(place)
        except BadInput as error:
            raise IntegrityError(
                "ARTIFACT_HASH_MISMATCH", f"the package {digest} was changed: {error.message}"
            ) from error
        if package.digest != digest:
            raise IntegrityError("ARTIFACT_HASH_MISMATCH", f"the package {digest} was changed since it came in")
        return package

    def list_packages(self) -> list[str]:
        """Return the digests of the packages that came in."""
        return sorted(each.name for each in self.packages.iterdir()) if self.packages.is_dir() else []

    def install(self, skill_id: str, package: SkillPackage) -> Path:
        """Put the files of a package in the place of a skill, all at once."""
        place = self.installed / skill_id
        self._write(package, place)
        return place

    def _write(self, package: SkillPackage, place: Path) -> None:
        make_directory(place)
        with replacement_directory(place) as new:
            write_package(package, new)

"""Which files of a folder are left out: by .gitignore, and by the patterns of the caller, written as in .gitignore."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pathspec import GitIgnoreSpec

from evokey.errors import InvalidInput

GITIGNORE = ".gitignore"
IGNORED, EXCLUDED = f"left out by {GITIGNORE}", "left out as asked"


@dataclass(frozen=True, slots=True)
class Selection:
    include: tuple[str, ...] = ()
    """Only files that match one of these are read; none: all."""
    exclude: tuple[str, ...] = ()
    gitignore: bool = True
    """Whether .gitignore is respected."""


EVERYTHING = Selection()


class Rules:
    """The rules of one folder. `enter` each folder below it, from above, before asking for what is in it."""

    def __init__(self, folder: Path, selection: Selection) -> None:
        self._folder, self._selection = folder, selection
        self._include, self._exclude = _patterns(selection.include), _patterns(selection.exclude)
        self._ignored: dict[Path, GitIgnoreSpec] = {}
        for above in _inside_repository(folder) if selection.gitignore else ():
            self.enter(above)

    def enter(self, folder: Path) -> None:
        file = folder / GITIGNORE
        if self._selection.gitignore and file.is_file():
            lines = file.read_text("utf-8", "replace").splitlines()
            self._ignored[folder] = _patterns(lines)

    def reason(self, path: Path, *, folder: bool) -> str:
        """Why a file or a folder is left out; "" where it is not."""
        below = _name(path, self._folder, folder)
        if self._exclude.match_file(below):
            return EXCLUDED
        if not folder and self._selection.include and not self._include.match_file(below):
            return EXCLUDED
        return IGNORED if self._is_ignored(path, folder) else ""

    def _is_ignored(self, path: Path, folder: bool) -> bool:
        """The rule nearest to a file decides."""
        for above in path.parents:
            spec = self._ignored.get(above)
            said = None if spec is None else spec.check_file(_name(path, above, folder)).include
            if said is not None:
                return said
        return False


def _patterns(lines: tuple[str, ...] | list[str]) -> GitIgnoreSpec:
    try:
        return GitIgnoreSpec.from_lines(lines)
    except ValueError as error:
        raise InvalidInput(f"a pattern cannot be read: {error}; patterns are written as in {GITIGNORE}") from error


def _name(path: Path, above: Path, folder: bool) -> str:
    return path.relative_to(above).as_posix() + "/" * folder


def _inside_repository(folder: Path) -> list[Path]:
    """The folders above this one, from the top of its Git repository on; none where it is in no repository."""
    for count, above in enumerate(folder.parents, 1):
        if (above / ".git").exists():
            return list(folder.parents)[:count][::-1]
        if (folder / ".git").exists():
            return []
    return []

"""The check of a release reports files that a wheel should not have, and those that it lacks."""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import release

NAME = "cordwood-0.1.0-cp311-abi3-manylinux_2_28_x86_64.whl"


@pytest.fixture(autouse=True)
def repository(monkeypatch: pytest.MonkeyPatch) -> None:
    """A repository of three files, so that the tests also run in a tree without git."""
    names = {"python/cordwood/__init__.py", "python/cordwood/cli/ls.py", "python/cordwood/py.typed"}
    monkeypatch.setattr(release, "tracked", lambda *_: names)


def wheel(folder: Path, *others: str, without: str = "") -> Path:
    """A wheel with empty files."""
    path = folder / NAME
    with zipfile.ZipFile(path, "w") as archive:
        for name in {*release.needed(path), release.EXTENSION, release.JAR, *others} - {without}:
            archive.writestr(name, "")
    return path


def test_a_wheel_with_what_it_needs_passes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    release.check_wheel(wheel(tmp_path, "cordwood-0.1.0.dist-info/sboms/cordwood-python.cyclonedx.json"))
    assert "files, 0.0 MB" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["cordwood/notes.txt", "cordwood/cli/ls.pyc", "cordwood-0.1.0.dist-info/sboms/x"])
def test_a_file_that_is_not_needed_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(release.Failure, match=f"^{NAME} has {name}$"):
        release.check_wheel(wheel(tmp_path, name))


@pytest.mark.parametrize("name", [release.EXTENSION, release.JAR, "cordwood/py.typed", "cordwood/cli/ls.py"])
def test_a_missing_file_is_reported(tmp_path: Path, name: str) -> None:
    with pytest.raises(release.Failure, match=f"^{NAME} has no {name}$"):
        release.check_wheel(wheel(tmp_path, without=name))


def test_a_wheel_larger_than_the_documentation_says_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    page = tmp_path / "install.md"
    monkeypatch.setattr(release, "INSTALL", page)
    page.write_text("A wheel has at most 0 MB.")
    with pytest.raises(release.Failure, match=r"has 0\.0 MB, more than install\.md says: at most 0 MB"):
        release.check_wheel(wheel(tmp_path))


def test_a_version_of_python_that_is_not_found_is_printed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    used: list[Path] = []
    monkeypatch.setattr(release, "interpreter", lambda minor: Path("python3.12") if minor == 12 else None)
    monkeypatch.setattr(release, "use", lambda _, python: used.append(python))
    release.check_installed(Path(NAME), [])
    assert used == [Path("python3.12")]
    skipped = capsys.readouterr().out.splitlines()
    assert skipped == [f"skipped: Python 3.{minor}, which is not installed" for minor in (11, 13, 14)]


def test_without_any_python_nothing_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "interpreter", lambda _: None)
    with pytest.raises(release.Failure, match="found no Python"):
        release.check_installed(Path(NAME), [])

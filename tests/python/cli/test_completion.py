"""`cordwood completion`: its scripts in the shells themselves."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from scripts import Command


@pytest.fixture
def shell_environment(script_environment: dict[str, str], tmp_path: Path) -> dict[str, str]:
    """With the command on the path, as when the package is installed."""
    program = tmp_path / "bin" / "cordwood"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\nimport sys\nfrom cordwood.cli import main\nsys.exit(main())\n")
    program.chmod(0o755)
    return {**script_environment, "PATH": f"{program.parent}:{script_environment['PATH']}", "HOME": str(tmp_path)}


def completed(environment: dict[str, str], folder: Path, *words: str) -> list[str]:
    """What bash offers for the last of these words, with its own completion of paths."""
    quoted = " ".join(f"'{word}'" for word in ("cordwood", *words))
    script = (
        "source completion.bash\n"
        f"COMP_WORDS=({quoted}); COMP_CWORD={len(words)}\n"
        '_cordwood_completion cordwood\nprintf "%s\\n" "${COMPREPLY[@]}"\n'
    )
    done = subprocess.run(
        ["/bin/bash", "--norc", "-c", script], env=environment, cwd=folder, capture_output=True, text=True, check=True
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_options_and_values(shell_environment: dict[str, str], tmp_path: Path) -> None:
    made = subprocess.run(
        ["/usr/bin/env", "cordwood", "completion", "bash"], env=shell_environment, capture_output=True, check=True
    )
    (tmp_path / "completion.bash").write_bytes(made.stdout)

    def offered(*words: str) -> list[str]:
        return completed(shell_environment, tmp_path, *words)

    assert offered("app") == ["append", "apply-retention"]
    assert offered("cat", "--key") == ["--key", "--key-prefix"]
    assert offered("cat", "--format", "") == ["jsonl", "csv", "arrow", "parquet"]
    assert offered("count", "--by", "h") == ["hour"]
    assert offered("ls", "--sort", "") == ["name", "size", "time"]
    assert "Europe/Berlin" in offered("cat", "--tz", "Europe/B")
    # nothing of its own for a path: then bash completes files, because of `-o default`
    assert offered("cat", "/t") == []


def test_bash_completes_files_where_nothing_is_offered(command: Command) -> None:
    assert "complete -o default -F _cordwood_completion cordwood" in command("completion", "bash")[1]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_the_scripts_of_other_shells_are_accepted_by_them(
    command: Command, tmp_path: Path, shell_environment: dict[str, str], shell: str
) -> None:
    code, out, _ = command("completion", shell)
    assert code == 0
    assert "_CORDWOOD_COMPLETE=complete_" + shell in out
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(out)
    subprocess.run([program, "-n", str(script)], check=True)
    if shell == "fish":
        line = f"source {script}; complete -C 'cordwood app'"
        done = subprocess.run([program, "-c", line], env=shell_environment, capture_output=True, text=True, check=True)
        assert [text.split("\t")[0] for text in done.stdout.splitlines()] == ["append", "apply-retention"]


def test_other_shells_are_refused(command: Command) -> None:
    code, out, error = command("completion", "tcsh")
    assert (code, out) == (2, "")
    assert "'bash', 'zsh', 'fish'" in error

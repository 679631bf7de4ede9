"""What `cordwood --version` prints."""

from importlib.metadata import version

from scripts import Command

import cordwood as cw


def test_the_versions_of_everything_that_a_report_needs_are_printed(command: Command) -> None:
    code, shown, _ = command("--version")
    lines = shown.splitlines()
    assert code == 0
    assert lines[:2] == [f"cordwood {version('cordwood')}", f"core {cw.__version__}, Kafka 4.3.1"]
    assert f"pyarrow {version('pyarrow')}" in lines
    assert lines[-1].startswith("Spark data source in Java: ")

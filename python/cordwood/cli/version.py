"""What `cordwood --version` prints: what a report of a problem needs."""

import platform
from importlib.metadata import PackageNotFoundError, version

import cordwood
from cordwood.spark.jar_file import jar

__all__ = ["versions"]

_KAFKA = "4.3.1"
_OPTIONAL = ("pyarrow", "pandas", "polars", "matplotlib", "pyspark")


def _version_of(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def _jar() -> str:
    try:
        return jar()
    except FileNotFoundError:
        return "not included"


def versions() -> str:
    """Return the versions of the package, its core, Python and optional packages, and of the Kafka that it follows."""
    return "\n".join(
        [
            f"cordwood {_version_of('cordwood')}",
            f"core {cordwood.__version__}, Kafka {_KAFKA}",
            f"Python {platform.python_version()}, {platform.system()} {platform.machine()}",
            *(f"{package} {_version_of(package)}" for package in _OPTIONAL),
            f"Spark data source in Java: {_jar()}",
        ]
    )

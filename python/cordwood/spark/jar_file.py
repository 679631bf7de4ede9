"""The jar in this package, with the data source in Java."""

from importlib.resources import files

__all__ = ["jar"]

_FILE = "jars/cordwood-spark.jar"


def jar() -> str:
    """Return the path of the jar with the data source in Java, for `spark.jars`, `--jars` and `addArtifacts`.

    The jar contains the native library for Linux on the processor that this package was built for. Needs no pyspark.

    Raises:
        FileNotFoundError: this installation has no jar.
    """
    path = files("cordwood.spark").joinpath(_FILE)
    if not path.is_file():
        raise FileNotFoundError(
            f"expected {path}, which wheels of cordwood contain, found no such file: "
            "`make jar` in a checkout creates it (a JDK, Maven)"
        )
    return str(path)

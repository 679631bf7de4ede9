"""The entry point of the command `cordwood`.

It is not part of the package `cordwood`, whose import takes a while: a Ctrl-C during the import ends the command as one
does later, without a traceback.
"""

__all__ = ["main"]


def main() -> int:
    """Run the command line; return the exit code."""
    try:
        from cordwood.cli import main as run  # noqa: PLC0415  (a Ctrl-C may come while it is imported)

        return run()
    except KeyboardInterrupt:
        return 130

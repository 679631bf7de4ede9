"""Paths of the command line."""

from pathlib import Path

__all__ = ["parse_path"]


def parse_path(text: str) -> Path:
    """Return a path. An empty text, such as a variable that is not set, would be the current directory."""
    if not text:
        import typer  # noqa: PLC0415  (see `direct`)

        raise typer.BadParameter("expected a path, which is not empty")
    return Path(text)

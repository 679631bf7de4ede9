"""An extension of Griffe: the examples of docstrings become code blocks.

Docstrings are Markdown, in which `>>>` would begin three nested quotations.
"""

import re
from typing import Any

import griffe

# an example and its output, up to an empty line
_EXAMPLE = re.compile(r"^>>> .*(?:\n.+)*", re.MULTILINE)


class FencedExamples(griffe.Extension):
    """Writes each example of a docstring between fences."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:  # noqa: ANN401  (Griffe passes more)
        """Change the docstring of an object."""
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(lambda found: f"```pycon\n{found[0]}\n```", obj.docstring.value)

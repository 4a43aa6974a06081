"""Long results files on a page: as they are, in the bytes of the file; sortable.js makes a table of them in the browser."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from sphinx.util.docutils import SphinxDirective


class DataTable(SphinxDirective):
    """Show a CSV file, named from the page, with headings in its first line."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Return the file as text, which is what a reader without scripts sees."""
        path = Path(self.env.relfn2path(self.arguments[0])[1])
        self.env.note_dependency(str(path))
        return [
            nodes.raw(
                "",
                f'<pre class="data-table">{escape(path.read_text(encoding="utf-8"))}</pre>\n',
                format="html",
            )
        ]

"""Long results files on a page: as they are, in the bytes of the file; sortable.js makes a table of them in the browser."""

from __future__ import annotations

import csv
from html import escape
from pathlib import Path
from typing import ClassVar

from docutils import nodes
from sphinx import addnodes
from sphinx.util.docutils import SphinxDirective


class DataTable(SphinxDirective):
    """Show a CSV file, named from the page, with headings in its first line, and below it a link that downloads it."""

    required_arguments: ClassVar[int] = 1

    def run(self) -> list[nodes.Node]:
        """Return the file as text, which is what a reader without scripts sees, and the link."""
        target = self.arguments[0]
        path = Path(self.env.relfn2path(target)[1])
        self.env.note_dependency(str(path))
        text = path.read_text(encoding="utf-8")
        box = f'<pre class="data-table">{escape(text)}</pre>\n'
        link = addnodes.download_reference("", "", nodes.literal("", path.name), reftarget=target)
        rows = len(list(csv.reader(text.splitlines()))) - 1
        return [
            nodes.raw("", box, format="html"),
            nodes.paragraph("", "", link, nodes.Text(f", {rows:,} rows")),
        ]

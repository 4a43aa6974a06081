// Tables of the class "sortable": a click on a heading sorts by its column, a field above keeps the rows that have all words.
document.addEventListener("DOMContentLoaded", () => {
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const headings = [...table.tHead.rows[0].cells];

    const field = document.createElement("input");
    field.type = "search";
    field.placeholder = "keep rows with all of these words";
    field.setAttribute("aria-label", field.placeholder);
    (table.closest(".table-wrapper") ?? table).before(field);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      for (const row of body.rows) {
        const cells = [...row.cells].map((cell) => cell.textContent.trim().toLowerCase());
        const first = cells.slice(0, 4); // a number is a count, a dimension or a seed, and no error
        row.hidden = !words.every((word) =>
          isNaN(word) ? cells.some((text) => text.includes(word)) : first.includes(word)
        );
      }
    });

    const value = (row, k) => {
      const text = row.cells[k].textContent.trim();
      const number = text.match(/^-?[\d,]*\.?\d+(e[-+]?\d+)?(?=$|[ %(])/i); // with an interval or without
      return number ? Number(number[0].replaceAll(",", "")) : text;
    };
    const compare = (a, b) => {
      if ((a === "") !== (b === "")) return a === "" ? 1 : -1; // empty cells stay below
      if (typeof a === "number" && typeof b === "number") return a - b;
      return String(a).localeCompare(String(b));
    };
    headings.forEach((heading, k) => {
      heading.tabIndex = 0;
      const sort = () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((other) => other.removeAttribute("aria-sort"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row, k), row]);
        rows.sort(([a], [b]) => (down && a !== "" && b !== "" ? compare(b, a) : compare(a, b)));
        body.append(...rows.map(([, row]) => row));
      };
      heading.addEventListener("click", sort);
      heading.addEventListener("keydown", (event) => event.key === "Enter" && sort());
    });
  }
});

// Tables of the class "sortable": buttons in the headings sort, a field above keeps the rows that have all words.
// A <pre class="data-table"> holds a CSV file, of which a sortable table is made first.
document.addEventListener("DOMContentLoaded", () => {
  const made = (tag, text = "", more = {}) => Object.assign(document.createElement(tag), { textContent: text }, more);

  function rowsOf(csv) {
    const rows = [[]];
    for (const [, quoted, plain, end] of csv.trimEnd().matchAll(/(?:"((?:[^"]|"")*)"|([^,\n]*))(,|\n|$)/g)) {
      rows.at(-1).push(quoted?.replaceAll('""', '"') ?? plain);
      if (end === "\n") rows.push([]);
      if (end === "") break;
    }
    return rows;
  }

  for (const file of document.querySelectorAll("pre.data-table")) {
    const [heads, ...rows] = rowsOf(file.textContent);
    const table = made("table", "", { className: "docutils sortable" });
    table.createTHead().insertRow().append(...heads.map((text) => made("th", text, { scope: "col" })));
    table.createTBody().append(
      ...rows.map((cells) => {
        const row = made("tr");
        row.append(...cells.map((text) => made("td", text)));
        return row;
      })
    );
    const box = made("div", "", { className: "table-wrapper sortable" });
    box.append(table);
    file.replaceWith(box);
  }

  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const headings = [...table.tHead.rows[0].cells];
    const box = table.closest(".table-wrapper") ?? table;
    for (const cell of table.querySelectorAll("td")) cell.classList.toggle("long", cell.textContent.trim().length > 20);
    for (const heading of headings) heading.innerHTML = heading.innerHTML.replace(/_(?=[^<>]*(<|$))/g, "_<wbr>"); // breaks

    const field = made("input", "", { type: "search", placeholder: "keep rows with all of these words" });
    field.setAttribute("aria-label", field.placeholder);
    const found = made("p", "", { className: "found" });
    found.setAttribute("role", "status");
    box.before(field, found);
    field.addEventListener("input", () => {
      const words = field.value.toLowerCase().split(/\s+/).filter(Boolean);
      let kept = 0;
      for (const row of body.rows) {
        const cells = [...row.cells].map((cell) => cell.textContent.trim().toLowerCase());
        const first = cells.slice(0, 4); // a number is a count, a dimension or a seed, and no error
        row.hidden = !words.every((word) =>
          isNaN(word) ? cells.some((text) => text.includes(word)) : first.includes(word)
        );
        kept += !row.hidden;
      }
      found.textContent = !words.length ? "" : kept ? `${kept} of ${body.rows.length} rows` : "No row has all of these words.";
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
    const buttons = headings.map((heading, k) => {
      const button = made("button", "", { type: "button", title: "sort by this column" });
      button.append(...heading.childNodes);
      heading.append(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const down = heading.getAttribute("aria-sort") === "ascending";
        headings.forEach((other) => other.setAttribute("aria-sort", "none"));
        heading.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...body.rows].map((row) => [value(row, k), row]);
        rows.sort(([a], [b]) => (down && a !== "" && b !== "" ? compare(b, a) : compare(a, b)));
        body.append(...rows.map(([, row]) => row));
      });
      button.addEventListener("keydown", (event) => {
        const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
        if (step === undefined || !buttons[k + step]) return;
        event.preventDefault();
        buttons[k + step].focus();
      });
      return button;
    });
  }
});

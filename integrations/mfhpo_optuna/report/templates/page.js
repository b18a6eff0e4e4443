"use strict";

for (const plot of document.querySelectorAll("[data-figure]")) {
  const figure = JSON.parse(document.getElementById(plot.dataset.figure).textContent);
  Plotly.newPlot(plot, figure.data, figure.layout, { responsive: true, displayModeBar: false });
}
for (const event of ["beforeprint", "afterprint"]) {
  window.addEventListener(event, () => document.querySelectorAll("[data-figure]").forEach((plot) => Plotly.Plots.resize(plot)));
}

const table = document.getElementById("table");
if (table) {
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const headers = [...table.tHead.rows[0].cells];

  // Numbers by their size, before texts; empty cells last, whichever way.
  const compare = (one, other) => {
    const [a, b] = [one, other].map((cell) => "key" in cell.dataset ? Number(cell.dataset.key) : null);
    if (a !== null && b !== null) return a < b ? -1 : a > b ? 1 : 0;
    if (a !== null || b !== null) return a !== null ? -1 : 1;
    return one.textContent.localeCompare(other.textContent, undefined, { numeric: true });
  };
  headers.forEach((header, column) => {
    header.querySelector("button").addEventListener("click", () => {
      const falls = header.getAttribute("aria-sort") === "ascending";
      headers.forEach((other) => other.setAttribute("aria-sort", "none"));
      header.setAttribute("aria-sort", falls ? "descending" : "ascending");
      rows.sort((one, other) => {
        const [a, b] = [one.cells[column], other.cells[column]];
        if (!a.textContent || !b.textContent) return !a.textContent - !b.textContent;
        return falls ? compare(b, a) : compare(a, b);
      });
      body.append(...rows);
    });
  });

  const filter = document.getElementById("filter");
  const shown = document.getElementById("shown");
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let count = 0;
    for (const row of rows) {
      const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      count += !row.hidden;
    }
    shown.textContent = words.length ? `${count} of ${rows.length} trials` : `${rows.length} trials`;
  });
}

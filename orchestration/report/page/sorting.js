// Tables whose rows are sorted by a press on a heading; a third press restores the given order.

function makeSortable(table) {
  const bodies = [...table.tBodies].map((body) => ({
    body,
    fixed: [...body.rows].filter((row) => row.classList.contains("group")),
    rows: [...body.rows].filter((row) => !row.classList.contains("group")),
  }));
  const headings = leafHeadings(table);
  headings.forEach((heading, column) => {
    const button = el("button", { type: "button" }, heading.textContent);
    heading.replaceChildren(button);
    button.addEventListener("click", () => {
      const order = { none: "descending", descending: "ascending", ascending: "none" };
      const next = order[heading.getAttribute("aria-sort") ?? "none"];
      headings.forEach((other) => other.removeAttribute("aria-sort"));
      if (next !== "none") heading.setAttribute("aria-sort", next);
      for (const { body, fixed, rows } of bodies) body.append(...fixed, ...sorted(rows, column, next));
    });
  });
}

// Headings in the order of the columns: those of labels span all lines of the head and come first.
function leafHeadings(table) {
  return [...table.tHead.rows].flatMap((row) => [...row.cells]).filter((cell) => "sort" in cell.dataset);
}

function sorted(rows, column, order) {
  if (order === "none") return rows;
  const sign = order === "ascending" ? 1 : -1;
  const value = (row) => {
    const cell = row.cells[column];
    if (cell.tagName === "TH") return cell.textContent;
    return "value" in cell.dataset ? Number(cell.dataset.value) : null;
  };
  return [...rows].sort((one, other) => {
    const [a, b] = [value(one), value(other)];
    if (a === null || b === null) return (a === null) - (b === null); // missing ones last, either way
    return sign * (typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b);
  });
}

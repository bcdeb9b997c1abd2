// Tables that are lists: a click on a heading sorts, words in the field above choose rows. Nothing is loaded.
const number = text => text.replaceAll(",", "").trim();
const order = (a, b) => a !== "" && b !== "" && !isNaN(a) && !isNaN(b) ? a - b : a.localeCompare(b);
for (const table of document.querySelectorAll("table.list")) {
  const body = table.tBodies[0], rows = [...body.rows], heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = document.createElement("button");
    button.append(...head.childNodes);
    head.append(button);
    button.onclick = () => {
      const down = head.getAttribute("aria-sort") === "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const key = row => number(row.cells[column]?.textContent ?? "");
      body.append(...rows.sort((a, b) => order(key(a), key(b)) * (down ? -1 : 1)));
    };
  });
  if (rows.length < 3) continue;
  const field = document.createElement("input");
  field.type = "search";
  field.placeholder = "filter: words of a row";
  field.setAttribute("aria-label", "filter");
  field.oninput = () => {
    const words = field.value.toLowerCase().split(/\s+/);
    for (const row of rows) row.hidden = !words.every(word => row.textContent.toLowerCase().includes(word));
  };
  table.parentElement.before(field);
}

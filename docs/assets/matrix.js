/* The page of recorded launches: a filter by MPI, above the first table. Without this script all rows are shown. */
document.addEventListener("DOMContentLoaded", () => {
  const legend = document.querySelector("#outcomes");
  if (!legend) return;
  const cell = (row, place) => (row.cells[place] ? row.cells[place].textContent.trim() : "");
  const rows = [];
  const mpi = {}; /* image → name of its MPI, without the release */
  for (const table of document.querySelectorAll(".md-typeset table")) {
    const head = [...table.querySelectorAll("th")].map((one) => one.textContent.trim());
    const image = head.indexOf("image");
    if (image < 0) continue;
    const column = head.indexOf("MPI");
    for (const row of table.querySelectorAll("tbody tr")) {
      const name = cell(row, image);
      if (column >= 0) mpi[name] = cell(row, column).replace(/ [\d.]+.*$/, "");
      rows.push([row, name]);
    }
  }
  const label = document.createElement("label");
  label.className = "outcomes-filter";
  label.textContent = "MPI of the image: ";
  const select = document.createElement("select");
  for (const name of ["all", ...[...new Set(Object.values(mpi))].sort()]) select.add(new Option(name));
  select.addEventListener("change", () => {
    for (const [row, name] of rows) row.hidden = select.value !== "all" && mpi[name] !== select.value;
  });
  label.append(select);
  legend.before(label);
});

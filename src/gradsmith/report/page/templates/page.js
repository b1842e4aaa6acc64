"use strict";
// Everything is in the page already; this makes it sortable and searchable.
(() => {
  const all = (query, root = document) => [...root.querySelectorAll(query)];
  const byId = (id) => document.getElementById(id);
  const table = byId("overview");
  for (const tools of all(".tools")) tools.hidden = false;

  // --- a link to an operation opens it
  const openTarget = (behavior) => {
    const target = byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    const folded = target.closest("details");
    if (folded) {
      folded.hidden = false;
      folded.open = true;
      target.scrollIntoView({ behavior });
    }
  };
  addEventListener("hashchange", () => openTarget("auto"));
  openTarget("instant");

  byId("save")?.addEventListener("click", () => {
    const text = byId("results").textContent;
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([text], { type: "application/json" }));
    link.download = "gradsmith-report.json";
    link.click();
    URL.revokeObjectURL(link.href);
  });

  // --- what is folded is printed too
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = all("details:not([open])");
    for (const each of folded) each.open = true;
  });
  addEventListener("afterprint", () => {
    for (const each of folded) each.open = false;
  });

  if (!table) return;
  const body = table.tBodies[0];
  const rows = [...body.rows];

  byId("unfold").addEventListener("click", () => {
    for (const each of all("details.op")) each.open = true;
  });
  byId("fold").addEventListener("click", () => {
    for (const each of all("details.op")) each.open = false;
  });

  // --- search and filter
  const search = byId("search");
  const buttons = all(".verdicts button");
  for (const button of buttons) button.disabled = false;
  let status = "";
  const places = Map.groupBy(all("[data-of]"), (each) => each.dataset.of);
  const textOf = (row) =>
    `${row.textContent} ${byId(row.dataset.for).textContent}`.toLowerCase();
  const texts = new Map(rows.map((row) => [row, textOf(row)]));
  const show = () => {
    const parts = search.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const row of rows) {
      const matches =
        (!status || row.dataset.status === status) &&
        parts.every((part) => texts.get(row).includes(part));
      row.hidden = byId(row.dataset.for).hidden = !matches;
      for (const each of places.get(row.dataset.for) ?? []) each.hidden = !matches;
      shown += matches;
    }
    for (const button of buttons) {
      if (button.dataset.status) {
        button.setAttribute("aria-pressed", button.dataset.status === status);
      } else button.hidden = !status;
    }
    byId("shown").textContent =
      shown === rows.length ? "" : `${shown} of ${rows.length} shown`;
    byId("none").hidden = shown > 0;
  };
  search.addEventListener("input", show);
  for (const button of buttons) {
    button.addEventListener("click", () => {
      status = button.dataset.status === status ? "" : button.dataset.status;
      show();
    });
  }
  addEventListener("keydown", (event) => {
    const typing = event.target.closest?.("input, textarea, [contenteditable]");
    if (event.key !== "/" || typing || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    search.focus();
  });

  // --- sorting: once up, once down, then as it was
  const heads = [...table.tHead.rows[0].cells];
  const valueOf = (row, i) => row.cells[i].dataset.by;
  const compare = (a, b) => {
    if (a === "" || b === "") return a === b ? 0 : a === "" ? 1 : -1; // absent last
    const difference = Number(a) - Number(b);
    return Number.isNaN(difference) ? a.localeCompare(b) : difference;
  };
  const sort = (i, direction) => {
    const sign = direction === "descending" ? -1 : 1;
    const ordered = [...rows];
    if (direction !== "none") {
      ordered.sort((p, q) => {
        const [a, b] = [valueOf(p, i), valueOf(q, i)];
        return a === "" || b === "" ? compare(a, b) : sign * compare(a, b);
      });
    }
    body.append(...ordered);
    heads.forEach((head, k) => {
      if (k === i && direction !== "none") head.setAttribute("aria-sort", direction);
      else head.removeAttribute("aria-sort");
    });
  };
  const next = { null: "ascending", ascending: "descending", descending: "none" };
  heads.forEach((head, i) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => sort(i, next[head.getAttribute("aria-sort")]));
  });
})();

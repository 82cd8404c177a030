// One defense: its runs without an attack, and its cells by attack and threat.

const go = (defense, cell) => { location.hash = cell === undefined ? `defense-${defense}` : `defense-${defense}-${cell}`; };

function show(moves = true) {
  const match = /^#defense-(\d+)(?:-(\d+))?$/.exec(location.hash);
  const defense = match ? D.defenses[Number(match[1])] : undefined;
  const cell = match && match[2] !== undefined ? D.cells[Number(match[2])] : undefined;
  const detail = byId("detail"), below = byId("cell");
  detail.hidden = defense === undefined;
  below.hidden = defense === undefined || !cell || cell.defense !== defense;
  if (detail.hidden) return;
  detail.replaceChildren(...defenseView(Number(match[1]), defense, cell));
  if (!below.hidden) below.replaceChildren(...cellView(cell, Number(match[1])));
  if (!moves) return;
  const title = byId(below.hidden ? "detail-title" : "cell-title");
  title.focus({ preventScroll: true });
  title.scrollIntoView({ block: "start" });
}

function defenseView(index, defense, current) {
  const runs = D.honest.filter((h) => h.defense === defense);
  const parts = [
    make("h2", { id: "detail-title", tabindex: "-1" }, defense),
    make("button", { type: "button", class: "back", on: () => { location.hash = ""; byId("ranking").focus(); } }, "Back to the ranking"),
    make("h3", {}, "Without an attack"),
    runs.length ? honestTable(runs) : make("p", {}, "It was not measured."),
    ...runs.filter((h) => h.command).flatMap((h) => command(h.command, several ? `Measures it again on ${h.problem}` : "Measures it again")),
  ];
  parts.push(make("h3", {}, "Attack by attack"), make("p", { class: "soft" }, "A number is the mean score over seeds. Choose a cell "
    + "for its seeds, curves, pictures and command. Dashed: not in the score above, being "
    + "of a threat that is not chosen or of an attack that does not count in scores. Hatched: no score."));
  for (const problem of D.problems.filter((p) => p)) {
    for (const axis of ["integrity", "privacy"]) {
      const cells = D.cells.filter((c) => c.defense === defense && c.problem === problem && c.axis === axis);
      if (cells.length) parts.push(...heatMap(index, problem, axis, cells, current));
    }
  }
  return parts;
}

function honestTable(runs) {
  const measure = new Map(D.arenas.map((a) => [a.name, a.measure]));
  const kinds = new Set(runs.map((h) => measure.get(h.problem)));
  const quality = kinds.size > 1 ? "accuracy or R²" : kinds.has("R2") ? "R²" : "accuracy";
  const heads = ["problem", "status", quality, "utility", "bytes up / down", "time / FedAvg's", "peak memory", "guarantees", "warnings"];
  const lines = runs.map((h) => [
    h.problem, h.status + (h.reason ? `: ${h.reason}` : ""),
    h.accuracy.size ? `${kinds.size > 1 && measure.get(h.problem) === "R2" ? "R² " : ""}${plain(mean([...h.accuracy.values()]))}` : NOTHING,
    h.utility.size ? interval(mean([...h.utility.values()])) : NOTHING,
    h.keys.length ? `${bytes(h.bytes_up)} / ${bytes(h.bytes_down)}` : NOTHING,
    h.relative_seconds === null ? NOTHING : `${fixed(h.relative_seconds, 2)} ×`,
    h.keys.length ? bytes(h.peak_bytes) : NOTHING,
    h.guarantees.map(([name, value]) => `${name} ${short(value)}`).join(", ") || "nothing", h.marks.join("; ") || "none",
  ]);
  return table(heads, lines, "Honest runs");
}

function heatMap(index, problem, axis, cells, current) {
  const cut = readCut();
  const attacks = [...new Set(cells.map((c) => c.attack))], threats = [...new Set(cells.map((c) => c.threat))].sort();
  const what = axis === "integrity" ? "Integrity: what poisoning leaves" : "Privacy: what curious parties cannot read";
  const title = several ? `${what}, on ${problem}` : what;
  const lines = attacks.map((attack) => make("tr", {}, make("th", { scope: "row" }, attack), ...threats.map((threat) => {
    const c = cells.find((x) => x.attack === attack && x.threat === threat);
    if (!c) return make("td", {}, make("span", { class: "soft" }, "not planned"));
    const text = c.scores.size ? fixed(c.mean, 2) + (c.status === "ok" ? "" : ` ${c.status}`) : c.status;
    const look = [c.scores.size ? heat(c.mean) : "hatched", has(cut, c) ? "" : "out",
      ["failed", "missing", "diverged", "mixed"].includes(c.status) ? "bad" : ""].filter(Boolean).join(" ");
    const why = c.counts ? "not among the threats chosen" : c.excluded ? `does not count: ${c.excluded}` : "beside the score";
      const beside = has(cut, c) ? "" : `, ${why}`;
    const label = `${attack} as ${threat}: ${text}${beside}`;
    const button = make("button", {
      type: "button", class: look, "aria-label": label, "aria-current": c === current ? "true" : null,
      on: () => go(index, D.cells.indexOf(c)),
    }, text);
    return make("td", {}, button);
  })));
  return [make("h4", {}, title),
    make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": title }, make("table", { class: "heat" },
      make("thead", {}, make("tr", {}, make("th", { scope: "col" }, "attack"), ...threats.map((t) => make("th", { scope: "col" }, t)))),
      make("tbody", {}, ...lines)))];
}

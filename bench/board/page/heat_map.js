// The overview: each defense against each attack, with the lowest score of the cells of that attack.

function drawMap(cut, rows) {
  const cells = D.cells.filter((c) => admits(cut, c) && (c.counts || c.excluded));
  const attacks = ["integrity", "privacy"].map((axis) => [axis, [...new Set(cells.filter((c) => c.axis === axis).map((c) => c.attack))]])
    .filter(([, names]) => names.length);
  byId("map").hidden = !attacks.length;
  if (!attacks.length) return;
  const titles = { integrity: "integrity, under poisoning by", privacy: "privacy, against inference by" };
  const groups = attacks.map(([axis, names]) => make("th", { scope: "colgroup", colspan: names.length, class: "group" }, titles[axis]));
  const names = attacks.flatMap(([axis, list]) => list.map((attack, i) => ({ axis, attack, begins: i === 0 })));
  const head = make("thead", {},
    make("tr", {}, make("th", { scope: "col", rowspan: 2 }, "defense"), ...groups),
    make("tr", {}, ...names.map((n) => make("th", { scope: "col", class: n.begins ? "turned group" : "turned" }, make("span", {}, n.attack)))));
  const body = rows.map((r) => {
    const mine = cells.filter((c) => c.defense === r.defense);
    const squares = names.map((n) => make("td", { class: n.begins ? "group" : null },
      square(n.attack, mine.filter((c) => c.axis === n.axis && c.attack === n.attack))));
    return make("tr", {}, make("th", { scope: "row" }, r.defense), ...squares);
  });
  byId("overview").replaceChildren(head, make("tbody", {}, ...body));
}

// A link to the cell with the lowest score. Cells that count come first, then those that do not, each with its reason.
function square(attack, cells) {
  if (!cells.length) return make("span", { class: "soft" }, "·");
  const counted = cells.filter((c) => c.counts);
  const some = counted.length ? counted : cells;
  const scored = some.filter((c) => c.scores.size);
  const c = scored.length ? scored.reduce((a, b) => (before(b, a) ? b : a)) : leastKnown(some);
  const partial = some.some((x) => !["ok", "n/a"].includes(x.status));
  const number = c.scores.size ? fixed(c.mean, 2) + (partial ? "*" : "") : c.status;
  const text = counted.length ? number : `(${number})`;
  const look = [c.scores.size ? heat(c.mean) : "hatched", counted.length ? "" : "excluded"].filter(Boolean).join(" ");
  const why = counted.length ? "" : `. It does not count: ${c.excluded}`;
  const label = `${attack} against ${c.defense}: ${number}, as ${c.threat}${several ? `, on ${c.problem}` : ""}${why}`;
  return make("a", { href: `#defense-${D.defenses.indexOf(c.defense)}-${D.cells.indexOf(c)}`, class: look, "aria-label": label, title: label }, text);
}

// Of cells without a score the one that says least, so that nothing looks better than it is.
function leastKnown(cells) {
  const order = ["failed", "diverged", "mixed", "missing", "n/a"];
  return cells.reduce((a, b) => (order.indexOf(b.status) < order.indexOf(a.status) ? b : a));
}

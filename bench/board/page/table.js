// The table of the ranking: its cells, its order, its columns.

function caseOf(s) {
  if (!s.worst) return s.value && !s.cells ? "no attack could start" : NOTHING;
  const by = s.worst.found_by ? `, found by ${s.worst.found_by}` : "";
  return `${s.worst.attack}: ${s.worst.threat}${several ? `, on ${s.worst.problem}` : ""}${by}`;
}

function countsText(counts) {
  const names = [...D.statuses, ...[...counts.keys()].filter((k) => !D.statuses.includes(k)).sort()];
  return names.filter((n) => counts.get(n)).map((n) => `${counts.get(n)} ${n}`).join(", ") || "none";
}

// What a column is sorted by; null comes last whichever way.
function sortValue(r, key) {
  if (key === "defense") return r.defense.toLowerCase();
  if (key === "cells") return r.counts.get("ok") || 0;
  if (key === "rank") return r.place;
  if (key === "bytes" || key === "time") return r[key];
  if (key.startsWith("average:")) return r[key.slice(8)].average;
  return r[key].value ? r[key].value.value : null;
}

// The number alone stays where there is no place for its interval.
function numberParts(text) {
  const space = text.indexOf(" ");
  return space < 0 ? [text] : [text.slice(0, space), make("span", { class: "interval" }, text.slice(space))];
}

const FIRST = ["rank", "defense", "weighted", "lowest"];
const BESIDE = ["utility", "integrity", "privacy", "overall"];

// Which columns fold away: "beside" on narrow screens, "more" always.
const columnClass = (key) => (FIRST.includes(key) ? "" : BESIDE.includes(key) ? "beside" : "more");

function tableCell(r, key) {
  const classed = (...names) => names.filter(Boolean).join(" ") || null;
  const look = columnClass(key);
  if (key === "defense") {
    const name = make("button", { type: "button", class: "name", on: () => go(D.defenses.indexOf(r.defense)) }, r.marked ? `${r.defense} †` : r.defense);
    return make("th", { scope: "row" }, name, r.unranked ? make("small", { class: "why" }, `no rank: ${r.unranked}`) : null);
  }
  if (key === "rank") return make("td", { class: "rank" }, rankText(r.rank));
  if (key === "cells") return make("td", { class: look }, countsText(r.counts));
  if (key === "bytes" || key === "time") return make("td", { class: look }, r[key] === null ? NOTHING : `${fixed(r[key], 2)} ×`);
  if (key.startsWith("average:")) {
    const average = r[key.slice(8)].average;
    return make("td", { class: look }, average === null ? NOTHING : fixed(average, 2));
  }
  const s = r[key];
  const shade = s.value && s.cells ? heat(s.value.value) : s.value ? "hatched" : "";
  const td = make("td", { class: classed("score", shade, look) }, ...numberParts(scoreText(s)));
  if (s.value) td.dataset.value = s.value.value;
  if (key === "integrity" || key === "privacy") td.append(make("small", { class: "case" }, caseOf(s)));
  if (key === "lowest") td.append(make("small", { class: "axis" }, r.axis));
  return td;
}

const heads = [...document.querySelectorAll("#board thead th")];
let order = { key: "rank", up: true };

function drawTable(cut, ranked) {
  const wanted = byId("search").value.trim().toLowerCase();
  const rows = [...ranked].sort((a, b) => {
    const [x, y] = [sortValue(a, order.key), sortValue(b, order.key)];
    if (x === null || y === null) return (x === null) - (y === null);
    return order.up ? compare([x], [y]) : compare([y], [x]);
  });
  const lines = rows.map((r) => {
    const line = make("tr", { class: r.unranked ? "unranked" : null });
    for (const head of heads) {
      const cell = tableCell(r, head.dataset.key);
      cell.hidden = hidden(head.dataset.key, cut);
      line.append(cell);
    }
    line.hidden = Boolean(wanted) && !line.textContent.toLowerCase().includes(wanted);
    return line;
  });
  document.querySelector("#board tbody").replaceChildren(...lines);
  for (const head of heads) {
    head.hidden = hidden(head.dataset.key, cut);
    if (head.dataset.key === order.key) head.setAttribute("aria-sort", order.up ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  }
  byId("shown").textContent = `${lines.filter((l) => !l.hidden).length} of ${plural(rows.length, "defense")} shown`;
  const without = unrankedLines(ranked);
  byId("unranked").replaceChildren(...without.map((text) => make("p", { class: "soft" }, text)));
  byId("no-rank").hidden = !without.length;
}

// The defenses without a rank, one line for each reason.
function unrankedLines(rows) {
  const reasons = [...new Set(rows.map((r) => r.unranked).filter(Boolean))];
  return reasons.map((why) => `No rank: ${rows.filter((r) => r.unranked === why).map((r) => r.defense).join(", ")}: ${why}`);
}

// The tables beside the ranking: what can be had without a federation, and what nodes reach without a server.
function drawBeside(cut) {
  for (const [name, choices] of Object.entries(D.beside)) {
    const lines = choices[D.problems.indexOf(cut.problem)];
    byId(name).hidden = !lines.length;
    const rows = lines.map((texts) => make("tr", {}, ...texts.map((text, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, text))));
    document.querySelector(`#${name} tbody`).replaceChildren(...rows);
  }
}

function sortBy(key) {
  // Ranks, names and costs are read from the least, scores from the best.
  const first = ["rank", "defense", "bytes", "time"].includes(key);
  order = order.key === key ? { key, up: !order.up } : { key, up: first };
  const cut = readCut();
  drawTable(cut, rankingRows(cut));
}

function wireTable() {
  for (const head of heads) {
    const button = make("button", { type: "button", on: () => sortBy(head.dataset.key) }, ...head.childNodes);
    head.replaceChildren(button);
  }
  const board = byId("board"), more = byId("more");
  const fold = (few) => {
    board.classList.toggle("few", few);
    document.querySelector(".first").classList.toggle("wide", !few);
    more.textContent = few ? "More columns" : "Fewer columns";
    more.setAttribute("aria-expanded", String(!few));
  };
  more.hidden = false;
  more.addEventListener("click", () => fold(!board.classList.contains("few")));
  fold(true);
}

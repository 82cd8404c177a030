"use strict";
// The leaderboard page. Scores are worked out as in fedarena/board/ranking.py, and a test holds the two together.
// Everything that comes from the data reaches the page as text nodes and attributes, never as markup.
(() => {
  const D = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);

  // -- numbers ---------------------------------------------------------------------------------------

  // The correctly rounded sum, as Python's math.fsum: partial sums are kept exactly, then rounded once.
  function fsum(values) {
    let parts = [];
    for (let x of values) {
      const partials = [];
      for (let y of parts) {
        if (Math.abs(x) < Math.abs(y)) [x, y] = [y, x];
        const sum = x + y, rest = y - (sum - x);
        if (rest) partials.push(rest);
        x = sum;
      }
      partials.push(x);
      parts = partials;
    }
    let n = parts.length;
    if (!n) return 0;
    let sum = parts[--n], rest = 0;
    while (n > 0) {
      const x = sum, y = parts[--n];
      sum = x + y;
      rest = y - (sum - x);
      if (rest) break;
    }
    // Half-way cases go to even only if nothing smaller follows.
    if (n > 0 && Math.sign(rest) * Math.sign(parts[n - 1]) > 0) {
      const twice = 2 * rest, up = sum + twice;
      if (twice === up - sum) sum = up;
    }
    return sum;
  }

  const fmean = (values) => fsum(values) / values.length;

  function mean(values) {
    const value = fmean(values), n = values.length;
    if (n < 2) return { value, half: null, n };
    const deviation = Math.sqrt(fsum(values.map((x) => (x - value) ** 2)) / (n - 1));
    return { value, half: (D.t[n - 1] * deviation) / Math.sqrt(n), n };
  }

  // As Python prints: exact ties, which have 2^(digits + 1) as denominator, go to the even digit.
  function fixed(x, digits) {
    const scaled = x * 2 ** (digits + 1);
    if (Number.isInteger(scaled) && Math.abs(scaled) % 2 === 1 && digits > 0) {
      const low = Math.floor(x * 10 ** digits);
      return ((low % 2 === 0 ? low : low + 1) / 10 ** digits).toFixed(digits);
    }
    return x.toFixed(digits);
  }

  const NOTHING = "–";

  function interval(m) {
    if (!m) return NOTHING;
    if (m.half === null && !m.ends) return fixed(m.value, 2);
    const [low, high] = m.ends || [m.value - m.half, m.value + m.half];
    if (m.ends || low < 0 || high > 1) return `${fixed(m.value, 2)} (${fixed(Math.max(0, low), 2)} to ${fixed(Math.min(1, high), 2)})`;
    return `${fixed(m.value, 2)} ± ${fixed(m.half, 2)}`;
  }

  const scoreText = (s) => (s.value && !s.cells ? "n/a" : interval(s.value));

  // -- scores and ranks ------------------------------------------------------------------------------

  const has = (cut, c) => c.counts && admits(cut, c);

  const admits = (cut, c) => (!cut.problem || c.problem === cut.problem)
    && (c.axis === "integrity" ? (cut.knows.includes(c.knows) || (c.knows === "own" && cut.knows.includes("omniscient"))) : cut.parties.includes(c.party));

  const empty = () => ({ value: null, seeds: new Map(), worst: null, average: null, cells: 0 });

  // Among equals the same one as in the table: what the paper's form does already first, then by name.
  function before(a, b) {
    const order = (c) => [c.mean, c.form === "paper" ? 0 : 1, c.problem, c.defense, c.attack, c.party, c.form, c.knows];
    const [x, y] = [order(a), order(b)];
    const i = x.findIndex((value, k) => value !== y[k]);
    return i >= 0 && x[i] < y[i];
  }

  // The interval of the lowest true mean, as in fedarena.board.lowest_mean.
  function lowestMeanInterval(cells) {
    const lists = cells.map((c) => [...c.scores.values()]).filter((values) => values.length > 1);
    const distinct = [...new Map(lists.map((values) => [JSON.stringify(values), values])).values()];
    let low = Infinity, high = Infinity;
    for (const values of distinct) {
      const { value, half, n } = mean(values);
      low = Math.min(low, value - half);
      high = Math.min(high, value + (half / D.t[n - 1]) * D.t_together[distinct.length][n - 1]);
    }
    return [Number(low.toFixed(9)), Number(high.toFixed(9))];
  }

  function worst(cells) {
    const scored = cells.filter((c) => c.scores.size);
    if (!scored.length) {
      const seeds = cells.length ? common(cells.map((c) => c.statuses)) : [];
      if (!seeds.length || cells.some((c) => c.status !== "n/a")) return empty();
      const untouched = new Map(seeds.map((s) => [s, 1]));
      return { ...empty(), value: mean([...untouched.values()]), seeds: untouched };
    }
    const least = scored.reduce((a, b) => (before(b, a) ? b : a));
    const value = mean([...least.scores.values()]);
    if (value.half !== null && scored.length > 1) Object.assign(value, { half: null, ends: lowestMeanInterval(scored) });
    return { value, seeds: least.scores, worst: least, average: fmean(scored.map((c) => c.mean)), cells: scored.length };
  }

  const common = (maps) => [...maps[0].keys()].filter((s) => maps.every((m) => m.has(s))).sort((a, b) => a - b);

  function together(parts) {
    const seeds = parts.length ? common(parts) : [];
    if (!seeds.length) return empty();
    const bySeed = new Map(seeds.map((s) => [s, fmean(parts.map((p) => p.get(s)))]));
    return { ...empty(), value: mean([...bySeed.values()]), seeds: bySeed, cells: parts.length };
  }

  const useful = new Set(D.useful);
  const level = (s) => (s.value ? s.value.value : 0);

  // The lowest of the scores that count, with the interval of the lowest true mean of all their parts.
  function lowest(axes, scores, cells) {
    if (axes.some((name) => !scores[name].value)) return { axis: "", score: empty() };
    const axis = axes.reduce((a, b) => (level(scores[b]) < level(scores[a]) ? b : a));
    const least = scores[axis], value = { ...least.value };
    const parts = [{ scores: scores.utility.seeds }, ...cells.filter((c) => c.scores.size)];
    if (parts.length > 1 && (value.half !== null || value.ends)) Object.assign(value, { half: null, ends: lowestMeanInterval(parts) });
    return { axis, score: { ...least, value, average: null, cells: parts.length } };
  }

  // The weighted mean seed by seed, over seeds that all scores with a weight have.
  function weightedMean(axes, scores, weights) {
    const used = axes.filter((name) => weights[name] > 0);
    const seeds = used.length ? common(used.map((name) => scores[name].seeds)) : [];
    if (!seeds.length) return empty();
    const all = fsum(used.map((name) => weights[name]));
    const bySeed = new Map(seeds.map((s) => [s, fsum(used.map((name) => weights[name] * scores[name].seeds.get(s))) / all]));
    return { ...empty(), value: mean([...bySeed.values()]), seeds: bySeed, cells: used.length };
  }

  function row(cut, defense) {
    const mine = D.cells.filter((c) => c.defense === defense && has(cut, c));
    const runs = D.honest.filter((h) => h.defense === defense && (!cut.problem || h.problem === cut.problem));
    const axis = { integrity: mine.filter((c) => c.axis === "integrity"), privacy: mine.filter((c) => c.axis === "privacy") };
    const result = {
      defense, rank: null,
      utility: together(runs.filter((h) => useful.has(h.problem)).map((h) => h.utility).filter((u) => u.size)),
      integrity: worst(axis.integrity), privacy: worst(axis.privacy),
      paper_integrity: worst(axis.integrity.filter((c) => c.form === "paper")),
      paper_privacy: worst(axis.privacy.filter((c) => c.form === "paper")),
      counts: new Map(),
    };
    for (const party of D.everyone) result[`party:${party}`] = worst(axis.privacy.filter((c) => c.party === party));
    for (const c of mine) result.counts.set(c.status, (result.counts.get(c.status) || 0) + 1);
    const axes = axesOf(cut);
    const least = lowest(axes, result, mine.filter((c) => axes.includes(c.axis)));
    result.lowest = least.score;
    result.axis = least.axis;
    result.overall = together(axes.map((name) => result[name].seeds));
    result.weighted = cut.weights ? weightedMean(axes, result, cut.weights) : empty();
    result.deciding = cut.weights ? result.weighted : result.lowest;
    const plain = new Map(D.honest.filter((h) => h.defense === "fedavg").map((h) => [h.problem, h.bytes_up + h.bytes_down]));
    const shares = runs.filter((h) => plain.get(h.problem) > 0 && h.keys.length)
      .map((h) => (h.bytes_up + h.bytes_down) / plain.get(h.problem));
    const seconds = runs.map((h) => h.relative_seconds).filter((s) => s !== null);
    result.bytes = shares.length ? fmean(shares) : null;
    result.time = seconds.length ? fmean(seconds) : null;
    result.marked = [...runs, ...mine].some((x) => x.marks.length);
    result.unranked = unranked(cut, defense, axes.filter((name) => !result[name].value))
      || (result.deciding.value ? "" : "no seed that has all scores with a weight");
    return result;
  }

  const axesOf = (cut) => ["utility", ...(cut.knows.length ? ["integrity"] : []), ...(cut.parties.length ? ["privacy"] : [])];

  // As in fedarena.board.unranked.
  function unranked(cut, defense, lacking) {
    const own = D.cells.filter((c) => c.defense === defense && admits(cut, c));
    const reasons = (cells) => [...new Set(cells.map((c) => c.excluded).filter(Boolean))].join("; ");
    if (lacking.length) {
      const why = reasons(own.filter((c) => lacking.includes(c.axis)));
      return `no ${lacking.join(" and no ")} score${why ? ` (${why})` : ""}`;
    }
    const name = (c) => JSON.stringify([c.problem, c.attack, c.party, c.knows]);
    const required = new Set(D.cells.filter((c) => has(cut, c) && !c.found_by).map(name));
    const withstood = (c) => ["ok", "n/a", "diverged"].includes(c.status) || (c.status === "mixed" && ![...c.statuses.values()].includes("failed"));
    const met = new Set(own.filter((c) => c.counts && withstood(c)).map(name));
    const unmet = [...required].filter((x) => !met.has(x));
    const without = own.filter((c) => c.excluded && unmet.includes(name(c)));
    const excluded = new Set(without.map(name)).size, missing = unmet.length - excluded;
    const parts = missing ? [`${missing} of ${required.size} attacks and threats not met`] : [];
    if (excluded) parts.push(`${excluded} of ${required.size} attacks and threats do not count against it (${reasons(without)})`);
    return parts.join(" and ");
  }

  const three = (value) => Number(fixed(value, 3));

  // Which ranks a defense may have, as in fedarena.board.rank_range.
  function rankRanges(values) {
    const ends = values.map((m) => (m.ends || (m.half === null ? [m.value, m.value] : [m.value - m.half, m.value + m.half])).map(three));
    return ends.map(([low, high]) => ({
      first: 1 + ends.filter((other) => other[0] > high).length,
      last: ends.length - ends.filter((other) => other[1] < low).length,
    }));
  }

  const rankText = (rank) => (rank === null ? NOTHING : rank.first === rank.last ? String(rank.first) : `${rank.first}–${rank.last}`);

  function rankingRows(cut) {
    const rows = D.defenses.map((defense) => row(cut, defense));
    const order = (r) => [r.unranked ? 1 : 0, -three(level(r.deciding)), -three(level(r.overall)), r.bytes || Infinity, r.time || Infinity];
    rows.sort((a, b) => compare(order(a), order(b)));
    rows.forEach((r, i) => { r.place = r.unranked ? null : i; });
    const ranked = rows.filter((r) => !r.unranked);
    rankRanges(ranked.map((r) => r.deciding.value)).forEach((rank, i) => { ranked[i].rank = rank; });
    return rows;
  }

  function compare(one, other) {
    for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return one[i] < other[i] ? -1 : 1;
    return 0;
  }

  // -- pieces of the page ----------------------------------------------------------------------------

  function make(tag, attributes = {}, ...children) {
    const node = document.createElement(tag);
    for (const [name, value] of Object.entries(attributes)) {
      if (name === "on") node.addEventListener("click", value);
      else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
    }
    node.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
    return node;
  }

  const heat = (value) => `h${Math.floor(10 * Math.min(1, Math.max(0, value)) + 0.5)}`;
  const several = new Set([...D.cells, ...D.honest].map((x) => x.problem)).size > 1;
  const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;

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

  function tableCell(r, key) {
    if (key === "defense") {
      const name = make("button", { type: "button", class: "name", on: () => go(D.defenses.indexOf(r.defense)) }, r.marked ? `${r.defense} †` : r.defense);
      return make("th", { scope: "row" }, name, r.unranked ? make("small", {}, `no rank: ${r.unranked}`) : null);
    }
    if (key === "rank") return make("td", { class: "rank" }, rankText(r.rank));
    if (key === "cells") return make("td", {}, countsText(r.counts));
    if (key === "bytes" || key === "time") return make("td", {}, r[key] === null ? NOTHING : `${fixed(r[key], 2)} ×`);
    if (key.startsWith("average:")) {
      const average = r[key.slice(8)].average;
      return make("td", {}, average === null ? NOTHING : fixed(average, 2));
    }
    const s = r[key];
    const measured = s.value && s.cells;
    const td = make("td", { class: `score ${measured ? heat(s.value.value) : s.value ? "hatched" : ""}`.trim() }, scoreText(s));
    if (s.value) td.dataset.value = s.value.value;
    if (key === "integrity" || key === "privacy") td.append(make("small", {}, caseOf(s)));
    if (key === "lowest") td.append(make("small", {}, r.axis));
    return td;
  }

  // -- the ranking -----------------------------------------------------------------------------------

  const heads = [...document.querySelectorAll("#board thead th")];
  let order = { key: "rank", up: true };

  function readCut() {
    const ticked = (name) => [...document.querySelectorAll(`input[name="${name}"]:checked`)].map((box) => box.value);
    return { parties: ticked("party"), knows: ticked("knows"), problem: D.problems[byId("problem").selectedIndex], weights: readWeights() };
  }

  // The weights, where a weighted mean decides; what is no number from 0 on has no weight.
  function readWeights() {
    if (!byId("weighted").checked) return null;
    const value = (axis) => Math.max(0, byId(`weight-${axis}`).valueAsNumber || 0);
    return Object.fromEntries(["utility", "integrity", "privacy"].map((axis) => [axis, value(axis)]));
  }

  function hidden(key, cut) {
    if (key.startsWith("party:")) return !cut.parties.includes(key.slice(6));
    if (key === "weighted") return !cut.weights;
    if (key.endsWith("integrity")) return !cut.knows.length;
    if (key.endsWith("privacy")) return !cut.parties.length;
    return false;
  }

  function drawBoard() {
    const cut = readCut();
    const rows = rankingRows(cut);
    const wanted = byId("search").value.trim().toLowerCase();
    rows.sort((a, b) => {
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
    byId("rule").textContent = rankRule(cut);
    const numbers = D.cuts[`${cut.parties.join(",")}|${cut.knows.join(",")}|${D.problems.indexOf(cut.problem)}`];
    const sentences = sameWeights(cut.weights, D.weights) ? numbers.map((i) => D.sentences[i]) : weightedAdvice(cut, rows);
    byId("advice").replaceChildren(...sentences.map((text) => make("p", {}, text)));
    const references = D.references[D.problems.indexOf(cut.problem)];
    byId("references").hidden = !references.length;
    document.querySelector("#references tbody").replaceChildren(...referenceRows(references));
  }

  const referenceRows = (lines) => lines.map((texts) => make("tr", {}, ...texts.map((text, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, text))));

  const joinAnd = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`);

  // As fedarena.board.rank_rule.
  function rankRule(cut) {
    const axes = axesOf(cut);
    if (axes.length === 1) return `Ranked by ${axes[0]}.`;
    if (!cut.weights) return `Ranked by the lowest of ${joinAnd(axes)}. Their mean breaks ties.`;
    const used = axes.filter((name) => cut.weights[name] > 0).map((name) => `${name} (weight ${weightText(cut.weights[name])})`);
    return `Ranked by the weighted mean of ${joinAnd(used) || "nothing"}. The mean of all breaks ties.`;
  }

  const weightText = (weight) => String(Number(weight.toPrecision(6)));

  const sameWeights = (one, other) => (!one || !other ? !one && !other : ["utility", "integrity", "privacy"].every((axis) => one[axis] === (other[axis] || 0)));

  // Advice in words is made beforehand, for the threats; for other weights the page says who leads.
  function weightedAdvice(cut, rows) {
    const words = cut.weights ? `--weights ${Object.entries(cut.weights).map(([axis, weight]) => `${axis}=${weightText(weight)}`).join(",")}` : "no --weights";
    const told = `The command below says why, with ${words}.`;
    const ranked = rows.filter((r) => r.rank);
    if (!ranked.length) return ["No defense has a rank.", told];
    const [best] = ranked, name = cut.weights ? "weighted mean" : "lowest score";
    const equal = ranked.slice(1).filter((r) => r.rank.first === 1).map((r) => r.defense);
    const also = equal.length ? ` ${joinAnd(equal)} may also be first.` : "";
    return [`${best.defense} has the highest ${name}, ${scoreText(best.deciding)}.${also}`, told];
  }

  function sortBy(key) {
    // Ranks, names and costs are read from the least, scores from the best.
    const first = ["rank", "defense", "bytes", "time"].includes(key);
    order = order.key === key ? { key, up: !order.up } : { key, up: first };
    drawBoard();
  }

  // -- a defense -------------------------------------------------------------------------------------

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
      const beside = has(cut, c) ? "" : c.counts ? ", not among the threats chosen" : ", beside the score";
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

  // -- a cell ----------------------------------------------------------------------------------------

  function cellView(c, index) {
    const m = c.scores.size ? mean([...c.scores.values()]) : null;
    const parts = [
      make("h2", { id: "cell-title", tabindex: "-1" }, `${c.attack} against ${c.defense}`),
      make("p", { class: "soft" }, `as ${c.threat}, on ${c.problem}`),
      make("button", { type: "button", class: "back", on: () => go(index) }, `Back to ${c.defense}`),
    ];
    const words = [c.told, c.reason ? `${c.status}: ${c.reason}` : c.status === "ok" ? "" : `${c.status}.`].filter(Boolean);
    parts.push(...words.map((w) => make("p", { class: "note" }, w)));
    const beside = c.beside.map(([name, value]) => `${name} ${fixed(value, 2)}`).join(", ");
    parts.push(facts([
      [c.axis, m ? `${interval(m)}${m.n === 1 ? " (one seed: no interval)" : ` over ${m.n} seeds`}` : `no score (${c.status})`],
      ["counted", c.counts ? "" : `no: ${c.excluded || "it stands beside the score"}`], ["reading", c.reading], ["other readings", beside], ["found by", c.found_by], ["warnings", marksOf(c)],
      ["after", c.goal], ["versions", c.versions.map(([n, v]) => `${n} ${v}`).join(", ")], ["settings", c.settings],
    ]));
    const seeds = [...new Set([...c.statuses.keys(), ...c.scores.keys()])].sort((a, b) => a - b);
    const measured = c.metrics.map(([name]) => name);
    const values = new Map(c.metrics);
    parts.push(make("h3", {}, "Seed by seed"), table(["seed", "status", "score", ...measured, "record"], seeds.map((s) => [
      String(s), c.statuses.get(s) || NOTHING, c.scores.has(s) ? fixed(c.scores.get(s), 3) : NOTHING,
      ...measured.map((name) => (values.get(name).has(s) ? short(values.get(name).get(s)) : NOTHING)), c.keys.get(s) || NOTHING,
    ]), "Scores and measurements by seed"));
    const drawn = charts(c);
    if (drawn.length) parts.push(make("h3", {}, "Curves"), make("div", { class: "charts" }, ...drawn));
    parts.push(...pictures(c), ...(c.command ? command(c.command, "Measures this cell again") : []));
    return parts;
  }

  // Of the honest run, and of the attacked one where it has some of its own.
  const marksOf = (c) => [...D.honest.filter((h) => h.defense === c.defense && h.problem === c.problem), c].flatMap((x) => x.marks).join("; ");

  function charts(c) {
    const drawings = [];
    const arena = D.arenas.find((a) => a.name === c.problem);
    if (c.curve.length) {
      const run = D.honest.find((h) => h.defense === c.defense && h.problem === c.problem);
      const lines = [{ name: `under ${c.attack}`, points: c.curve }];
      if (run && run.curve.length) lines.push({ name: "without poisoning", points: run.curve });
      const last = Math.max(...lines.flatMap((l) => l.points.map((p) => p[0])));
      if (arena) lines[2] = { name: "chance", points: [[0, arena.chance], [last, arena.chance]] };
      const what = arena && arena.measure === "R2" ? "R²" : "accuracy";
      drawings.push(chart(`${what} by round, least seed`, "round", what, lines.filter(Boolean)));
    }
    for (const [name, points] of c.series) {
      if (name === "roc") {
        const lines = [{ name: c.attack, points }];
        lines[2] = { name: "guessing", points: [[0, 0], [1, 1]] };
        drawings.push(chart("ROC, least seed", "false positive rate", "true positive rate", lines));
      } else drawings.push(chart(`${name}, least seed`, "round", name, [{ name, points }]));
    }
    return drawings;
  }

  function chart(title, xName, yName, lines) {
    const W = 420, H = 270, left = 52, right = 12, top = 12, bottom = 42;
    const present = lines.map((l, i) => l && { ...l, look: i }).filter(Boolean);
    const all = present.flatMap((l) => l.points);
    const [x0, x1] = [Math.min(0, ...all.map((p) => p[0])), Math.max(1e-9, ...all.map((p) => p[0]))];
    const [y0, y1] = [Math.min(0, ...all.map((p) => p[1])), Math.max(1, ...all.map((p) => p[1]))];
    const x = (v) => left + ((v - x0) / (x1 - x0)) * (W - left - right);
    const y = (v) => H - bottom - ((v - y0) / (y1 - y0)) * (H - top - bottom);
    const words = present.map((l) => `${l.name} from ${short(l.points[0][1])} to ${short(l.points[l.points.length - 1][1])}`).join("; ");
    const picture = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `${title}: ${words}` });
    for (let i = 0; i <= 4; i++) {
      const yv = y0 + ((y1 - y0) * i) / 4, xv = x0 + ((x1 - x0) * i) / 4;
      picture.append(
        svg("line", { class: "grid", x1: left, x2: W - right, y1: y(yv), y2: y(yv) }),
        svg("text", { x: left - 6, y: y(yv) + 4, "text-anchor": "end" }, short(yv)),
        svg("text", { x: x(xv), y: H - bottom + 16, "text-anchor": i === 4 ? "end" : "middle" }, short(xv)),
      );
    }
    picture.append(
      svg("polyline", { class: "axis", points: `${left},${top} ${left},${H - bottom} ${W - right},${H - bottom}` }),
      svg("text", { x: (left + W - right) / 2, y: H - 6, "text-anchor": "middle" }, xName),
      svg("text", { x: 12, y: (top + H - bottom) / 2, "text-anchor": "middle", transform: `rotate(-90 12 ${(top + H - bottom) / 2})` }, yName),
    );
    for (const l of present) {
      picture.append(svg("polyline", { class: `line line${l.look}`, points: l.points.map((p) => `${x(p[0])},${y(p[1])}`).join(" ") }));
    }
    const looks = ["solid", "dashed", "dotted"];
    return make("figure", {}, picture, make("figcaption", {}, `${title}. ${present.map((l) => `${looks[l.look]}: ${l.name}`).join("; ")}.`));
  }

  function svg(tag, attributes, text) {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    return node;
  }

  function pictures(c) {
    const same = (x) => ["problem", "defense", "attack", "party"].every((name) => x[name] === c[name]);
    const forms = D.cells.filter((x) => same(x) && x.picture).sort((a, b) => (b === c) - (a === c));
    if (!forms.length) return [];
    const strip = make("div", { class: "strip" });
    let originals = null;
    for (const x of forms) {
      const [before, after] = x.picture;
      if (before !== originals) {
        strip.append(make("span", {}, "originals"), make("img", { src: D.pictures[before], alt: `originals that ${x.attack} was after` }));
        originals = before;
      }
      const alt = `what ${x.attack} made of them as ${x.threat}; score ${x.scores.size ? fixed(x.mean, 2) : "none"}`;
      strip.append(make("span", {}, `${x.form} form`), make("img", { src: D.pictures[after], alt }));
    }
    return [make("h3", {}, "Pictures"), make("figure", {}, strip,
      make("figcaption", {}, "Originals over what the attack made of them, first seed that has pictures."))];
  }

  function command(text, title) {
    const code = make("code", {}, text);
    const status = make("span", { role: "status" });
    const copy = async () => {
      try {
        await navigator.clipboard.writeText(text);
        status.textContent = " copied";
      } catch {
        getSelection().selectAllChildren(code);
        status.textContent = document.execCommand("copy") ? " copied" : " selected: press Ctrl+C";
      }
    };
    return [make("h3", {}, title), make("pre", {}, code),
      make("p", {}, make("button", { type: "button", class: "copy", on: copy }, "Copy the command"), status)];
  }

  function table(heads, lines, label) {
    const body = lines.map((line) => make("tr", {}, ...line.map((text, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, text))));
    return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, make("table", { class: "plain" },
      make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", { scope: "col" }, h)))), make("tbody", {}, ...body)));
  }

  const facts = (pairs) => make("dl", {}, ...pairs.filter(([, v]) => v).flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)]));
  const plain = (m) => (m.half === null ? fixed(m.value, 3) : `${fixed(m.value, 3)} ± ${fixed(m.half, 3)}`);
  const short = (v) => String(Number(Number(v).toPrecision(3)));
  const bytes = (n) => (n >= 1e6 ? `${fixed(n / 1e6, 2)} MB` : `${fixed(n / 1e3, 1)} kB`);

  // -- start -----------------------------------------------------------------------------------------

  // JSON has neither numbers as names nor an order of them: pairs become maps, so that a name can be anything.
  for (const c of D.cells) {
    for (const name of ["scores", "statuses", "keys"]) c[name] = new Map(c[name]);
    c.metrics = c.metrics.map(([name, values]) => [name, new Map(values)]);
  }
  for (const h of D.honest) for (const name of ["accuracy", "utility"]) h[name] = new Map(h[name]);

  byId("cut").hidden = false;
  byId("cut").addEventListener("submit", (event) => event.preventDefault());
  byId("cut").addEventListener("input", () => { drawBoard(); show(false); });
  for (const head of heads) {
    const button = make("button", { type: "button", on: () => sortBy(head.dataset.key) }, ...head.childNodes);
    head.replaceChildren(button);
  }
  addEventListener("hashchange", () => show());
  drawBoard();
  show();
})();

// Scores and ranks, worked out as in fedarena/board/ranking.py; a test holds the two together.
// Everything else on the page shows what these functions return.

const scoreText = (s) => (s.value && !s.cells ? "n/a" : interval(s.value));

const LEVELS = ["none", "own", "omniscient"];

const has = (cut, c) => c.counts && admits(cut, c);

const admits = (cut, c) => (!cut.problem || c.problem === cut.problem)
  && (c.axis === "integrity" ? cut.knows.some((k) => LEVELS.indexOf(k) >= LEVELS.indexOf(c.knows)) : cut.parties.includes(c.party));

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

const attempt = (c) => JSON.stringify([c.problem, c.attack, c.party, c.knows]);
const triedAsPaper = new Set(D.cells.filter((c) => c.form === "paper").map(attempt));

// Attempts that other defenses met in paper form, and this one in adaptive form alone, count in adaptive form.
function inPaperForm(cells) {
  const own = new Set(cells.filter((c) => c.form === "paper").map(attempt));
  return cells.filter((c) => c.form === "paper" || (triedAsPaper.has(attempt(c)) && !own.has(attempt(c))));
}

function row(cut, defense) {
  const mine = D.cells.filter((c) => c.defense === defense && has(cut, c));
  const runs = D.honest.filter((h) => h.defense === defense && (!cut.problem || h.problem === cut.problem));
  const axis = { integrity: mine.filter((c) => c.axis === "integrity"), privacy: mine.filter((c) => c.axis === "privacy") };
  const result = {
    defense, rank: null,
    utility: together(runs.filter((h) => useful.has(h.problem)).map((h) => h.utility).filter((u) => u.size)),
    integrity: worst(axis.integrity), privacy: worst(axis.privacy),
    paper_integrity: worst(inPaperForm(axis.integrity)), paper_privacy: worst(inPaperForm(axis.privacy)),
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
  const plain = new Map(D.honest.filter((h) => h.defense === BASELINE).map((h) => [h.problem, h.bytes_up + h.bytes_down]));
  const shares = runs.filter((h) => plain.get(h.problem) > 0 && h.keys.length)
    .map((h) => (h.bytes_up + h.bytes_down) / plain.get(h.problem));
  const seconds = runs.map((h) => h.relative_seconds).filter((s) => s !== null);
  result.bytes = shares.length ? fmean(shares) : null;
  result.time = seconds.length ? fmean(seconds) : null;
  result.marked = [...runs, ...mine].some((x) => x.marks.length);
  result.unranked = (defense === BASELINE ? "it is no defense, and stands for comparison" : "")
    || unranked(cut, defense, axes.filter((name) => !result[name].value))
    || (result.deciding.value ? "" : "no seed that has all scores with a weight")
    || D.without_gain[D.problems.indexOf(cut.problem)][D.defenses.indexOf(defense)];
  return result;
}

const axesOf = (cut) => ["utility", ...(cut.knows.length ? ["integrity"] : []), ...(cut.parties.length ? ["privacy"] : [])];

// As in fedarena.board.unranked.
function unranked(cut, defense, lacking) {
  const own = D.cells.filter((c) => c.defense === defense && admits(cut, c));
  const reasons = (cells) => [...new Set(cells.map((c) => c.excluded).filter(Boolean))].join("; ");
  if (lacking.length) {
    const why = reasons(own.filter((c) => lacking.includes(c.axis)));
    return `no ${lacking.join(" and no ")} score${why ? `: ${why}` : ""}`;
  }
  const name = (c) => JSON.stringify([c.problem, c.attack, c.party, c.knows]);
  const required = new Set(D.cells.filter((c) => has(cut, c) && !c.found_by).map(name));
  const withstood = (c) => ["ok", "n/a", "diverged"].includes(c.status) || (c.status === "mixed" && ![...c.statuses.values()].includes("failed"));
  const attempted = own.filter((c) => c.counts || c.excluded);
  const met = new Set(attempted.map(name));
  attempted.filter((c) => c.excluded || !withstood(c)).forEach((c) => met.delete(name(c)));
  const unmet = [...required].filter((x) => !met.has(x));
  const without = own.filter((c) => c.excluded && unmet.includes(name(c)));
  const excluded = new Set(without.map(name)).size, missing = unmet.length - excluded;
  const parts = missing ? [`${missing} of ${required.size} attacks and threats not met`] : [];
  if (excluded) parts.push(`${excluded} of ${required.size} attacks and threats do not count against it: ${reasons(without)}`);
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
  const axes = axesOf(cut);
  const levels = (r) => (cut.weights ? [r.deciding, r.overall].map(level) : axes.map((name) => level(r[name])).sort((a, b) => a - b));
  const order = (r) => [r.unranked ? 1 : 0, ...levels(r).map((value) => -three(value)), r.bytes || Infinity, r.time || Infinity];
  rows.forEach((r) => { r.order = order(r); });
  rows.sort((a, b) => compare(a.order, b.order));
  rows.forEach((r, i) => { r.place = r.unranked ? null : i; });
  const ranked = rows.filter((r) => !r.unranked);
  rankRanges(ranked.map((r) => r.deciding.value)).forEach((rank, i) => { ranked[i].rank = rank; });
  return rows;
}

function compare(one, other) {
  for (let i = 0; i < one.length; i++) if (one[i] !== other[i]) return one[i] < other[i] ? -1 : 1;
  return 0;
}

// One cell: what came of the attack, seed by seed, with curves, pictures and command.

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
    const b = run && run.without_federation;
    if (typeof b === "number") lines[2] = { name: `what needs no federation (b = ${fixed(b, 2)})`, points: [[0, b], [last, b]] };
    else if (arena) lines[2] = { name: "chance", points: [[0, arena.chance], [last, arena.chance]] };
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

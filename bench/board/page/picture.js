// The picture: the scores of each defense with their intervals, in the order of the ranking.

const KEPT = 0.5; // From here on a defense withstands, as the advice has it.
const LANE = 10, BETWEEN = 9; // The height of a score's line, and the room between two defenses.

function drawPicture(cut, rows) {
  const axes = axesOf(cut);
  const shown = axes.length > 1 ? rows.filter((r) => axes.some((name) => r[name].value)) : [];
  byId("picture").hidden = !shown.length;
  if (!shown.length) return;
  const space = spaceOf(byId("drawing").clientWidth || 560, axes, shown);
  const picture = svg("svg", { viewBox: `0 0 ${space.W} ${space.H}`, role: "group", "aria-label": "Scores of each defense" });
  const tip = make("div", { id: "tip", hidden: true });
  picture.append(...frame(space, shown));
  const alone = D.beside.references[D.problems.indexOf(cut.problem)];
  if (alone.length) picture.append(svg("line", { class: "reference", x1: space.x(0), x2: space.x(0), y1: space.box.top, y2: space.box.bottom }));
  const front = paretoFront(shown.filter((r) => r.rank), axes);
  shown.forEach((r, i) => {
    picture.append(nameOf(space, r, i, front.includes(r)));
    axes.forEach((name, lane) => picture.append(...scoreAt(space, r, name, space.y(i, lane), tip)));
  });
  byId("keys").replaceChildren(...axes.flatMap((name) => [keyOf(name), `${name}, `]), "with 95 % intervals. Filled: the lowest of its defense. Bold: no other ranked defense surpasses it in one score without falling behind in another.", ...notFederating(alone));
  byId("drawing").replaceChildren(picture, tip);
}

function widthOf(text) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "bold 13px system-ui, sans-serif";
  return pen.measureText(text).width;
}

// Where numbers lie on the drawing. A margin inside the frame keeps scores of 0 and 1 off its lines.
function spaceOf(W, axes, rows) {
  const names = Math.max(...rows.map((r) => widthOf(rankedName(r)))) + 12;
  const height = LANE * axes.length + BETWEEN, inside = 12;
  const box = { left: Math.min(names, 0.45 * W), right: W - 6, top: 18, bottom: 18 + height * rows.length };
  return {
    W, H: box.bottom + 40, box, height,
    x: (v) => box.left + inside + v * (box.right - box.left - 2 * inside),
    y: (i, lane) => box.top + height * i + BETWEEN / 2 + LANE * (lane + 0.5),
  };
}

function frame({ box, x, height }, rows) {
  const nodes = [
    svg("rect", { class: "good", x: x(KEPT), y: box.top, width: box.right - x(KEPT), height: box.bottom - box.top }),
    svg("text", { class: "faint", x: box.right - 6, y: box.top - 5, "text-anchor": "end" }, "keeps half"),
    svg("text", { class: "title", x: x(0.5), y: box.bottom + 34, "text-anchor": "middle" }, "score →"),
  ];
  for (const v of [0, 0.25, 0.5, 0.75, 1]) {
    nodes.push(
      svg("line", { class: "grid", x1: x(v), x2: x(v), y1: box.top, y2: box.bottom }),
      svg("text", { x: x(v), y: box.bottom + 16, "text-anchor": "middle" }, String(v)),
    );
  }
  for (let i = 0; i <= rows.length; i++) {
    nodes.push(svg("line", { class: "grid", x1: 0, x2: box.right, y1: box.top + height * i, y2: box.top + height * i }));
  }
  return nodes;
}

// Not federating has utility 0, whatever is attacked. Boards that were measured without references have no such line.
function notFederating(alone) {
  if (!alone.length) return [];
  const names = make("span", { title: alone.map(([name, , accuracy]) => `${name}: ${accuracy}`).join("\n") }, alone.map(([name]) => name).join(", "));
  return [" Dotted: utility without a federation (", names, ")."];
}

const shortName = (name) => (name === BASELINE ? `${name} (no defense)` : name.length > 26 ? `${name.slice(0, 25)}…` : name);

const rankedName = (r) => (r.rank ? `${rankText(r.rank)}  ${shortName(r.defense)}` : shortName(r.defense));

// Ranked defenses that no other one surpasses in one score without falling behind in another.
function paretoFront(ranked, axes) {
  const surpasses = (a, b) => axes.every((name) => level(a[name]) >= level(b[name])) && axes.some((name) => level(a[name]) > level(b[name]));
  return ranked.filter((r) => !ranked.some((other) => surpasses(other, r)));
}

function nameOf({ box, y }, r, i, best) {
  const look = r.rank ? (best ? "name best" : "name") : "name unranked";
  const link = svg("a", { href: `#defense-${D.defenses.indexOf(r.defense)}`, class: look });
  const room = box.left - 10; // A name that is longer is drawn narrower, so that none is cut.
  const narrow = widthOf(rankedName(r)) > room ? { textLength: room, lengthAdjust: "spacingAndGlyphs" } : {};
  link.append(svg("text", { x: box.left - 8, y: y(i, 1) + 4, "text-anchor": "end", ...narrow }, rankedName(r)));
  return link;
}

function endsOf(m) {
  const [low, high] = m.ends || (m.half === null ? [m.value, m.value] : [m.value - m.half, m.value + m.half]);
  return [Math.max(0, low), Math.min(1, high)];
}

// A score is a link to the cell of its worst case; one without a measured value has a sign in its place.
function scoreAt({ x, W }, r, name, y, tip) {
  const s = r[name];
  if (!s.value || !s.cells) return [svg("text", { class: "faint", x: x(0) + 8, y: y + 4 }, scoreText(s))];
  const [low, high] = endsOf(s.value), cx = x(s.value.value);
  const cell = s.worst ? `-${D.cells.indexOf(s.worst)}` : "";
  const link = svg("a", {
    href: `#defense-${D.defenses.indexOf(r.defense)}${cell}`, "aria-label": told(r, name).join(". "),
    class: `point ${name}${r.axis && s.value.value === level(r.lowest) ? " lowest" : ""}`,
  });
  link.append(
    svg("rect", { class: "target", x: Math.min(x(low), cx - 9), y: y - LANE / 2, width: Math.max(18, x(high) - x(low)), height: LANE }),
    svg("line", { class: "whisker", x1: x(low), x2: x(high), y1: y, y2: y }), shapeOf(name, cx, y),
  );
  tells(link, W, cx, y, told(r, name), tip);
  return [link];
}

function shapeOf(name, cx, cy) {
  if (name === "utility") return svg("circle", { class: "dot", cx, cy, r: 4 });
  const points = name === "integrity" ? [[-4, -4], [4, -4], [4, 4], [-4, 4]] : [[0, -5], [5, 0], [0, 5], [-5, 0]];
  return svg("polygon", { class: "dot", points: points.map(([dx, dy]) => `${cx + dx},${cy + dy}`).join(" ") });
}

function keyOf(name) {
  const key = svg("svg", { viewBox: "0 0 14 14", class: `key ${name}`, "aria-label": `sign of ${name}` });
  key.append(shapeOf(name, 7, 7));
  return key;
}

function told(r, name) {
  const about = [`${r.defense}, ${r.rank ? `rank ${rankText(r.rank)}` : "no rank"}`, `${name} ${scoreText(r[name])}`];
  return r[name].worst ? [...about, `worst case: ${caseOf(r[name])}`] : about;
}

// On hover and focus a link says what it is.
function tells(link, W, cx, cy, [name, ...lines], tip) {
  const open = () => {
    tip.replaceChildren(make("strong", {}, name), ...lines.map((text) => make("p", {}, text)));
    tip.hidden = false;
    tip.style.left = `${Math.min(Math.max(0, cx - 20), W - tip.offsetWidth)}px`;
    const above = cy - tip.offsetHeight - 10;
    tip.style.top = `${above > 0 ? above : cy + 12}px`;
  };
  const close = () => { tip.hidden = true; };
  for (const [event, act] of [["mouseenter", open], ["focus", open], ["mouseleave", close], ["blur", close]]) link.addEventListener(event, act);
}

// The picture: what a defense keeps of the gain of federating, against what is left of it in its worst case under attack.

const BASELINE = "fedavg";
const KEPT = 0.5; // From here on a defense withstands, as the advice has it.

function drawPicture(cut, rows) {
  const axes = axesOf(cut).slice(1);
  const points = axes.length ? rows.filter((r) => r.rank).map((r) => pointOf(cut, r)) : [];
  byId("picture").hidden = !points.length;
  if (!points.length) return;
  const yName = axes.length > 1 ? "the lower of integrity and privacy" : axes[0];
  const space = spaceOf(byId("drawing").clientWidth || 560);
  const front = paretoFront(points);
  const picture = svg("svg", { viewBox: `0 0 ${space.W} ${space.H}`, role: "group", "aria-label": pictureText(points, front, yName) });
  picture.append(...frame(space, yName), ...references(space, cut), stairs(space, front));
  picture.append(...points.flatMap((p) => whiskers(space, p)));
  const tip = make("div", { id: "tip", hidden: true });
  // Of points that lie on one another FedAvg's, which is a square, is on top.
  const plain = points.filter((p) => p.row.defense === BASELINE);
  for (const p of [...points.filter((q) => !plain.includes(q)), ...plain]) picture.append(mark(space, points, p, front.includes(p), tip));
  picture.append(...labels(space, points, front, tip));
  byId("drawing").replaceChildren(picture, tip);
}

// y has the interval of the lowest true mean over the cells of both axes.
function pointOf(cut, r) {
  const cells = D.cells.filter((c) => c.defense === r.defense && has(cut, c));
  return { row: r, x: r.utility, y: worst(cells) };
}

const at = (p) => [level(p.x), level(p.y)];

// Points that no other one surpasses in one score without falling behind in the other, from the left to the right.
function paretoFront(points) {
  const surpasses = ([a, b], [c, d]) => a >= c && b >= d && (a > c || b > d);
  const front = points.filter((p) => !points.some((other) => surpasses(at(other), at(p))));
  return front.sort((a, b) => compare(at(a), at(b)));
}

// Where numbers lie on the drawing. A margin inside the frame keeps points at 0 and 1 off its lines.
function spaceOf(W) {
  const H = Math.round(Math.min(540, Math.max(380, 0.86 * W)));
  const box = { left: 58, right: W - 10, top: 10, bottom: H - 44 }, inside = 16;
  return {
    W, H, box,
    x: (v) => box.left + inside + v * (box.right - box.left - 2 * inside),
    y: (v) => box.bottom - inside - v * (box.bottom - box.top - 2 * inside),
  };
}

function frame({ box, x, y }, yName) {
  const middle = (box.top + box.bottom) / 2;
  const nodes = [
    svg("rect", { class: "good", x: x(KEPT), y: box.top, width: box.right - x(KEPT), height: y(KEPT) - box.top }),
    svg("text", { class: "faint", x: box.right - 6, y: box.top + 15, "text-anchor": "end" }, "keeps half of both"),
  ];
  for (const v of [0, 0.25, 0.5, 0.75, 1]) {
    nodes.push(
      svg("line", { class: "grid", x1: box.left, x2: box.right, y1: y(v), y2: y(v) }),
      svg("line", { class: "grid", x1: x(v), x2: x(v), y1: box.top, y2: box.bottom }),
      svg("text", { x: box.left - 6, y: y(v) + 4, "text-anchor": "end" }, String(v)),
      svg("text", { x: x(v), y: box.bottom + 16, "text-anchor": "middle" }, String(v)),
    );
  }
  nodes.push(
    svg("polyline", { class: "axis", points: `${box.left},${box.top} ${box.left},${box.bottom} ${box.right},${box.bottom}` }),
    svg("text", { class: "title", x: (box.left + box.right) / 2, y: box.bottom + 36, "text-anchor": "middle" }, "utility →"),
    svg("text", { class: "title", x: 14, y: middle, "text-anchor": "middle", transform: `rotate(-90 14 ${middle})` }, `${yName} →`),
  );
  return nodes;
}

// Not federating has utility 0, whatever is attacked. Boards that were measured without references have no such line.
function references({ box, x }, cut) {
  const lines = D.references[D.problems.indexOf(cut.problem)];
  if (!lines.length) return [];
  const place = { x: x(0) - 5, y: (box.top + box.bottom) / 2 };
  const names = svg("text", { class: "faint", ...place, "text-anchor": "middle", transform: `rotate(-90 ${place.x} ${place.y})` },
    `not federating: ${lines.map(([name]) => name).join(", ")}`);
  names.append(svg("title", {}, lines.map(([name, , accuracy]) => `${name}: ${accuracy}`).join("\n")));
  return [svg("line", { class: "reference", x1: x(0), x2: x(0), y1: box.top, y2: box.bottom }), names];
}

function stairs({ box, x, y }, front) {
  let path = `M${box.left},${y(level(front[0].y))}`;
  front.forEach((p, i) => {
    path += `H${x(level(p.x))}V${i + 1 < front.length ? y(level(front[i + 1].y)) : box.bottom}`;
  });
  return svg("path", { class: "front", d: path });
}

function endsOf(m) {
  const [low, high] = m.ends || (m.half === null ? [m.value, m.value] : [m.value - m.half, m.value + m.half]);
  return [Math.max(0, low), Math.min(1, high)];
}

function whiskers({ x, y }, p) {
  const [px, py] = at(p), [x0, x1] = endsOf(p.x.value), [y0, y1] = endsOf(p.y.value);
  return [
    svg("line", { class: "whisker", x1: x(x0), x2: x(x1), y1: y(py), y2: y(py) }),
    svg("line", { class: "whisker", x1: x(px), x2: x(px), y1: y(y0), y2: y(y1) }),
  ];
}

// A point is a link to the cell of its worst case.
function mark(space, points, p, onFront, tip) {
  const [cx, cy] = [space.x(level(p.x)), space.y(level(p.y))];
  const link = linkTo(p, { class: onFront ? "point best" : "point", "aria-label": told(p).join(". ") });
  link.append(
    svg("circle", { class: "target", cx, cy, r: 13 }),
    p.row.defense === BASELINE ? svg("rect", { class: "dot", x: cx - 5, y: cy - 5, width: 10, height: 10 }) : svg("circle", { class: "dot", cx, cy, r: onFront ? 6.5 : 5 }),
  );
  tells(link, space, points, p, tip);
  return link;
}

function linkTo(p, attributes) {
  const cell = p.y.worst ? `-${D.cells.indexOf(p.y.worst)}` : "";
  return svg("a", { href: `#defense-${D.defenses.indexOf(p.row.defense)}${cell}`, ...attributes });
}

// On hover and focus a link says what its point is.
function tells(link, space, points, p, tip) {
  const [cx, cy] = [space.x(level(p.x)), space.y(level(p.y))];
  const near = points.filter((q) => q !== p && lieTogether(space, p, q)).map((q) => q.row.defense);
  const open = () => {
    const [name, ...lines] = [...told(p), near.length ? `also here: ${joinAnd(near)}` : ""].filter(Boolean);
    tip.replaceChildren(make("strong", {}, name), ...lines.map((text) => make("p", {}, text)));
    tip.hidden = false;
    tip.style.left = `${Math.min(Math.max(0, cx - 20), space.W - tip.offsetWidth)}px`;
    const above = cy - tip.offsetHeight - 14;
    tip.style.top = `${above > 0 ? above : cy + 16}px`;
  };
  const close = () => { tip.hidden = true; };
  for (const [event, act] of [["mouseenter", open], ["focus", open], ["mouseleave", close], ["blur", close]]) link.addEventListener(event, act);
}

const lieTogether = (space, p, q) => Math.hypot(space.x(level(q.x)) - space.x(level(p.x)), space.y(level(q.y)) - space.y(level(p.y))) < 7;

function told(p) {
  const scores = ["utility", "integrity", "privacy"].filter((name) => p.row[name].value).map((name) => `${name} ${scoreText(p.row[name])}`);
  return [`${p.row.defense}, rank ${rankText(p.row.rank)}`, scores.join("; "), `worst case: ${caseOf(p.y)}`];
}

function pictureText(points, front, yName) {
  const list = points.map((p) => `${p.row.defense} ${fixed(level(p.x), 2)}, ${fixed(level(p.y), 2)}`).join("; ");
  return `Utility and ${yName} of each ranked defense: ${list}. Not surpassed in both: ${front.map((p) => p.row.defense).join(", ")}.`;
}

const LINE = 15; // The height of a name.

// Names beside their points, each where it hides nothing; those that must go further away have a line to their point.
// Points that lie on one another have one list of names. A name is a link like its point, which a mouse reaches even
// where another point covers its own; the keyboard needs only one of the two.
function labels(space, points, front, tip) {
  const pen = document.createElement("canvas").getContext("2d");
  pen.font = "bold 13px system-ui, sans-serif";
  const taken = points.map((p) => around(space.x(level(p.x)), space.y(level(p.y)), 14, 14));
  const nodes = [];
  for (const some of heaps(space, [...front, ...points.filter((p) => !front.includes(p))])) {
    const [px, py] = [space.x(level(some[0].x)), space.y(level(some[0].y))];
    const names = some.map((p) => shortName(p.row.defense));
    const place = freePlace(space, taken, px, py, Math.max(...names.map((name) => pen.measureText(name).width)) + 4, LINE * names.length);
    taken.push(place.box);
    if (place.far) nodes.push(svg("line", { class: "leader", x1: px, y1: py, ...place.end }));
    const toTheLeft = place.box.right < px, x = toTheLeft ? place.box.right - 2 : place.box.left + 2;
    names.forEach((name, i) => {
      const look = { class: front.includes(some[i]) ? "label best" : "label", "text-anchor": toTheLeft ? "end" : "start" };
      const link = linkTo(some[i], { tabindex: -1, "aria-hidden": "true" });
      link.append(svg("text", { ...look, x, y: place.box.top + 12 + LINE * i }, name));
      tells(link, space, points, some[i], tip);
      nodes.push(link);
    });
  }
  return nodes;
}

const shortName = (name) => (name === BASELINE ? `${name} (no defense)` : name.length > 26 ? `${name.slice(0, 25)}…` : name);

// Points in lists of those that lie on one another.
function heaps(space, points) {
  const lists = [];
  for (const p of points) {
    const near = lists.find(([q]) => lieTogether(space, p, q));
    if (near) near.push(p);
    else lists.push([p]);
  }
  return lists.sort((a, b) => a.length - b.length); // Single names find a place beside their points, lists further away.
}

const around = (x, y, w, h) => ({ left: x - w / 2, right: x + w / 2, top: y - h / 2, bottom: y + h / 2 });

// The nearest place of a box of this size that touches no other; among equals to the right, then left, then above.
function freePlace({ box }, taken, px, py, w, h) {
  let best = null;
  for (const distance of [0, 16, 32, 48, 64, 82, 100, 120, 142, 166, 192]) {
    for (const [dx, dy] of [[1, 0], [-1, 0], [0, -1], [0.8, -0.6], [-0.8, -0.6], [0, 1], [0.8, 0.6], [-0.8, 0.6]]) {
      const x = px + dx * (w / 2 + 8 + (dy ? 0.4 : 1) * distance), y = py + dy * (h / 2 + 6 + distance);
      const place = around(x, y, w, h);
      if (place.left < box.left || place.right > box.right || place.top < box.top || place.bottom > box.bottom) continue;
      const covered = taken.reduce((sum, other) => sum + overlap(place, other), 0);
      if (best && covered >= best.covered) continue;
      const end = { x2: Math.min(Math.max(px, place.left), place.right), y2: Math.min(Math.max(py, place.top + 3), place.bottom - 1) };
      best = { box: place, covered, far: distance > 0, end };
      if (!covered) return best;
    }
  }
  return best || { box: around(px, py, w, h), covered: 0, far: false };
}

const overlap = (a, b) => Math.max(0, Math.min(a.right, b.right) - Math.max(a.left, b.left)) * Math.max(0, Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top));

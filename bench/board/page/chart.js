// Curves as SVG.

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

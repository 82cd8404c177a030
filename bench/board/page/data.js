// The board, as html.py wrote it into the page.

const D = JSON.parse(document.getElementById("data").textContent);
const BASELINE = "fedavg"; // As in fedarena.contracts.baseline.

// JSON has neither numbers as names nor an order of them: pairs become maps, so that a name can be anything.
for (const c of D.cells) {
  for (const name of ["scores", "statuses", "keys"]) c[name] = new Map(c[name]);
  c.metrics = c.metrics.map(([name, values]) => [name, new Map(values)]);
}
for (const h of D.honest) for (const name of ["accuracy", "utility"]) h[name] = new Map(h[name]);

const several = new Set([...D.cells, ...D.honest].map((x) => x.problem)).size > 1;

// Wires the page: what is drawn, and when it is drawn anew.

function drawAll() {
  const cut = readCut();
  const rows = rankingRows(cut);
  byId("chosen").textContent = chosenText(cut);
  byId("rule").textContent = rankRule(cut);
  drawTable(cut, rows);
  drawBeside(cut);
  drawPicture(cut, rows);
  drawMap(cut, rows);
  byId("advice").replaceChildren(...adviceOf(cut, rows).map((text) => make("p", {}, text)));
}

byId("settings").hidden = false;
byId("cut").addEventListener("submit", (event) => event.preventDefault());
byId("cut").addEventListener("input", () => { drawAll(); show(false); });
wireTable();
addEventListener("hashchange", () => show());
drawAll();
show();
// The picture has the width of its place, so that its letters keep their size.
let width = byId("drawing").clientWidth;
new ResizeObserver(() => {
  if (byId("drawing").clientWidth === width) return;
  width = byId("drawing").clientWidth;
  const cut = readCut();
  drawPicture(cut, rankingRows(cut));
}).observe(byId("drawing"));

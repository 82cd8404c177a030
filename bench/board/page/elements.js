// Pieces of the page. Everything that comes from the data becomes text nodes and attributes, never markup.

const byId = (id) => document.getElementById(id);

function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "on") node.addEventListener("click", value);
    else if (value !== null && value !== undefined && value !== false) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((c) => c !== null && c !== undefined && c !== ""));
  return node;
}

function svg(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

const heat = (value) => `h${Math.floor(10 * Math.min(1, Math.max(0, value)) + 0.5)}`;

function table(heads, lines, label) {
  const body = lines.map((line) => make("tr", {}, ...line.map((text, i) => make(i ? "td" : "th", i ? {} : { scope: "row" }, text))));
  return make("div", { class: "scroll", role: "region", tabindex: "0", "aria-label": label }, make("table", { class: "plain" },
    make("thead", {}, make("tr", {}, ...heads.map((h) => make("th", { scope: "col" }, h)))), make("tbody", {}, ...body)));
}

const facts = (pairs) => make("dl", {}, ...pairs.filter(([, v]) => v).flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)]));

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

// What the reader has chosen: threats, problem, weights; and the sentences that follow from it.

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

// As fedarena.board.rank_rule.
function rankRule(cut) {
  const axes = axesOf(cut);
  if (axes.length === 1) return `Ranked by ${axes[0]}.`;
  if (!cut.weights) return `Ranked by the lowest of ${joinAnd(axes)}. Among equals the next lowest decides.`;
  const used = axes.filter((name) => cut.weights[name] > 0).map((name) => `${name} (weight ${weightText(cut.weights[name])})`);
  return `Ranked by the weighted mean of ${joinAnd(used) || "nothing"}. The mean of all breaks ties.`;
}

const weightText = (weight) => String(Number(weight.toPrecision(6)));

const sameWeights = (one, other) => (!one || !other ? !one && !other : ["utility", "integrity", "privacy"].every((axis) => one[axis] === (other[axis] || 0)));

// The choice in a few words, beside the folded settings.
function chosenText(cut) {
  const every = document.querySelectorAll('input[name="party"], input[name="knows"]').length;
  const named = [...cut.parties.map((p) => `curious ${p}`), ...cut.knows.map((k) => `corrupted clients (${k})`)];
  const threats = named.length === every ? "all threats" : named.join(", ") || "no threats";
  return `${threats}; ${cut.problem || "all problems"}; ${cut.weights ? "a weighted mean" : "the lowest score"} decides`;
}

// Advice is made beforehand, for each choice of threats and the weights with which the page began.
function adviceOf(cut, rows) {
  if (!sameWeights(cut.weights, D.weights)) return weightedAdvice(cut, rows);
  const numbers = D.cuts[`${cut.parties.join(",")}|${cut.knows.join(",")}|${D.problems.indexOf(cut.problem)}`];
  return numbers.map((i) => D.sentences[i]);
}

// As in fedarena.board.recommendation.
function beatsBaseline(cut, rows) {
  const plain = rows.find((r) => r.defense === BASELINE);
  if (!plain || !plain.deciding.value || unranked(cut, BASELINE, [])) return true;
  return compare(rows[0].order.slice(1), plain.order.slice(1)) < 0;
}

// For other weights the page says who leads.
function weightedAdvice(cut, rows) {
  const zero = cut.weights && !axesOf(cut).some((axis) => cut.weights[axis] > 0);
  if (zero) return [`No score that counts here has a weight, so nothing is ranked. ${joinAnd(axesOf(cut))} can have one.`];
  const words = cut.weights ? `--weights ${Object.entries(cut.weights).map(([axis, weight]) => `${axis}=${weightText(weight)}`).join(",")}` : "no --weights";
  const told = `The command below says why, with ${words}.`;
  const ranked = rows.filter((r) => r.rank);
  if (!ranked.length) return ["No defense has a rank.", told];
  const [best] = ranked, name = cut.weights ? "weighted mean" : "lowest score";
  const equal = ranked.slice(1).filter((r) => r.rank.first === 1).map((r) => r.defense);
  const also = equal.length ? ` ${joinAnd(equal)} may also be first.` : "";
  if (!beatsBaseline(cut, rows)) return [`No defense here scores above plain ${BASELINE}, which is none; ${best.defense} comes next.`, told];
  return [`${best.defense} has the highest ${name}, ${scoreText(best.deciding)}.${also}`, told];
}

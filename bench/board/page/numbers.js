// Numbers: exact sums, means with intervals, and how they are written, as Python writes them.

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

const plain = (m) => (m.half === null ? fixed(m.value, 3) : `${fixed(m.value, 3)} ± ${fixed(m.half, 3)}`);
const short = (v) => String(Number(Number(v).toPrecision(3)));
const bytes = (n) => (n >= 1e6 ? `${fixed(n / 1e6, 2)} MB` : `${fixed(n / 1e3, 1)} kB`);
const plural = (n, word) => `${n} ${word}${n === 1 ? "" : "s"}`;
const joinAnd = (words) => (words.length < 2 ? words.join("") : `${words.slice(0, -1).join(", ")} and ${words[words.length - 1]}`);

// A ranked list sorted again in the page as a boost moves: an item glides to its new place, and the
// numbers count along. The kernel is not asked; what it measures later takes the place of what is
// read off the curve.

const ROW = 27;
const SPEAK_AFTER = 700;

function made(parent, tag, kind, text = "") {
  const one = document.createElement(tag);
  one.className = kind;
  one.textContent = text;
  parent.append(one);
  return one;
}

function digits(value, places, signed = false) {
  if (!Number.isFinite(value)) return "–";
  const text = Math.abs(value).toFixed(places);
  const sign = value < 0 && Number(text) !== 0 ? "−" : signed && Number(text) !== 0 ? "+" : "";
  return sign + text;
}

// The value of a curve between two of its steps; NaN beyond its ends.
function between(steps, values, at) {
  const next = steps.findIndex((step) => step >= at);
  if (next < 0) return NaN;
  if (steps[next] === at) return values[next] ?? NaN;
  if (next === 0) return NaN;
  const share = (at - steps[next - 1]) / (steps[next] - steps[next - 1]);
  return (values[next - 1] ?? NaN) * (1 - share) + (values[next] ?? NaN) * share;
}

// The places of the rows, and the value of the list by the weights of its places, which equal
// scores share.
function ranked(rows, weights, alpha) {
  const score = rows.map((row) => row.score + (row.inside ? alpha : 0));
  const order = rows.map((_, k) => k).sort((a, b) => score[b] - score[a] || a - b);
  const place = [];
  order.forEach((k, at) => (place[k] = at));
  let worth = 0;
  for (let first = 0; first < order.length; ) {
    let last = first;
    while (last < order.length && score[order[last]] === score[order[first]]) last += 1;
    const tied = order.slice(first, last);
    const shared = weights.slice(first, last).reduce((sum, weight) => sum + weight, 0);
    worth += (tied.reduce((sum, k) => sum + rows[k].outcome, 0) * shared) / tied.length;
    first = last;
  }
  return { score, place, worth };
}

function render({ model, el }) {
  el.classList.add("mpc-moving");
  const title = made(el, "div", "mpc-moving-title");
  const counts = made(el, "div", "mpc-moving-counts");
  const head = made(el, "div", "mpc-moving-head");
  head.setAttribute("aria-hidden", "true");
  const list = made(el, "div", "mpc-moving-list");
  list.setAttribute("role", "list");
  const legend = made(el, "div", "mpc-note");
  const said = made(el, "div", "mpc-moving-said");
  said.setAttribute("role", "status");
  said.setAttribute("aria-live", "polite");
  let items = [];
  let speaking = 0;
  let asked = false;

  function count(name, value) {
    const cell = made(counts, "div", "");
    made(cell, "span", "mpc-label", name);
    made(cell, "span", "mpc-value", value);
  }

  // Names come from data: they are set as text.
  function build() {
    const rows = model.get("rows");
    const most = Math.min(model.get("most"), rows.length);
    title.textContent = model.get("title");
    list.setAttribute(
      "aria-label",
      `${model.get("title")}: each with ${model.get("outcome")}, score, and places moved by the boost`,
    );
    head.replaceChildren();
    made(head, "span", "");
    made(head, "bdi", "", model.get("outcome"));
    made(head, "span", "mpc-moving-score", "score");
    made(head, "span", "mpc-moving-shift", "moved");
    list.style.height = `${most * ROW}px`;
    list.replaceChildren();
    for (let k = 0; k < most; k += 1) {
      const number = made(list, "span", "mpc-moving-place", `${k + 1}`);
      number.style.top = `${k * ROW}px`;
      number.setAttribute("aria-hidden", "true");
    }
    items = rows.map((row) => {
      const kind = row.inside ? `mpc-moving-item mpc-moving-inside ${model.get("kind")}` : "mpc-moving-item";
      const item = made(list, "div", kind);
      item.setAttribute("role", "listitem");
      made(item, "span", "mpc-moving-mark", row.inside ? model.get("mark") : "");
      made(made(item, "span", "mpc-moving-name"), "bdi", "", row.name);
      made(item, "span", "mpc-moving-outcome", digits(row.outcome, Number.isInteger(row.outcome) ? 0 : 2));
      item.score = made(item, "span", "mpc-moving-score");
      item.shift = made(item, "span", "mpc-moving-shift");
      return item;
    });
    legend.textContent = `${model.get("mark")} item of group '${model.get("group")}'`;
    show();
  }

  function numbers(alpha) {
    const { alpha: steps = [], gap = [], objective = [] } = model.get("curve");
    const [at, ...exact] = model.get("exact");
    const near = Math.abs(at - alpha) <= 1e-9 * Math.max(1, Math.abs(alpha));
    return near ? exact : [between(steps, gap, alpha), between(steps, objective, alpha)];
  }

  function show() {
    const rows = model.get("rows");
    el.hidden = !rows.length;
    if (!rows.length) return;
    const alpha = model.get("alpha");
    const weights = model.get("weights");
    const most = Math.min(model.get("most"), rows.length);
    const now = ranked(rows, weights, alpha);
    const start = ranked(rows, weights, 0);
    const ideal = ranked(rows.map((row) => ({ ...row, score: row.outcome, inside: false })), weights, 0);
    const own = ideal.worth > 0 ? now.worth / ideal.worth : NaN;
    const way = model.get("ascending") ? -1 : 1;
    items.forEach((item, k) => {
      const place = now.place[k];
      const moved = start.place[k] - place;
      item.style.transform = `translateY(${Math.min(place, most) * ROW}px)`;
      item.classList.toggle("mpc-moving-out", place >= most);
      item.setAttribute("aria-hidden", String(place >= most));
      item.setAttribute("aria-posinset", place + 1);
      item.setAttribute("aria-setsize", rows.length);
      item.score.textContent = digits(way * now.score[k], 3);
      item.shift.textContent = moved > 0 ? `↑ ${moved}` : moved < 0 ? `↓ ${-moved}` : "";
    });
    const [gap, objective] = numbers(alpha);
    counts.replaceChildren();
    count("Boost α", digits(alpha, 3, true));
    count("Gap, all queries", digits(gap, 3, true));
    count(`${model.get("objective")}, all queries`, digits(objective, 4));
    count("NDCG of this list", digits(own, 4));
    clearTimeout(speaking);
    speaking = setTimeout(() => speak(rows, now, start, most, alpha, own), SPEAK_AFTER);
  }

  // Said once the boost rests, or every step would be read out.
  function speak(rows, now, start, most, alpha, own) {
    const among = (places) => rows.filter((row, k) => row.inside && places[k] < most).length;
    said.textContent =
      `At a boost of ${digits(alpha, 3, true)}, ${among(now.place)} of the first ${most} items are ` +
      `of group '${model.get("group")}', ${among(start.place)} without a boost; NDCG of this list ` +
      `${digits(own, 4)}.`;
  }

  // Several changes of one frame are drawn as one.
  function ask() {
    if (asked) return;
    asked = true;
    requestAnimationFrame(() => {
      asked = false;
      show();
    });
  }

  const whole = "change:rows change:title change:kind change:mark change:group change:outcome";
  const step = "change:alpha change:curve change:exact change:objective";
  model.on(whole, build);
  model.on(step, ask);
  build();
  return () => {
    clearTimeout(speaking);
    model.off(whole, build);
    model.off(step, ask);
  };
}

export default { render };

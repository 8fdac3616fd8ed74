// Draws the figures of a page without a kernel. Those that say so get a rail for ε: it, a drag
// along a curve and the address move all gaps of a picture in the page alone.

const EMBED = { ast: true, renderer: "svg", actions: false, defaultStyle: false };
const isNotebook = document.getElementById("jupyter-config-data") !== null;
const inAddress = document.body.dataset.address !== undefined;

function short(value) {
  return String(Number(value.toPrecision(3)));
}

function many(count) {
  return `${count.toLocaleString("en-US")} pair${count === 1 ? "" : "s"}`;
}

function nearest(steps, value) {
  let best = 0;
  steps.forEach((step, k) => {
    if (Math.abs(step - value) < Math.abs(steps[best] - value)) best = k;
  });
  return best;
}

function part(parent, tag, kind, text = "") {
  const made = document.createElement(tag);
  made.className = kind;
  made.textContent = text;
  parent.append(made);
  return made;
}

// What all pictures of one audit show: a step, or -1 while every verdict is at its own ε, and the
// row that was chosen, or -1.
const shown = new Map();

function stateOf(told) {
  if (!shown.has(told.link)) shown.set(told.link, { at: -1, chosen: -1, followers: [], told });
  return shown.get(told.link);
}

function change(state, made) {
  if (made.at === state.at && made.chosen === state.chosen) return;
  Object.assign(state, made);
  for (const follow of state.followers) follow();
  if (inAddress) keepInAddress(state);
}

// The fragment also names chapters: only what has an equals sign speaks of a state.
function keepInAddress({ at, chosen, told }) {
  const words = [];
  if (chosen >= 0) words.push(`group=${encodeURIComponent(told.names[chosen])}`);
  if (at >= 0) words.push(`epsilon=${short(told.steps[at])}`);
  const bare = location.pathname + location.search;
  history.replaceState(history.state, "", words.length ? `#${words.join("&")}` : bare);
}

function readAddress(state) {
  if (!location.hash.includes("=")) return;
  const asked = new URLSearchParams(location.hash.slice(1));
  const { names, steps } = state.told;
  const epsilon = asked.has("epsilon") ? short(Number(asked.get("epsilon"))) : "";
  const at = steps.findIndex((step) => short(step) === epsilon);
  const chosen = names.indexOf(asked.get("group"));
  Object.assign(state, { at, chosen });
  for (const follow of state.followers) follow();
}

function words({ at, chosen, told }) {
  const whose = chosen >= 0 ? ` of \u2068${told.called[chosen]}\u2069` : " a group";
  const counts = at >= 0 ? told.pairs.map((row) => row[at]) : told.own_pairs;
  const least = Math.min(...counts);
  const most = Math.max(...counts);
  const range = least === most ? many(most) : `${least.toLocaleString("en-US")} to ${many(most)}`;
  const number = chosen >= 0 ? many(counts[chosen]) : range;
  const where = at >= 0 ? `ε ${short(told.steps[at])}` : "every verdict at its own ε";
  return `${where}: ${number}${whose}`;
}

function addRail(figure, state) {
  const { steps, own } = state.told;
  const rail = document.createElement("div");
  rail.className = "rail";
  figure.prepend(rail);
  const label = part(rail, "label", "", "Threshold ε");
  const track = part(label, "span", "track");
  const input = part(track, "input", "");
  Object.assign(input, { type: "range", min: 0, max: steps.length - 1, step: 1 });
  const tick = part(track, "span", "tick");
  const said = part(rail, "output", "");
  const back = part(rail, "button", "", "Back to the verdicts");
  back.type = "button";

  function show() {
    const homes = own.filter((value) => value !== null).sort((a, b) => a - b);
    const of = state.chosen >= 0 ? own[state.chosen] : homes[Math.floor(homes.length / 2)];
    const home = nearest(steps, of ?? steps[0]);
    input.value = state.at >= 0 ? state.at : home;
    tick.style.setProperty("--at", home / Math.max(steps.length - 1, 1));
    said.textContent = words(state);
    input.setAttribute("aria-valuetext", said.textContent);
    back.disabled = state.at < 0;
  }

  input.addEventListener("input", () => {
    change(state, { at: Number(input.value), chosen: state.chosen });
  });
  const home = () => change(state, { at: -1, chosen: state.chosen });
  input.addEventListener("keydown", ({ key }) => key === "Escape" && home());
  back.addEventListener("click", home);
  state.followers.push(show);
  show();
}

function moveDrawing(figure, view, state) {
  let asked = false;

  async function draw() {
    asked = false;
    if (state.at < 0) view.data("pointed_store", []);
    view.signal("at", state.at < 0 ? -1 : state.told.steps[state.at]);
    view.signal("chosen", state.chosen);
    await view.runAsync();
    figure.dataset.moved = String(Number(figure.dataset.moved ?? 0) + 1);
  }

  state.followers.push(() => {
    if (asked) return;
    asked = true;
    requestAnimationFrame(draw);
  });
  view.addDataListener("pointed_store", (_, rows) => {
    const value = rows?.[0]?.values?.[0];
    const at = value === undefined ? -1 : nearest(state.told.steps, value);
    // Where the rail is at home, nothing is pointed at by then.
    change(state, { at, chosen: state.chosen });
  });
  view.addSignalListener("pick", (_, picked) => {
    const place = picked?.place?.[0];
    if (place === undefined) return;
    change(state, { at: state.at, chosen: place === state.chosen ? -1 : place });
  });
}

function begin(figure) {
  figure.dataset.begun = "true";
  const live = figure.querySelector(".live");
  const spec = JSON.parse(figure.querySelector("script").textContent);
  const told = figure.querySelector("script.told");
  vegaEmbed(live, spec, EMBED).then(
    ({ view }) => {
      figure.classList.add("drawn");
      if (!told) return;
      const state = stateOf(JSON.parse(told.textContent));
      addRail(figure, state);
      moveDrawing(figure, view, state);
      if (inAddress) readAddress(state);
    },
    (error) => {
      live.remove();
      console.error(error);
    },
  );
}

// In a notebook that has a front end the explorer is live already.
if (!isNotebook) {
  document.querySelectorAll("figure.chart:not([data-begun])").forEach(begin);
  if (inAddress) {
    globalThis.addEventListener("hashchange", () => shown.forEach(readAddress));
  }
}

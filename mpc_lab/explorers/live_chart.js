// Draws a Vega-Lite chart and keeps the drawing while its numbers change.

const WAIT_FOR_LIBRARY = 20000;
const PICK_AFTER = 60;
const NARROWEST = 120;
const WIDEST = 900;
const WIDEST_BESIDE = 1500;
// Names in a drawing do not get narrower with it, so that one step may not be enough.
const MOST_STEPS = 6;
// Panels beside each other that would lose more are drawn below each other.
const MOST_NARROWED = 260;
// Behind a picture that is saved, so that the ink of its page can be read on it.
const LIGHT_PAPER = "#ffffff";
const DARK_PAPER = "#15171a";

function library() {
  const shared = (globalThis.__mpcLabVega ??= {});
  if (shared.embed) return Promise.resolve(shared.embed);
  shared.coming ??= new Promise((resolve) => {
    shared.arrived = () => resolve(shared.embed);
  });
  const again = document.body.dataset.voila ? "reload the page" : "run the cell again";
  const late = new Promise((_, reject) =>
    setTimeout(
      () => reject(new Error(`the chart library did not arrive; ${again}`)),
      WAIT_FOR_LIBRARY,
    ),
  );
  return Promise.race([shared.coming, late]);
}

// "α* = 0.1" stays in one line.
function whole(words) {
  return words.replace(/(^|[^\p{L}])([εαp]\*?) = /gu, "$1$2\u00a0=\u00a0");
}

function block(parent, kind) {
  const made = document.createElement("div");
  made.className = kind;
  parent.append(made);
  return made;
}

function selectionsOf(spec) {
  const found = [];
  const walk = (part) => {
    if (!part || typeof part !== "object") return;
    for (const param of part.params ?? []) if (param.select) found.push(param.name);
    for (const key of ["layer", "vconcat", "hconcat", "concat"]) (part[key] ?? []).forEach(walk);
    walk(part.spec);
  };
  walk(spec);
  return [...new Set(found)];
}

// Every panel narrower by the same number of pixels, or wider where there is room; panels beside
// each other share it. Words right of a panel keep their distance from it. Returned with the number
// of pixels that this took: more would not make it narrower, and would have to be given back first.
function narrowed(spec, by) {
  let most = 0;
  const walk = (part, less, least, share = 1) => {
    if (!part || typeof part !== "object") return;
    if (typeof part.width === "number") {
      const narrowest = Math.min(part.width, least);
      most = Math.max(most, share * (part.width - narrowest));
      const width = Math.max(part.width - less, narrowest);
      beside(part, part.width, width - part.width);
      part.width = width;
    }
    for (const key of ["layer", "vconcat"]) {
      (part[key] ?? []).forEach((inner) => walk(inner, less, least, share));
    }
    const panels = part.hconcat ?? [];
    const each = panels.length;
    for (const inner of panels) walk(inner, less / each, least / each, share * each);
    const columns = part.facet ? (part.columns ?? 1) : 1;
    walk(part.spec, less / columns, least / columns, share * columns);
  };
  const beside = (part, edge, moved) => {
    const at = part.encoding?.x?.value;
    if (typeof at === "number" && at > edge) part.encoding.x.value = at + moved;
    (part.layer ?? []).forEach((inner) => beside(inner, edge, moved));
  };
  const made = structuredClone(spec);
  walk(made, by, NARROWEST);
  return [made, Math.min(by, most)];
}

// How much wider than it was made a drawing may become.
function mostRoom(spec, width) {
  return Math.max((spec.hconcat ? WIDEST_BESIDE : WIDEST) - width, 0);
}

function chosen(value) {
  const fields = Object.entries(value ?? {}).filter(([, held]) => Array.isArray(held));
  return JSON.parse(JSON.stringify(Object.fromEntries(fields)));
}

async function render({ model, el }) {
  el.classList.add("mpc-chart");
  el.tabIndex = 0;
  el.setAttribute("role", "figure");
  const title = block(el, "mpc-chart-title");
  const subtitle = block(el, "mpc-chart-subtitle");
  const drawing = block(el, "mpc-drawing");
  let view = null;
  let finalize = null;
  let shown = { spec: "", data: {}, by: 0, base: 0 };
  let moving = false;
  let waiting = Promise.resolve();
  let closed = false;
  let cramped = { spec: "", room: 0 };

  function words() {
    title.textContent = whole(model.get("title"));
    title.dir = "auto";
    title.hidden = !model.get("titled");
    subtitle.replaceChildren();
    const isNarrow = form() !== model.get("spec");
    for (const line of model.get(isNarrow ? "narrow_subtitle" : "subtitle")) {
      const text = block(subtitle, "");
      text.textContent = whole(line);
      text.dir = "auto";
    }
    el.setAttribute("aria-label", model.get("title") || "chart");
  }

  function failed(error) {
    drawing.replaceChildren();
    const text = block(drawing, "mpc-failed");
    text.setAttribute("role", "alert");
    text.textContent = `This chart could not be drawn: ${error.message}`;
  }

  function listen(spec) {
    for (const name of selectionsOf(spec)) {
      if (name === "pointed") {
        // In panels the signal is theirs; the data of the selection are the drawing's.
        view.addDataListener("pointed_store", (_, rows) => drag(rows?.[0]?.values?.[0]));
        continue;
      }
      let timer = 0;
      view.addSignalListener(name, (_, value) => {
        clearTimeout(timer);
        timer = setTimeout(() => {
          if (closed) return;
          model.set("picked", { ...model.get("picked"), [name]: chosen(value) });
          model.save_changes();
        }, PICK_AFTER);
      });
    }
  }

  function setParam(name, value) {
    try {
      view.signal(name, value);
    } catch {
      // A parameter of a chart that was shown before, or will be shown next.
    }
  }

  function setParams() {
    for (const [name, value] of Object.entries(model.get("params"))) setParam(name, value);
  }

  // What a rail or another chart of the same explorer says, before the kernel hears of it.
  function follow({ detail }) {
    if (detail.from === el || !view || !el.offsetParent) return;
    setParam(detail.name, detail.home && model.get("rests") ? -1 : detail.value);
    if (moving) return;
    moving = true;
    requestAnimationFrame(async () => {
      moving = false;
      if (closed || !view) return;
      await view.runAsync();
      el.dataset.moved = String(Number(el.dataset.moved ?? 0) + 1);
    });
  }

  // A drag along a curve: the step that it is at goes to the rail, which tells the kernel.
  function drag(at) {
    if (typeof at !== "number" || !model.get("link")) return;
    const detail = { name: "at", value: at, home: false, from: el };
    setParam("at", at);
    document.dispatchEvent(new CustomEvent(channel, { detail }));
  }

  // Choose the form of the chart that fits the available width.
  function form() {
    const [narrow, spec] = [model.get("narrow"), model.get("spec")];
    const least = cramped.spec === spec ? cramped.room : 0;
    const room = el.clientWidth;
    return narrow && (room < model.get("narrow_below") || room <= least) ? narrow : spec;
  }

  // Colours with full contrast on the page behind: its own ink where Lab has one.
  function isDark() {
    const theme = document.body.dataset.jpThemeLight;
    if (theme !== undefined) return theme === "false";
    return globalThis.matchMedia("(prefers-color-scheme: dark)").matches;
  }

  function recoloured(spec) {
    const colours = model.get("colours")[isDark() ? "dark" : "light"] ?? {};
    const walk = (part) => {
      if (Array.isArray(part)) return part.map(walk);
      if (part && typeof part === "object") {
        return Object.fromEntries(Object.entries(part).map(([key, value]) => [key, walk(value)]));
      }
      return colours[part] ?? part;
    };
    return walk(spec);
  }

  async function embed(wanted) {
    const make = await library();
    const text = form();
    const data = model.get("data");
    const [sized, by] = narrowed(JSON.parse(text), wanted);
    const spec = recoloured(sized);
    const rows = Object.entries(data).map(([name, json]) => [name, JSON.parse(json)]);
    spec.datasets = Object.fromEntries(rows);
    const place = document.createElement("div");
    place.style.visibility = "hidden";
    drawing.append(place);
    const options = { renderer: "svg", actions: false, defaultStyle: false, ast: false };
    const made = await make(place, spec, options);
    finalize?.();
    for (const old of [...drawing.children]) if (old !== place) old.remove();
    place.style.visibility = "";
    view = made.view;
    finalize = made.finalize;
    el.mpcView = view;
    el.dataset.paper = isDark() ? DARK_PAPER : LIGHT_PAPER;
    shown = { spec: text, data, by, dark: isDark() };
    words();
    listen(spec);
    setParams();
    await view.runAsync();
  }

  async function fit() {
    const room = el.clientWidth - 4;
    if (room < NARROWEST || !drawing.querySelector("svg")) return;
    if (form() !== shown.spec) await embed(0);
    let before = 0;
    let grown = 0;
    for (let step = 0; step < MOST_STEPS; step += 1) {
      const width = drawing.querySelector("svg").getBoundingClientRect().width;
      const free = Math.floor(room - width);
      // A legend wider than the panels hides that they grew: then they grow twice as much again.
      const isHidden = grown > 0 && free > 0 && Math.abs(width - before) < 1;
      const more = isHidden ? 2 * grown : free;
      const least = -mostRoom(JSON.parse(shown.spec), width + shown.by);
      const wanted = Math.max(shown.by - more, least);
      // What is far too narrow may grow twice: ticks and legends do not grow with a drawing.
      if (free >= 0 && ((step > 1 && !isHidden) || wanted >= shown.by - 12)) return;
      [before, grown] = [width, Math.max(shown.by - wanted, 0)];
      const stacks = model.get("narrow") && shown.spec !== model.get("narrow");
      if (stacks && wanted > MOST_NARROWED) {
        cramped = { spec: shown.spec, room: el.clientWidth };
        await embed(0);
        step = -1;
      } else await embed(wanted);
    }
  }

  async function update() {
    const data = model.get("data");
    const fresh = Object.entries(data).filter(([name, json]) => json !== shown.data[name]);
    for (const [name, json] of fresh) view.data(name, JSON.parse(json));
    shown.data = data;
    setParams();
    // Without other numbers axes and legends keep their room; to lay all out again takes long.
    await (fresh.length ? view.resize() : view).runAsync();
  }

  async function refresh() {
    if (closed || !model.get("spec")) return;
    try {
      words();
      if (view && shown.spec === form()) await update();
      else {
        await embed(shown.spec ? shown.by : 0);
        await fit();
      }
      el.dataset.drawn = String(Number(el.dataset.drawn ?? 0) + 1);
    } catch (error) {
      failed(error);
      finalize?.();
      view = finalize = null;
    }
  }

  // One after the other; several changes made meanwhile are drawn as one.
  let asked = false;
  function ask() {
    if (asked) return;
    asked = true;
    waiting = waiting.then(() => {
      asked = false;
      return refresh();
    });
  }

  const changes = "change:spec change:data change:params change:title change:subtitle";
  const channel = `mpc-lab:${model.get("link")}`;
  model.on(changes, ask);
  document.addEventListener(channel, follow);
  let lastWidth = 0;
  const observer = new ResizeObserver(() => {
    const width = el.clientWidth;
    if (!view || Math.abs(width - lastWidth) < 8) return;
    lastWidth = width;
    waiting = waiting.then(() => (closed || !view ? undefined : fit()));
  });
  observer.observe(el);
  // Another theme of the page is another ink.
  const themes = new MutationObserver(() => {
    if (view && shown.dark !== isDark()) waiting = waiting.then(() => embed(shown.by));
  });
  themes.observe(document.body, { attributeFilter: ["data-jp-theme-light"] });
  ask();
  await waiting;
  return () => {
    closed = true;
    model.off(changes, ask);
    observer.disconnect();
    themes.disconnect();
    document.removeEventListener(channel, follow);
    finalize?.();
  };
}

export default { render };

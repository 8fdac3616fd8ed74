// Draws a Vega-Lite chart and keeps the drawing while its numbers change.

const WAIT_FOR_LIBRARY = 20000;
const PICK_AFTER = 60;
const NARROWEST = 200;

function library() {
  const shared = (globalThis.__mpcLabVega ??= {});
  if (shared.embed) return Promise.resolve(shared.embed);
  shared.coming ??= new Promise((resolve) => {
    shared.arrived = () => resolve(shared.embed);
  });
  const late = new Promise((_, reject) =>
    setTimeout(
      () => reject(new Error("the chart library did not arrive; run the cell again")),
      WAIT_FOR_LIBRARY,
    ),
  );
  return Promise.race([shared.coming, late]);
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

// Every panel narrower by the same number of pixels.
function narrowed(spec, by) {
  const walk = (part) => {
    if (!part || typeof part !== "object") return;
    if (typeof part.width === "number") part.width = Math.max(part.width - by, NARROWEST);
    for (const key of ["layer", "vconcat"]) (part[key] ?? []).forEach(walk);
    walk(part.spec);
  };
  const made = structuredClone(spec);
  walk(made);
  return made;
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
  let shown = { spec: "", data: {}, by: 0 };
  let waiting = Promise.resolve();
  let closed = false;

  function words() {
    title.textContent = model.get("title");
    title.dir = "auto";
    title.hidden = !model.get("titled");
    subtitle.replaceChildren();
    for (const line of model.get("subtitle")) {
      const text = block(subtitle, "");
      text.textContent = line;
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

  function setParams() {
    for (const [name, value] of Object.entries(model.get("_params"))) {
      try {
        view.signal(name, value);
      } catch {
        // A parameter of a chart that was shown before, or will be shown next.
        continue;
      }
    }
  }

  async function embed(by) {
    const make = await library();
    const text = model.get("_spec");
    const data = model.get("_data");
    const spec = narrowed(JSON.parse(text), by);
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
    shown = { spec: text, data, by };
    listen(spec);
    setParams();
    await view.runAsync();
  }

  async function fit() {
    const room = el.clientWidth - 4;
    const svg = drawing.querySelector("svg");
    if (room < NARROWEST || !svg) return;
    const over = Math.ceil(svg.getBoundingClientRect().width - room);
    if (over > 0) await embed(shown.by + over);
    else if (shown.by && over < -12) await embed(Math.max(0, shown.by + over));
  }

  async function update() {
    const data = model.get("_data");
    for (const [name, json] of Object.entries(data)) {
      if (json !== shown.data[name]) view.data(name, JSON.parse(json));
    }
    shown.data = data;
    setParams();
    await view.resize().runAsync();
  }

  async function refresh() {
    if (closed || !model.get("_spec")) return;
    try {
      words();
      if (view && shown.spec === model.get("_spec")) await update();
      else {
        await embed(shown.by);
        await fit();
      }
      el.dataset.drawn = String(Number(el.dataset.drawn ?? 0) + 1);
    } catch (error) {
      failed(error);
      finalize?.();
      view = finalize = null;
    }
  }

  // One after the other; several changes that came meanwhile are drawn as one.
  let asked = false;
  function ask() {
    if (asked) return;
    asked = true;
    waiting = waiting.then(() => {
      asked = false;
      return refresh();
    });
  }

  const changes = "change:_spec change:_data change:_params change:title change:subtitle";
  model.on(changes, ask);
  let lastWidth = 0;
  const observer = new ResizeObserver(() => {
    const width = el.clientWidth;
    if (!view || Math.abs(width - lastWidth) < 8) return;
    lastWidth = width;
    waiting = waiting.then(() => (closed || !view ? undefined : fit()));
  });
  observer.observe(el);
  ask();
  await waiting;
  return () => {
    closed = true;
    model.off(changes, ask);
    observer.disconnect();
    finalize?.();
  };
}

export default { render };

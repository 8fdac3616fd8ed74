// A slider over given steps that moves the charts of its explorer in the page, before the kernel
// hears of it. Its rail keeps its length whatever it says, and it speaks its value.

function made(parent, tag, kind) {
  const one = document.createElement(tag);
  one.className = kind;
  parent.append(one);
  return one;
}

function render({ model, el }) {
  el.classList.add("mpc-rail");
  // Each rail of a page has a module of its own, so none can count them.
  const id = `mpc-rail-${Math.random().toString(36).slice(2)}`;
  const label = made(el, "label", "mpc-rail-label");
  label.htmlFor = id;
  const track = made(el, "div", "mpc-rail-track");
  const input = made(track, "input", "mpc-rail-input");
  input.type = "range";
  input.id = id;
  input.dataset.lmSuppressShortcuts = "true"; // JupyterLab would take the arrow keys
  const tick = made(track, "span", "mpc-rail-tick");
  tick.setAttribute("aria-hidden", "true");
  const said = made(el, "output", "mpc-rail-value");
  said.setAttribute("aria-hidden", "true");
  const channel = `mpc-lab:${model.get("link")}`;
  let mine = false;

  function place() {
    const steps = model.get("steps");
    return Math.max(steps.indexOf(model.get("value")), 0);
  }

  function speak(at) {
    const text = model.get("texts")[at] ?? "";
    said.textContent = text.replace(/^\S+ /, "");
    input.setAttribute("aria-valuetext", text);
  }

  function show() {
    const steps = model.get("steps");
    label.textContent = model.get("description");
    input.min = 0;
    input.max = Math.max(steps.length - 1, 0);
    input.step = 1;
    input.disabled = model.get("disabled");
    el.classList.toggle("mpc-off", input.disabled);
    if (!mine) input.value = place();
    speak(Number(input.value));
    const home = steps.indexOf(model.get("home"));
    tick.hidden = home < 0;
    tick.style.setProperty("--at", home / Math.max(steps.length - 1, 1));
    tick.title = model.get("home_words");
    el.dataset.away = String(home >= 0 && Number(input.value) !== home);
  }

  function tell(value) {
    const detail = { name: model.get("param"), value, home: value === model.get("home"), from: el };
    document.dispatchEvent(new CustomEvent(channel, { detail }));
  }

  function moved(value) {
    model.set("value", value);
    model.save_changes();
  }

  input.addEventListener("input", () => {
    mine = true;
    const value = model.get("steps")[Number(input.value)];
    speak(Number(input.value));
    el.dataset.away = String(value !== model.get("home"));
    tell(value);
    moved(value);
    mine = false;
  });

  // A drag in a chart moves the rail, which tells the kernel.
  function heard({ detail }) {
    if (detail.from === el || detail.name !== model.get("param") || input.disabled) return;
    const value = detail.value === null ? model.get("home") : detail.value;
    const at = model.get("steps").indexOf(value);
    if (at < 0 || value === model.get("value")) return;
    input.value = at;
    speak(at);
    moved(value);
  }

  document.addEventListener(channel, heard);
  const changes =
    "change:steps change:texts change:value change:home change:disabled change:description";
  model.on(changes, show);
  show();
  return () => {
    document.removeEventListener(channel, heard);
    model.off(changes, show);
  };
}

export default { render };

// Words of the kernel with buttons among them: what is pressed, by mouse or key, is reported to it.

// Steps through the rows and columns of a grid of buttons.
const STEPS = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
const KEYS = { ArrowLeft: "previous", ArrowRight: "next" };

function render({ model, el }) {
  el.classList.add("mpc-active");
  let presses = 0;

  function tell(name) {
    presses += 1;
    model.set("pressed", [name, presses]);
    model.save_changes();
  }

  function pressed(event) {
    const button = event.target.closest("[data-press]");
    if (button && el.contains(button)) tell(button.dataset.press);
  }

  // In a grid one button is reached by Tab, and the arrow keys lead to the others.
  function walk(event) {
    const rows = [...event.target.closest("[data-grid]").querySelectorAll("tbody tr")].map((row) => [
      ...row.querySelectorAll("[data-press]"),
    ]);
    const row = rows.findIndex((buttons) => buttons.includes(event.target));
    if (row < 0) return;
    const [down, right] = STEPS[event.key];
    const next = rows[row + down]?.[rows[row].indexOf(event.target) + right];
    event.preventDefault();
    event.stopPropagation();
    if (!next) return;
    rows.flat().forEach((one) => (one.tabIndex = one === next ? 0 : -1));
    next.focus();
  }

  function key(event) {
    if (event.key in STEPS && event.target.closest("[data-grid]")) return walk(event);
    const name = KEYS[event.key];
    if (!name || !model.get("by_keys") || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    event.stopPropagation();
    tell(name);
  }

  // The element that had the focus gets it back once the words have changed.
  function show() {
    const held = el.contains(document.activeElement)
      ? document.activeElement.dataset.press
      : undefined;
    const open = [...el.querySelectorAll("details")].map((one) => one.open);
    const box = el.querySelector(".mpc-tiles-box");
    const scrolled = box ? [box.scrollLeft, box.scrollTop] : [0, 0];
    el.innerHTML = model.get("value");
    el.querySelector(".mpc-tiles-box")?.scrollTo(...scrolled);
    el.querySelectorAll("details").forEach((one, k) => {
      one.open = open[k] ?? one.open;
    });
    // JupyterLab would take the arrow keys from what has the focus.
    el.querySelectorAll("[data-press]").forEach((one) => (one.dataset.lmSuppressShortcuts = "true"));
    const again = [...el.querySelectorAll("[data-press]")].find((b) => b.dataset.press === held);
    if (held === undefined || !again) return;
    if (again.closest("[data-grid]")) {
      el.querySelectorAll("[data-press]").forEach((one) => (one.tabIndex = one === again ? 0 : -1));
    }
    again.focus();
  }

  if (model.get("by_keys")) {
    el.tabIndex = 0;
    el.dataset.lmSuppressShortcuts = "true";
    el.setAttribute("role", "group");
    el.setAttribute("aria-label", model.get("spoken"));
  }
  el.addEventListener("click", pressed);
  el.addEventListener("keydown", key);
  model.on("change:value", show);
  show();
  return () => model.off("change:value", show);
}

export default { render };

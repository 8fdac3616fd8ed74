// Words of the kernel with buttons among them: what is pressed, by mouse or key, is reported to it.

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

  function key(event) {
    const name = KEYS[event.key];
    if (!name || !model.get("by_keys") || event.target.matches("input, select, textarea")) return;
    event.preventDefault();
    event.stopPropagation();
    tell(name);
  }

  // What had the focus has it again once the words are others.
  function show() {
    const held = el.contains(document.activeElement)
      ? document.activeElement.dataset.press
      : undefined;
    const open = [...el.querySelectorAll("details")].map((one) => one.open);
    el.innerHTML = model.get("value");
    el.querySelectorAll("details").forEach((one, k) => {
      one.open = open[k] ?? one.open;
    });
    // JupyterLab would take the arrow keys from what has the focus.
    el.querySelectorAll("[data-press]").forEach((one) => (one.dataset.lmSuppressShortcuts = "true"));
    if (held) [...el.querySelectorAll("[data-press]")].find((b) => b.dataset.press === held)?.focus();
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

// Hides the static form of the same output once everything live in it is drawn, gives sliders,
// which ipywidgets labels for the eye alone, a name that can be heard, and dims the panel when its
// kernel is gone.

const LOOK_AFTER_KERNEL = 1000;
// After sleep or a brief loss of the network, the connection is back within this many checks.
const PATIENCE = 5;

function nameSliders(area) {
  for (const handle of area.querySelectorAll(".noUi-handle:not([aria-label])")) {
    const label = handle.closest(".widget-inline-hbox")?.querySelector(".widget-label");
    if (label?.textContent) handle.setAttribute("aria-label", label.textContent);
    // The handle itself speaks of a step's number; what is shown beside it is the value.
    const shown = handle.closest(".widget-inline-hbox")?.querySelector(".widget-readout");
    shown?.setAttribute("aria-live", "polite");
  }
}

// ipywidgets tells its views of a restart, but not of a kernel that was shut down or exchanged.
function watchKernel(el, manager) {
  const first = manager?.kernel;
  if (!first) return () => {};
  let silent = 0;
  const timer = setInterval(() => {
    silent = first.connectionStatus === "connected" ? 0 : silent + 1;
    const ended = first.isDisposed || first.status === "dead" || manager.kernel?.id !== first.id;
    el.closest(".mpc-explorer")?.classList.toggle("mpc-gone", ended || silent > PATIENCE);
  }, LOOK_AFTER_KERNEL);
  return () => clearInterval(timer);
}

function render({ model, el }) {
  el.classList.add("mpc-beacon");
  const hidden = new Map();
  let timer = 0;
  let observer = null;

  function hide(area) {
    for (const still of area.querySelectorAll(".mpc-static")) {
      const child = still.closest(".jp-OutputArea-child") ?? still;
      if (child.contains(el) || hidden.has(child)) continue;
      hidden.set(child, child.style.display);
      child.style.display = "none";
    }
  }

  function look() {
    const area = el.closest(".jp-OutputArea");
    const charts = area ? [...area.querySelectorAll(".mpc-chart")] : [];
    const waiting = charts.some((chart) => !("drawn" in chart.dataset) && chart.offsetParent);
    if (!area || waiting) return;
    clearInterval(timer);
    hide(area);
    nameSliders(area);
    // The pictures of the static form come after the live one, and tabs when they are turned to.
    observer = new MutationObserver(() => {
      hide(area);
      nameSliders(area);
    });
    observer.observe(area, { childList: true, subtree: true });
    el.dataset.live = "true";
  }

  timer = setInterval(look, 50);
  const unwatch = watchKernel(el, model.widget_manager);
  return () => {
    unwatch();
    clearInterval(timer);
    observer?.disconnect();
    for (const [child, display] of hidden) child.style.display = display;
  };
}

export default { render };

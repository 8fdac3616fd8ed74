// Hides the static picture of the same output once everything live in it is drawn, and gives
// sliders, which ipywidgets labels for the eye alone, a name that can be heard.

function nameSliders(root) {
  for (const handle of root.querySelectorAll(".noUi-handle:not([aria-label])")) {
    const label = handle.closest(".widget-inline-hbox")?.querySelector(".widget-label");
    if (label?.textContent) handle.setAttribute("aria-label", label.textContent);
  }
}

function render({ el }) {
  el.classList.add("mpc-beacon");
  const hidden = [];
  let timer = 0;

  function look() {
    const area = el.closest(".jp-OutputArea, .output_area, .output");
    const charts = area ? [...area.querySelectorAll(".mpc-chart")] : [];
    const waiting = charts.some((chart) => !("drawn" in chart.dataset) && chart.offsetParent);
    if (!area || waiting) return;
    clearInterval(timer);
    for (const still of area.querySelectorAll(".mpc-static")) {
      const child = still.closest(".jp-OutputArea-child") ?? still;
      if (child.contains(el)) continue;
      hidden.push([child, child.style.display]);
      child.style.display = "none";
    }
    el.dataset.live = "true";
  }

  timer = setInterval(look, 50);
  // The element is put into the page after this function was called.
  const naming = new MutationObserver(() => nameSliders(el.closest(".mpc-explorer") ?? el));
  naming.observe(document.body, { childList: true, subtree: true });
  return () => {
    clearInterval(timer);
    naming.disconnect();
    for (const [child, display] of hidden) child.style.display = display;
  };
}

export default { render };

// Keeps what is shown in the fragment of the address, and names the page. In the app alone: the
// address of a notebook belongs to JupyterLab.

function render({ model, el }) {
  el.classList.add("mpc-beacon");
  if (!document.body.dataset.voila) return;
  document.title = model.get("title");
  history.scrollRestoration = "manual";
  window.scrollTo(0, 0);

  function show() {
    const words = model.get("words");
    if (words) history.replaceState(history.state, "", `#${words}`);
  }

  function ask() {
    model.set("asked", location.hash.slice(1));
    model.save_changes();
  }

  model.on("change:words", show);
  window.addEventListener("hashchange", ask);
  if (location.hash.length > 1) ask();
  else show();
  return () => {
    model.off("change:words", show);
    window.removeEventListener("hashchange", ask);
  };
}

export default { render };

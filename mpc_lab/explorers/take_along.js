// "Copy as Python" and "Save picture" of one tab; neither asks the kernel.

const SAID_FOR = 1600;

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // A page that is not trusted with the clipboard can still copy what is selected.
    const field = document.createElement("textarea");
    field.value = text;
    document.body.append(field);
    field.select();
    document.execCommand("copy");
    field.remove();
  }
}

function file(name, address) {
  const link = document.createElement("a");
  link.download = name;
  link.href = address;
  link.click();
}

function button(el, text) {
  const made = document.createElement("button");
  made.type = "button";
  made.className = "mpc-take";
  made.textContent = text;
  el.append(made);
  return made;
}

function say(one, text) {
  const before = one.dataset.name ?? one.textContent;
  one.dataset.name = before;
  one.textContent = text;
  setTimeout(() => {
    one.textContent = before;
  }, SAID_FOR);
}

function render({ model, el }) {
  el.classList.add("mpc-take-along");
  el.setAttribute("role", "group");
  el.setAttribute("aria-label", "Take along");
  const code = button(el, "Copy as Python");
  code.title = "Copy the lines of Python that make what is shown";
  code.addEventListener("click", async () => {
    await copy(model.get("code"));
    say(code, "Copied");
  });
  const picture = button(el, "Save picture");
  picture.title = "Save the charts of this tab as PNG";
  picture.addEventListener("click", async () => {
    const tab = el.closest(".mpc-explorer");
    const charts = [...tab.querySelectorAll(".mpc-chart")].filter((one) => one.offsetParent);
    let saved = 0;
    for (const chart of charts) {
      if (!chart.mpcView) continue;
      saved += 1;
      const last = saved > 1 ? `-${saved}` : "";
      const view = chart.mpcView;
      const before = view.background();
      view.background(chart.dataset.paper);
      const address = await view.toImageURL("png", 2);
      view.background(before);
      file(`${model.get("name")}${last}.png`, address);
    }
    say(picture, saved ? "Saved" : "No chart here");
  });
}

export default { render };

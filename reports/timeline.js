// The pictures of crashes: buttons, keys and the mouse zoom and move them; a call that is chosen is told below.
const HINT = "Drag or arrow keys move, + and - or Ctrl and the wheel zoom, 0 shows all; n and p, or a click, choose a call.";
for (const view of document.querySelectorAll(".view")) {
  const svg = view.querySelector("svg"), told = view.parentElement.querySelector("figcaption");
  const names = [...svg.querySelectorAll(".names")], calls = [...svg.querySelectorAll(".call[data-seq]")];
  const { width, height } = svg.viewBox.baseVal;
  let scale = 1, chosen = -1;
  const follow = () => names.forEach(one => one.setAttribute("transform", `translate(${view.scrollLeft / scale})`));
  const zoom = (factor, at = view.clientWidth / 2) => {
    const least = Math.min(1, view.clientWidth / width), x = (view.scrollLeft + at) / scale;
    scale = factor === 0 ? least : Math.min(4, Math.max(least, scale * factor));
    svg.setAttribute("width", width * scale);
    svg.setAttribute("height", height * scale);
    view.scrollLeft = x * scale - at;
    follow();
  };
  const choose = call => {
    calls[chosen]?.classList.remove("chosen");
    chosen = Math.max(0, Math.min(calls.length - 1, call));
    calls[chosen].classList.add("chosen");
    told.textContent = calls[chosen].querySelector("title").textContent;
    const box = calls[chosen].querySelector("rect"), x = box.x.baseVal.value * scale;
    view.scrollLeft = x - view.clientWidth / 2;
  };
  const keys = {
    "+": () => zoom(1.25), "=": () => zoom(1.25), "-": () => zoom(0.8), "0": () => zoom(0),
    n: () => choose(chosen + 1), p: () => choose(chosen < 0 ? calls.length - 1 : chosen - 1),
    Home: () => view.scrollLeft = 0, End: () => view.scrollLeft = view.scrollWidth,
    ArrowLeft: () => view.scrollLeft -= 60, ArrowRight: () => view.scrollLeft += 60,
  };
  view.onkeydown = event => {
    if (event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
    keys[event.key]();
    event.preventDefault();
  };
  view.onwheel = event => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    zoom(event.deltaY < 0 ? 1.25 : 0.8, event.clientX - view.getBoundingClientRect().left);
  };
  let from = null;
  view.onpointerdown = event => { if (event.pointerType === "mouse" && event.button === 0) from = [event.clientX, view.scrollLeft]; };
  view.onpointermove = event => {
    if (from && event.buttons) view.scrollLeft = from[1] + from[0] - event.clientX;
    else from = null;
  };
  view.onclick = event => {
    const call = event.target.closest(".call[data-seq]");
    if (call) choose(calls.indexOf(call));
  };
  view.onscroll = follow;
  const bar = document.createElement("p");
  bar.className = "zoom";
  for (const [text, label, key] of [["+", "zoom in", "+"], ["−", "zoom out", "-"], ["all", "show all", "0"]]) {
    const button = document.createElement("button");
    button.textContent = text;
    button.setAttribute("aria-label", label);
    button.onclick = keys[key];
    bar.append(button);
  }
  view.before(bar);
  told.textContent = HINT;
  const hurt = [...svg.querySelectorAll(".lost[data-seq] rect, .torn[data-seq] rect, .accused[data-seq] rect")].pop();
  view.scrollLeft = hurt ? hurt.x.baseVal.value - view.clientWidth / 2 : view.scrollWidth;
  follow();
}

// Elements without markup in strings: whatever a document says is shown as text, never run.

export function h(tag, props = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "class") element.className = value;
    else if (name in element && typeof value !== "string") element[name] = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== false));
  return element;
}

const SVG = "http://www.w3.org/2000/svg";

export function svg(tag, props = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(props)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
  return parent;
}

// ---- states: every list is empty, loading, broken or there

export function loading(rows = 3) {
  const lines = Array.from({ length: rows }, () => h("div", { class: "skeleton" }));
  return h("div", { class: "stack", "aria-busy": "true", "aria-label": "Loading" }, lines);
}

export function empty(title, text, ...actions) {
  return h("div", { class: "state" }, h("h2", {}, title), h("p", {}, text), h("div", { class: "row center" }, actions));
}

export function failure(error, again) {
  const button = again && h("button", { class: "button", onclick: again }, "Try again");
  return h("div", { class: "state bad", role: "alert" }, h("h2", {}, "That did not work"), h("p", {}, error.message), button);
}

// Shows a promise: loading, then what it gives, or its error.
export async function show(place, work, render) {
  fill(place, loading());
  try {
    fill(place, render(await work()));
  } catch (error) {
    if (error.name !== "AbortError") fill(place, failure(error, () => show(place, work, render)));
  }
}

export function toast(text, action) {
  const place = document.getElementById("toasts");
  const one = h("div", { class: "toast" }, h("span", {}, text));
  if (action) {
    const run = () => (one.remove(), action.run());
    one.append(h("button", { class: "link", onclick: run }, action.label));
  }
  place.append(one);
  setTimeout(() => one.remove(), action ? 9000 : 4500);
}

export const several = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
export const percent = (share) => `${Math.round(share * 100)} %`;
export const figure = (value) => (value === null || value === undefined ? "–" : value.toFixed(3));

export const epochName = (number) => (number < 0 ? "the candidate" : `epoch ${number}`);

export function when(seconds) {
  if (!seconds) return "";
  const passed = Date.now() / 1000 - seconds;
  if (passed < 60) return "just now";
  if (passed < 3600) return `${Math.floor(passed / 60)} min ago`;
  if (passed < 86400) return `${Math.floor(passed / 3600)} h ago`;
  return new Date(seconds * 1000).toLocaleDateString("en", { year: "numeric", month: "short", day: "numeric" });
}

// The words of a query, marked in a text.
export function highlight(text, query) {
  const words = [...new Set(query.toLowerCase().match(/[\p{L}\p{N}]{3,}/gu) ?? [])].map((word) => word.slice(0, Math.max(4, word.length - 2)));
  if (!words.length) return [text];
  const parts = text.split(/([\p{L}\p{N}]+)/u);
  return parts.map((part) => (words.some((word) => part.toLowerCase().startsWith(word)) ? h("mark", {}, part) : part));
}

export function clip(text, most = 420) {
  text = text.replace(/\n\s*\n/g, "\n").trim();
  return text.length > most ? `${text.slice(0, most).replace(/\s+\S*$/, "")} …` : text;
}

// The shell: pages by the address behind '#', the key, the collection, the colours, and the keyboard.

import * as api from "./api.js";
import { failure, fill, h, toast } from "./dom.js";
import * as documents from "./documents.js";
import * as history from "./history.js";
import * as insight from "./insight.js";
import * as learn from "./learn.js";
import * as review from "./review.js";
import * as search from "./search.js";

const PAGES = { search, learn, history, review, insight, documents };
const NAMES = { search: "Search", learn: "Learn", history: "History", review: "Review", insight: "Insight", documents: "Documents" };
const ICONS = { search: "⌕", learn: "✦", history: "↺", review: "✓", insight: "◔", documents: "▤" };
const main = document.getElementById("main");
let leave = () => {};
let turns = 0;

function address() {
  const [path, query = ""] = location.hash.replace(/^#\/?/, "").split("?");
  const name = path.split("/")[0];
  return { name: name in PAGES ? name : "search", query: new URLSearchParams(query) };
}

function drawTabs(current) {
  const tabs = Object.entries(NAMES).map(([name, label]) =>
    h("a", { href: `#/${name}`, class: "tab", "aria-current": name === current ? "page" : null, id: `tab-${name}` },
      h("span", { class: "icon", "aria-hidden": "true" }, ICONS[name]), h("span", {}, label)));
  fill(document.getElementById("tabs"), tabs);
}

export async function route() {
  const { name, query } = address();
  leave();
  leave = () => {};
  drawTabs(name);
  document.title = `${NAMES[name]} · evokey`;
  const place = h("div", { class: `page ${name}` });
  fill(main, place);
  const turn = (turns += 1);
  try {
    const close = (await PAGES[name].open(place, query)) ?? (() => {});
    if (turn === turns) leave = close;
    else close(); // somebody went on before it had opened
  } catch (error) {
    if (turn === turns && error.status !== 401) fill(place, failure(error, route));
  }
}

// ---- the key

function askForKey(reason) {
  leave();
  const input = h("input", { id: "key", type: "password", autocomplete: "off", required: true, spellcheck: "false", placeholder: "evk_…" });
  const submit = (event) => {
    event.preventDefault();
    api.setKey(input.value.trim());
    start();
  };
  const form = h("form", { class: "card narrow stack", onsubmit: submit },
    h("h1", {}, "Sign in"),
    h("p", { class: "quiet" }, reason ?? "This service asks for an API key. It stays in this tab, until you close it."),
    h("label", { for: "key" }, "API key"), input,
    h("div", { class: "row" }, h("button", { class: "button primary" }, "Continue")),
    h("p", { class: "quiet small" }, "No key yet? On the machine of the service: ", h("code", {}, "evokey api-keys create NAME --scope teach")));
  fill(document.getElementById("tools"), themeButton());
  fill(document.getElementById("tabs"));
  fill(main, form);
  input.focus();
}

window.addEventListener("evokey-key", () => {
  const had = api.getKey();
  api.setKey("");
  askForKey(had ? "That key is unknown, expired or revoked. Try another one." : undefined);
});

// ---- colours and tools

function themeButton() {
  const dark = () => (document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light")) === "dark";
  const turn = () => {
    document.documentElement.dataset.theme = dark() ? "light" : "dark";
    localStorage.setItem("evokey-theme", document.documentElement.dataset.theme);
    button.textContent = dark() ? "☀" : "☾";
  };
  const button = h("button", { class: "button plain", onclick: turn, "aria-label": "Light or dark colours", title: "Light or dark" }, dark() ? "☀" : "☾");
  return button;
}

function drawTools(collections) {
  const choose = (event) => {
    api.state.collection = event.target.value;
    sessionStorage.setItem("evokey-collection", event.target.value);
    route();
  };
  const several = collections.length > 1 && h("select", { "aria-label": "Collection", onchange: choose },
    collections.map((name) => h("option", { value: name, selected: name === api.state.collection }, name)));
  const out = () => (api.setKey(""), location.reload());
  const who = api.state.who.auth && h("button", { class: "button plain", onclick: out, title: "Forget the key in this tab" }, "Sign out");
  fill(document.getElementById("tools"), several, themeButton(), h("button", { class: "button plain", onclick: help, "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)" }, "?"), who);
}

function help() {
  const keys = [["/", "Search"], ["g then s l h r i d", "Go to a page"], ["j  k", "Next and previous"], ["r  w", "Right and wrong"], ["u", "Take it back"], ["s", "Skip a review"], ["Enter", "Save a review"], ["?", "This help"]];
  const rows = keys.map(([key, text]) => [h("dt", {}, h("kbd", {}, key)), h("dd", {}, text)]);
  const box = h("dialog", { class: "card", "aria-label": "Keyboard shortcuts", onclose: () => box.remove() },
    h("h2", {}, "Keyboard"), h("dl", { class: "keys" }, rows),
    h("form", { method: "dialog", class: "row" }, h("button", { class: "button primary" }, "Close")));
  document.body.append(box);
  box.showModal();
}

// ---- the keyboard

let going = false;
const typing = (target) => target.closest("input, textarea, select, dialog[open]");
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || typing(event.target)) return;
  if (going) {
    going = false;
    const page = Object.keys(PAGES).find((name) => name[0] === event.key);
    if (page) location.hash = `#/${page}`;
    return;
  }
  if (event.key === "g") going = true;
  else if (event.key === "?") help();
  else if (event.key === "/") {
    event.preventDefault();
    if (address().name !== "search") location.hash = "#/search";
    setTimeout(() => document.getElementById("query")?.focus(), 50);
  }
});

// ---- start

async function start() {
  try {
    api.state.who = await api.root("v1/whoami");
    const { collections, layers } = await api.root("v1/collections");
    api.state.layers = layers;
    const wanted = sessionStorage.getItem("evokey-collection");
    api.state.collection = collections.includes(wanted) ? wanted : (collections[0] ?? "default");
    drawTools(collections);
    await route();
  } catch (error) {
    if (error.status !== 401) fill(main, failure(error, start));
  }
}

const chosen = localStorage.getItem("evokey-theme");
if (chosen) document.documentElement.dataset.theme = chosen;
window.addEventListener("hashchange", route);
window.addEventListener("offline", () => toast("You are offline."));
start();

// Review: questions that wait for a person, one at a time. Keys: j, k, r, w, u, s, Enter.

import { get, may, post } from "./api.js";
import { clip, empty, failure, fill, h, highlight, several, toast, when } from "./dom.js";

export async function open(place) {
  const { questions } = await get("reviews");
  let at = 0;
  let marks = new Map();
  let focus = 0;
  const draw = () => {
    const one = questions[at];
    if (!one) {
      fill(place, h("h1", {}, "Review"), empty("Nothing waits for you", "Thumbs down and doubtful answers come here, for somebody to say what was right.", h("a", { class: "button", href: "#/search" }, "Search")));
      return;
    }
    const items = one.documents.map((document, number) => item(one, document, number));
    fill(place, h("div", { class: "row head" }, h("div", { class: "grow" }, h("h1", {}, "Review"), h("p", { class: "quiet" }, `${several(questions.length - at, "question")} waiting. Which of these documents answer it?`))),
      h("article", { class: "card stack" }, h("p", { class: "quiet small" }, `asked ${when(one.time)}`), h("h2", { class: "question" }, one.query),
        one.answer && h("blockquote", {}, one.answer)),
      h("ol", { class: "hits", id: "documents" }, items),
      h("div", { class: "row sticky" }, h("button", { class: "button primary", id: "save", disabled: !may("teach"), onclick: save }, "Save ", h("kbd", {}, "Enter")),
        h("button", { class: "button", id: "skip", disabled: !may("teach"), onclick: skip }, "Skip ", h("kbd", {}, "s")), h("span", { class: "quiet small" }, h("kbd", {}, "j"), " ", h("kbd", {}, "k"), " move  ", h("kbd", {}, "r"), " right  ", h("kbd", {}, "w"), " wrong  ", h("kbd", {}, "u"), " neither")));
    items[focus]?.focus();
  };
  const item = (one, document, number) => {
    const mark = marks.get(document.id);
    const button = (name, text, kind) => h("button", { class: `button ${mark === name ? kind : ""}`, "aria-pressed": `${mark === name}`, onclick: () => set(document.id, name, number) }, text);
    return h("li", { class: `card hit ${mark ?? ""}`, tabindex: "0", onfocus: () => (focus = number) }, h("h3", {}, document.title || document.id), h("p", { class: "quiet small mono" }, document.id),
      h("p", { class: "passage" }, highlight(clip(document.text, 500), one.query)), h("div", { class: "row" }, button("right", "✓ Right", "good"), button("wrong", "✗ Wrong", "wrong")));
  };
  const set = (id, name, number) => {
    if (marks.get(id) === name || !name) marks.delete(id);
    else marks.set(id, name);
    focus = number;
    draw();
  };
  const next = () => {
    at += 1;
    focus = 0;
    marks = new Map();
    draw();
  };
  const named = (name) => [...marks].filter(([, mark]) => mark === name).map(([id]) => id);
  const send = async (body, text) => {
    try {
      await post(`reviews/${questions[at].id}`, body);
      toast(text);
      next();
    } catch (error) {
      fill(place, failure(error, () => open(place)));
    }
  };
  const save = () => (marks.size ? send({ right: named("right"), wrong: named("wrong") }, "Saved as a lesson.") : toast("Mark a document right or wrong, or skip."));
  const skip = () => send({ skip: true }, "Skipped.");
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !questions[at] || !may("teach") || event.target.closest("input, select, textarea, dialog[open]")) return;
    const documents = questions[at].documents;
    const moves = { j: 1, ArrowDown: 1, k: -1, ArrowUp: -1 };
    if (event.key in moves) {
      event.preventDefault();
      focus = Math.min(documents.length - 1, Math.max(0, focus + moves[event.key]));
      place.querySelectorAll("#documents > li")[focus]?.focus();
    } else if (event.key === "r" || event.key === "w") set(documents[focus].id, event.key === "r" ? "right" : "wrong", focus);
    else if (event.key === "u") set(documents[focus].id, null, focus);
    else if (event.key === "s") skip();
    else if (event.key === "Enter" && event.target.tagName !== "BUTTON" && event.target.tagName !== "A") save();
  };
  draw();
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}

// Documents: browse, read, and what each has learned, from whom, and how far it moved.

import { get, isLayer, may, post, remove } from "./api.js";
import { clip, empty, failure, figure, fill, h, several, show, toast } from "./dom.js";
import { lessonList } from "./search.js";
import { welcome } from "./welcome.js";

const COUNT = 40;

export async function open(place, query) {
  const id = query.get("id");
  if (id) return read(place, id);
  if (isLayer()) {
    fill(place, h("h1", {}, "Documents"), empty("The documents are in your search", "This collection learns beside it, and keeps lessons and ids alone.", h("a", { class: "button primary", href: "#/search" }, "Search")));
    return;
  }
  const after = Number(query.get("after") ?? 0);
  const [stats, page] = await Promise.all([get("stats"), get("documents", { count: COUNT, after })]);
  if (!stats.documents) {
    welcome(place, () => open(place, query));
    return;
  }
  const row = (one) => h("li", {}, h("a", { class: "card line", href: `#/documents?${new URLSearchParams({ id: one.id })}` },
    h("b", {}, one.title || clip(one.id, 80)), h("span", { class: "quiet small mono" }, clip(one.id, 80)), h("span", { class: "quiet small" }, clip(one.text.replace(/\s+/g, " "), 160))));
  fill(place, h("div", { class: "row head" }, h("div", { class: "grow" }, h("h1", {}, "Documents"),
      h("p", { class: "quiet" }, `${several(stats.documents, "document")}, ${stats.documents_touched.toLocaleString("en")} of them have learned something.`))),
    page.documents.length ? h("ol", { class: "hits" }, page.documents.map(row)) : empty("No more documents", "This was the last page."),
    h("nav", { class: "row", "aria-label": "Pages of documents" }, after ? h("a", { class: "button", href: "#/documents" }, "First page") : null,
      page.next ? h("a", { class: "button", href: `#/documents?after=${page.next}` }, "Next page") : null));
}

async function read(place, id) {
  const learned = h("section", { class: "card stack", "aria-label": "What it has learned" });
  const document = await get("document", { id });
  const erase = async () => {
    if (!confirm(`Remove “${document.title || id}”? What it was taught waits, in case it comes back.`)) return;
    try {
      await remove("document", { id });
      toast("Removed.");
      location.hash = "#/documents";
    } catch (error) {
      fill(learned, failure(error));
    }
  };
  const facts = Object.entries(document.metadata);
  fill(place, h("p", {}, h("a", { href: "#/documents" }, "← Documents")),
    h("div", { class: "columns reading" },
      h("article", { class: "card stack" }, h("h1", {}, document.title || id), h("p", { class: "quiet small mono" }, id),
        facts.length ? h("dl", { class: "facts" }, facts.map(([name, value]) => [h("dt", {}, name), h("dd", {}, typeof value === "string" ? value : JSON.stringify(value))])) : null,
        h("pre", { class: "text" }, document.text),
        may("admin") && !isLayer() ? h("div", { class: "row" }, h("button", { class: "button plain", onclick: erase }, "Remove this document")) : null),
      learned));
  await show(learned, () => post("explain", { document: id }), (told) => [h("h2", {}, "What it has learned"),
    told.views.some((one) => one.moved) ? h("dl", { class: "facts" }, told.views.map((one) => [h("dt", {}, one.retriever), h("dd", {}, `moved ${figure(one.moved)}`)])) : null,
    lessonList(told.lessons, told.lesson_count),
    told.set_aside ? h("p", { class: "quiet" }, `${several(told.set_aside, "lesson")} about an earlier text, set aside.`) : null,
    told.left_out ? h("p", { class: "bad" }, `${several(told.left_out, "lesson")} left out, because they harm what others ask.`) : null]);
}

// Insight: what is asked and not found, what is worth teaching, and how well the memory does.

import { get } from "./api.js";
import { clip, empty, fill, h, percent, several, svg, when } from "./dom.js";

export async function open(place) {
  const told = await get("insight");
  if (!told.searches && !told.quality.length && !told.actors.length) {
    fill(place, h("h1", {}, "Insight"), empty("Nothing to tell yet", "When people search, this page shows what they miss, and what is worth teaching.", h("a", { class: "button primary", href: "#/search" }, "Search")));
    return;
  }
  const asked = (query) => h("a", { href: `#/search?${new URLSearchParams({ q: query })}` }, clip(query, 70));
  const list = (title, hint, found, render, none) => h("section", { class: "card" }, h("h2", {}, title), h("p", { class: "quiet small" }, hint),
    found.length ? h("ol", { class: "list rows" }, found.slice(0, 10).map((one) => h("li", {}, render(one)))) : h("p", { class: "quiet" }, none));
  const right = (text) => h("span", { class: "quiet small push" }, text);
  fill(place, h("h1", {}, "Insight"), h("p", { class: "quiet" }, `${several(told.searches, "search").replace("searchs", "searches")} in the last week.`),
    h("div", { class: "grid" },
      list("Worth teaching", "Asked often, never taught; by expected gain.", told.worth_teaching, (one) => [asked(one.query), right(`${one.times}×, gain ${one.expected_gain.toFixed(1)}`)], "Everything that was asked has been taught."),
      list("Without hits", "Questions that found nothing.", told.without_hits, (one) => [asked(one.query), right(`${one.times}×`)], "Every search found something."),
      list("Thumbs down", "Questions whose answers did not help.", told.voted_down, (one) => [asked(one.query), right(`${one.down} down, ${one.up} up`)], "Nobody complained."),
      list("Gaps", "Not in the documents, people say: worth writing.", told.gaps, (one) => [asked(one.query), right(`${several(one.votes, "vote")}, ${when(one.time)}`)], "No gaps are known."),
      list("Documents everywhere", "Among the first ten of the most questions.", told.everywhere, (one) => [h("a", { href: `#/documents?${new URLSearchParams({ id: one.document })}` }, clip(one.document, 50)), right(percent(one.share))], "No searches yet."),
      list("Who teaches", "Lessons by person.", told.actors, (one) => [h("span", {}, one.actor ?? "the owner"), right(several(one.lessons, "lesson"))], "Nobody yet."),
      h("section", { class: "card wide" }, h("h2", {}, "Quality over time"), h("p", { class: "quiet small" }, "nDCG@10 of held-out questions in each epoch; before anything was taught, dashed."), chart(told.quality)),
      h("section", { class: "card" }, h("h2", {}, "Cost"), h("p", { class: "quiet small" }, "Language models, since the memory was made."),
        h("dl", { class: "facts" }, [["Calls", told.calls], ["Tokens", told.tokens], ["US dollars", told.money.toFixed(2)]].map(([name, value]) => [h("dt", {}, name), h("dd", {}, value.toLocaleString("en"))])))));
}

function chart(quality) {
  const points = quality.map((one) => ({ epoch: one.epoch, before: one.held_out_before ?? one.taught_before, after: one.held_out_after ?? one.taught_after })).filter((one) => one.after !== null && one.after !== undefined);
  if (!points.length) return h("p", { class: "quiet" }, "No epoch has been measured yet.");
  const [width, height, left, bottom] = [640, 180, 34, 24];
  const x = (place) => left + 12 + (points.length === 1 ? (width - left - 24) / 2 : (place * (width - left - 24)) / (points.length - 1));
  const y = (value) => 8 + (1 - value) * (height - bottom - 12);
  const line = (name) => points.map((one, place) => `${place ? "L" : "M"}${x(place).toFixed(1)} ${y(one[name]).toFixed(1)}`).join("");
  const said = points.map((one) => `epoch ${one.epoch}: ${one.before.toFixed(2)} to ${one.after.toFixed(2)}`).join(", ");
  return svg("svg", { viewBox: `0 0 ${width} ${height}`, class: "chart", role: "img", "aria-label": said },
    ...[0, 0.25, 0.5, 0.75, 1].flatMap((value) => [svg("line", { x1: left, x2: width, y1: y(value), y2: y(value), class: "gridline" }), label(left - 6, y(value) + 4, value.toFixed(2), "end")]),
    svg("path", { d: line("before"), class: "was" }), svg("path", { d: line("after"), class: "is" }),
    ...points.flatMap((one, place) => [svg("circle", { cx: x(place), cy: y(one.before), r: 3, class: "was" }), svg("circle", { cx: x(place), cy: y(one.after), r: 4, class: "is" }), label(x(place), height - 4, `${one.epoch}`, "middle")]));
}

function label(x, y, text, anchor) {
  const one = svg("text", { x, y, "text-anchor": anchor });
  one.textContent = text;
  return one;
}

// History: epochs as a timeline, what changed between two, rollback; forgetting, with a preview; comparisons.

import { get, may, post } from "./api.js";
import { clip, empty, epochName, failure, figure, fill, h, loading, several, toast, when } from "./dom.js";

export async function open(place) {
  const [{ epochs }, compared] = await Promise.all([get("epochs"), get("comparisons")]);
  const current = epochs.at(-1).number;
  const list = [...epochs].reverse().map((one) => epoch(one, current, () => open(place)));
  fill(place, h("h1", {}, "History"),
    compared.alarms.map((one) => h("div", { class: "note bad", role: "alert" }, h("b", {}, "Alarm: "), `${one.figure} fell after epoch ${one.epoch}, from ${figure(one.before)} to ${figure(one.after)}.`)),
    epochs.length === 1 ? empty("Nothing has been learned yet", "Each time you publish, an epoch appears here. You can compare them, and go back to any of them.", h("a", { class: "button primary", href: "#/learn" }, "Learn")) : null,
    h("ol", { class: "timeline", "aria-label": "Epochs, the newest first" }, list),
    comparisons(compared.comparisons), may("admin") ? forgetting(() => open(place)) : null);
}

function epoch(one, current, again) {
  const detail = h("div", {});
  const quality = one.report?.held_out ?? one.report?.taught;
  const name = one.report?.held_out ? "held-out questions" : "taught questions";
  const back = async () => {
    if (!confirm(`Go back to epoch ${one.number}? It is published as a new epoch; lessons that it does not know are put on hold.`)) return;
    try {
      const told = await post("rollback", { epoch: one.number });
      toast(`Epoch ${told.number} is what epoch ${one.number} was.`);
      again();
    } catch (error) {
      toast(error.message);
    }
  };
  const compare = async () => {
    if (detail.childElementCount) return fill(detail);
    fill(detail, loading(2));
    try {
      fill(detail, difference(await get("diff", { a: Math.max(0, one.number - 1), b: one.number })));
    } catch (error) {
      fill(detail, failure(error, compare));
    }
  };
  const kinds = { untaught: "Untaught index", evolve: "Learned", rollback: "Rolled back", forget: "Learned again after a forget", reencode: "Learned again with another encoder" };
  return h("li", { class: one.number === current ? "current" : "" }, h("div", { class: "card" },
    h("div", { class: "row top" }, h("div", { class: "grow" },
      h("h2", {}, `Epoch ${one.number}`, h("span", { class: "quiet" }, ` ${kinds[one.kind] ?? one.kind}`)),
      h("p", { class: "quiet small" }, when(one.time), one.redacted ? " · parts of it were forgotten" : "")),
      one.number === current && h("span", { class: "badge up" }, "in use")),
    one.report?.reason && h("p", {}, one.report.reason),
    quality && h("p", { class: "mono small" }, `nDCG@10 of ${name}: ${figure(quality.before)} → ${figure(quality.after)}`),
    h("div", { class: "row" }, one.number > 0 && h("button", { class: "button plain", onclick: compare }, "What changed?"),
      one.number !== current && may("admin") && h("button", { class: "button plain", onclick: back }, "Go back to this")), detail));
}

function difference(told) {
  const documents = told.documents.slice(0, 20).map((one) => h("li", {}, h("a", { href: `#/documents?${new URLSearchParams({ id: one.document })}` }, clip(one.document, 60)), h("span", { class: "quiet" }, ` taught texts ${one.taught_before} → ${one.taught_after}`)));
  const queries = told.queries.slice(0, 20).map((one) => h("li", {}, h("a", { href: `#/search?${new URLSearchParams({ q: one.query, compare: 1 })}` }, clip(one.query, 80)),
    one.quality_before !== null && h("span", { class: `mono small ${one.quality_after < one.quality_before ? "bad" : "ok"}` }, ` ${figure(one.quality_before)} → ${figure(one.quality_after)}`)));
  if (!documents.length && !queries.length) return h("p", { class: "quiet" }, "Nothing: both answer the same.");
  return h("div", { class: "columns" }, h("section", {}, h("h3", {}, several(told.documents.length, "document")), h("ul", { class: "list" }, documents)),
    h("section", {}, h("h3", {}, several(told.queries.length, "question"), h("span", { class: "quiet" }, ` of ${told.queries_compared}`)), h("ul", { class: "list" }, queries)));
}

function comparisons(found) {
  if (!found.length) return null;
  const row = (one) => h("tr", {}, h("td", {}, `${epochName(one.epoch)} and ${epochName(one.other)}`), h("td", {}, one.mode), h("td", {}, several(one.impressions, "search").replace("searchs", "searches")),
    h("td", { class: "mono" }, `${one.wins} : ${one.losses}`), h("td", { class: "mono" }, `${one.margin.toFixed(3)} (${one.low.toFixed(3)} to ${one.high.toFixed(3)})`),
    h("td", {}, one.winner === null ? h("span", { class: "quiet" }, "cannot be told yet") : h("b", {}, `${epochName(one.winner)} wins`)));
  return h("section", { class: "card" }, h("h2", {}, "Epochs compared by what people click"), h("div", { class: "scroll" }, h("table", {},
    h("thead", {}, h("tr", {}, ["Epochs", "How", "Seen", "For : against", "Margin (96 % interval)", "Result"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, found.map(row)))));
}

function forgetting(done) {
  const kind = h("select", { id: "forget-kind" }, [["actor", "a person (actor)"], ["query", "a question"], ["document", "a document (id)"]].map(([value, text]) => h("option", { value }, text)));
  const value = h("input", { id: "forget-value", required: true, autocomplete: "off", placeholder: "name, question or id" });
  const outcome = h("div", { "aria-live": "polite" });
  const look = async (event) => {
    event.preventDefault();
    const said = { [kind.value]: value.value.trim() };
    fill(outcome, loading(1));
    try {
      const { preview } = await post("forget", { ...said, preview: true });
      const sure = h("button", { class: "button wrong", onclick: () => erase(said) }, preview.lessons ? `Forget ${several(preview.lessons, "lesson")} for good` : "Forget for good");
      fill(outcome, h("div", { class: "note stack" }, h("p", {}, h("b", {}, several(preview.lessons, "lesson")), ` on ${several(preview.documents.length, "document")} would go, and all that was learned from them. What was asked and voted goes too. This cannot be undone.`),
        h("ul", {}, preview.queries.slice(0, 8).map((one) => h("li", {}, h("q", {}, clip(one, 90))))), h("div", { class: "row" }, sure)));
    } catch (error) {
      fill(outcome, failure(error));
    }
  };
  const erase = async (said) => {
    fill(outcome, loading(1));
    try {
      const { forgotten } = await post("forget", said);
      toast(`Forgot ${several(forgotten.lessons, "lesson")}.${forgotten.pending ? ` Not all of it is erased yet: ${forgotten.pending}` : ""}`);
      done();
    } catch (error) {
      fill(outcome, failure(error));
    }
  };
  return h("section", { class: "card stack" }, h("h2", {}, "Forget"), h("form", { class: "row", onsubmit: look },
    h("label", { for: "forget-kind" }, "Forget"), kind, h("label", { for: "forget-value", class: "hidden" }, "Which one"), value, h("button", { class: "button" }, "What would go?")), outcome);
}

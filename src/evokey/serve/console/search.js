// Search: passages, what moved and why, teaching by one click; and the first steps with an empty memory.

import { ask, get, getCandidate, isLayer, may, post } from "./api.js";
import { clip, empty, failure, figure, fill, h, highlight, loading, several, toast, when } from "./dom.js";
import { welcome } from "./welcome.js";

const REASONS = ["wrong document", "outdated", "not in the documents", "bad answer"];

export async function open(place, query) {
  const [stats, candidate] = await Promise.all([get("stats"), getCandidate()]);
  if (!stats.documents && !isLayer()) {
    welcome(place, () => open(place, query));
    return;
  }
  const said = query.get("q") ?? "";
  const results = h("section", { "aria-label": "Results", "aria-live": "polite" });
  const input = h("input", { id: "query", type: "search", value: said, placeholder: "Ask a question", autocomplete: "off", "aria-label": "Question", maxlength: "2000" });
  const compare = h("input", { type: "checkbox", id: "compare", checked: query.has("compare"), disabled: !stats.epoch });
  const answer = h("input", { type: "checkbox", id: "answer", checked: query.has("answer") });
  const mix = h("input", { type: "checkbox", id: "mix", checked: query.has("mix") && candidate !== null });
  const go = (event) => {
    event?.preventDefault();
    if (!input.value.trim()) return input.focus();
    const next = new URLSearchParams({ q: input.value.trim() });
    if (compare.checked) next.set("compare", "1");
    if (answer.checked) next.set("answer", "1");
    if (mix.checked) next.set("mix", "1");
    const hash = `#/search?${next}`;
    if (location.hash === hash) window.dispatchEvent(new Event("hashchange"));
    else location.hash = hash;
  };
  compare.addEventListener("change", () => input.value.trim() && go());
  answer.addEventListener("change", () => input.value.trim() && go());
  mix.addEventListener("change", () => input.value.trim() && go());
  const form = h("form", { class: "searchbar", role: "search", onsubmit: go },
    h("div", { class: "field" }, input, h("button", { class: "button primary" }, "Search")),
    h("div", { class: "row options" },
      h("label", { class: "check", title: stats.epoch ? "" : "Nothing has been learned yet" }, compare, "Before and after, side by side"),
      isLayer() ? null : h("label", { class: "check" }, answer, "Write an answer"),
      candidate && h("label", { class: "check", title: "Which of them you open says which is better" }, mix, "Mix in the candidate"),
      h("span", { class: "quiet small push" }, `${isLayer() ? "beside your search" : several(stats.documents, "document")}, epoch ${stats.epoch}`)));
  fill(place, h("h1", { class: "hidden" }, "Search"), form, results);
  if (!said) {
    fill(results, empty("Ask your documents", "Type a question in your own words. Then say which documents were right: the memory learns from it.",
      may("teach") && stats.pending ? h("a", { class: "button", href: "#/learn" }, `Learn from ${several(stats.pending, "new lesson")}`) : null));
    input.focus();
    return;
  }
  const ending = new AbortController();
  const keys = await run(results, said, { compare: compare.checked && stats.epoch > 0, answer: answer.checked, mix: mix.checked, epoch: stats.epoch }, ending.signal);
  return () => (ending.abort(), keys?.());
}

async function run(results, said, options, signal) {
  fill(results, loading(4));
  try {
    const asked = [post("search", { query: said, k: 10, ...(options.mix ? { compare: "candidate" } : {}) }, signal)];
    if (options.compare || options.epoch) asked.push(post("search", { query: said, k: 10, epoch: 0, keep: false }, signal));
    const [now, before] = await Promise.all(asked);
    const written = options.answer ? h("section", { class: "card answer", "aria-label": "Answer", "aria-live": "polite" }) : null;
    if (!now.hits.length) {
      fill(results, written, nothing(said, now));
    } else if (options.compare) {
      fill(results, written, sideBySide(said, now, before), voting(now));
    } else {
      const list = cards(said, now, before);
      fill(results, written, list, voting(now));
      if (written) write(written, said, signal);
      return keyboard(list);
    }
    if (written) write(written, said, signal);
  } catch (error) {
    if (error.name !== "AbortError") fill(results, failure(error, () => run(results, said, options, signal)));
  }
}

function nothing(said, now) {
  const gap = () => post("ratings", { query_id: now.query_id, vote: "down", reason: "not in the documents" })
    .then(() => toast("Noted as a gap. See Insight."), (error) => toast(error.message));
  return empty("Nothing found", `No document has words of “${clip(said, 80)}”, and nobody has taught it yet.`,
    may("teach") && now.query_id && h("button", { class: "button", onclick: gap }, "It is not in the documents"),
    h("a", { class: "button", href: "#/documents" }, "Browse documents"));
}

// ---- one list

function cards(said, now, before) {
  const ranks = new Map((before?.hits ?? []).map((hit, place) => [hit.id, place + 1]));
  return h("ol", { class: "hits", id: "hits" }, now.hits.map((hit, place) => card(said, hit, place + 1, before && (ranks.get(hit.id) ?? null), now.query_id)));
}

function moved(rank, before) {
  if (before === undefined || before === false) return null;
  if (before === null) return h("span", { class: "badge up" }, "new here");
  if (before === rank) return null;
  const up = before > rank;
  return h("span", { class: `badge ${up ? "up" : "down"}`, title: `was ${before}. before anything was taught` }, `${up ? "▲" : "▼"} ${Math.abs(before - rank)}`);
}

// Whoever opens a document says something about the epochs that are compared.
function opened(queryId, id) {
  return queryId ? () => void post("clicks", { query_id: queryId, document: id }).catch(() => {}) : null;
}

function card(said, hit, rank, before, queryId) {
  const why = h("div", { class: "why" });
  const explain = h("button", { class: "button plain", "aria-expanded": "false", onclick: () => toggle(explain, why, said, hit.id) }, "Why?");
  const teaching = may("teach") ? teach(said, hit.id) : null;
  const where = hit.passage.where && h("span", { class: "quiet" }, ` › ${hit.passage.where}`);
  return h("li", { class: "card hit", tabindex: "-1", "data-id": hit.id },
    h("div", { class: "row top" },
      h("span", { class: "rank", "aria-hidden": "true" }, `${rank}`),
      h("div", { class: "grow" },
        h("h2", {}, h("a", { href: `#/documents?${new URLSearchParams({ id: hit.id })}`, onclick: opened(queryId, hit.id) }, hit.title || hit.id), where),
        h("p", { class: "quiet small mono" }, hit.passage.name || hit.id)),
      moved(rank, before)),
    h("p", { class: "passage" }, highlight(clip(hit.passage.text), said)),
    h("div", { class: "row" }, teaching, explain), why);
}

function teach(said, id) {
  const place = h("span", { class: "row teach" });
  const draw = (verdict) => {
    const mark = (name) => () => send(name);
    fill(place,
      h("button", { class: `button ${verdict === "right" ? "good" : ""}`, "aria-pressed": `${verdict === "right"}`, "data-key": "r", onclick: mark("right") }, "✓ Right"),
      h("button", { class: `button ${verdict === "wrong" ? "wrong" : ""}`, "aria-pressed": `${verdict === "wrong"}`, "data-key": "w", onclick: mark("wrong") }, "✗ Wrong"),
      verdict && h("button", { class: "button plain", "data-key": "u", onclick: mark("undo") }, "Undo"));
  };
  const send = async (name) => {
    const bodies = { right: { relevant: [id] }, wrong: { irrelevant: [id] }, undo: { relevant: { [id]: 0 } } };
    try {
      const told = await post("feedback", { query: said, ...bodies[name] });
      draw(name === "undo" ? null : name);
      if (name === "undo") toast("Taken back.");
      else toast(`Lesson ${told.lessons[0].number} recorded. It counts from the next publish on.`, { label: "Learn", run: () => (location.hash = "#/learn") });
    } catch (error) {
      toast(error.message);
    }
  };
  draw(null);
  return place;
}

// ---- why

async function toggle(button, place, said, id) {
  const open = button.getAttribute("aria-expanded") === "true";
  button.setAttribute("aria-expanded", `${!open}`);
  if (open) return fill(place);
  fill(place, loading(2));
  try {
    fill(place, explanation(await post("explain", { document: id, query: said })));
  } catch (error) {
    fill(place, failure(error));
  }
}

export function explanation(told) {
  const rank = (value) => (value === null ? "not among the first 100" : `rank ${value}`);
  const parts = [h("p", {}, h("b", {}, "Before: "), rank(told.rank_before), h("b", {}, "  Now: "), rank(told.rank_after))];
  if (!told.in_reach) parts.push(h("p", { class: "quiet" }, "The question is like nothing that was taught, so the untaught index answers."));
  if (told.passage_reason) parts.push(h("p", { class: "quiet" }, told.passage_reason));
  for (const view of told.views) {
    const changed = Math.abs(view.after - view.before) > 1e-9;
    parts.push(h("p", {}, h("b", {}, `${view.retriever}: `), `${figure(view.before)} → ${figure(view.after)}`,
      changed && view.nearest_taught && view.best_key === "taught question" ? [", like the taught ", h("q", {}, view.nearest_taught)] : null));
    const causes = view.contributions.filter((one) => Math.abs(one.amount) > 1e-9).slice(0, 5);
    if (causes.length) parts.push(h("ul", {}, causes.map((one) => h("li", {}, `${one.amount > 0 ? "+" : ""}${one.amount.toFixed(3)} from `, h("q", {}, one.text)))));
  }
  parts.push(lessonList(told.lessons, told.lesson_count));
  return h("div", { class: "explained" }, parts);
}

export function lessonList(lessons, count) {
  if (!count) return h("p", { class: "quiet" }, "Nobody has taught this document anything yet.");
  const rows = lessons.slice(-8).reverse().map((lesson) => h("li", {},
    h("span", { class: `badge ${lesson.verdicts[0]?.grade > 0 ? "up" : "down"}` }, lesson.verdicts[0]?.grade > 0 ? "right" : "wrong"), " ",
    h("q", {}, lesson.query), h("span", { class: "quiet" }, ` lesson ${lesson.number}, by ${lesson.actor ?? "the owner"}, ${when(lesson.time)}${lesson.held ? ", on hold" : ""}`)));
  return [h("p", {}, h("b", {}, several(count, "lesson")), lessons.length ? ":" : " (of others)"), h("ul", { class: "list" }, rows)];
}

// ---- before and after

function sideBySide(said, now, before) {
  const ranks = (found) => new Map(found.hits.map((hit, place) => [hit.id, place + 1]));
  const [was, is] = [ranks(before), ranks(now)];
  const row = (hit, place, other, taught) => h("li", { class: "card hit small" },
    h("div", { class: "row top" }, h("span", { class: "rank" }, `${place + 1}`),
      h("div", { class: "grow" }, h("h3", {}, hit.title || hit.id), h("p", { class: "quiet small" }, highlight(clip(hit.passage.text, 140), said))),
      taught ? moved(place + 1, other.get(hit.id) ?? null) : !other.has(hit.id) && h("span", { class: "badge down" }, "gone")),
    taught && may("teach") ? teach(said, hit.id) : null);
  const column = (title, found, other, taught) => h("section", { class: taught ? "now" : "was" }, h("h2", { class: "column" }, title),
    found.hits.length ? h("ol", { class: "hits" }, found.hits.map((hit, place) => row(hit, place, other, taught))) : h("p", { class: "state" }, "Nothing found"));
  return h("div", { class: "columns" }, column("Before, untaught", before, is, false), column(`Now, epoch ${now.epoch}`, now, was, true));
}

// ---- votes

function voting(now) {
  if (!now.query_id || !may("teach")) return null;
  const place = h("div", { class: "card vote row" });
  const send = async (vote, reason) => {
    try {
      await post("ratings", { query_id: now.query_id, vote, ...(reason ? { reason } : {}) });
      if (vote === "none") return draw();
      const told = vote === "up" ? "Thank you." : "Thank you. Somebody will look at it: it is in Review.";
      fill(place, h("span", {}, told), h("button", { class: "button plain", onclick: () => send("none") }, "Take it back"));
    } catch (error) {
      toast(error.message);
    }
  };
  const ask = () => fill(place, h("span", {}, "What was wrong?"), REASONS.map((reason) => h("button", { class: "button", onclick: () => send("down", reason) }, reason)));
  const draw = () => fill(place, h("span", {}, "Did this help?"),
    h("button", { class: "button", onclick: () => send("up") }, "👍 Yes"), h("button", { class: "button", onclick: ask }, "👎 No"));
  draw();
  return place;
}

// ---- an answer

async function write(place, said, signal) {
  const text = h("p", { class: "written" });
  fill(place, h("h2", {}, "Answer"), text, loading(1));
  try {
    const told = await ask(said, (piece) => text.append(piece), signal);
    const sources = told.sources.map((one, place) => h("li", {}, h("a", { href: `#/documents?${new URLSearchParams({ id: one.document })}` }, one.passage.name || one.document)));
    text.textContent = told.text || "The documents do not say.";
    fill(place, h("h2", {}, "Answer"), text, sources.length ? h("ul", { class: "sources", "aria-label": "Sources" }, sources) : null, voting(told));
  } catch (error) {
    if (error.name === "AbortError") return;
    const text = error.status === 409 ? "This memory has no language model to write answers with; the documents below answer without one." : error.message;
    fill(place, h("h2", {}, "Answer"), h("p", { class: "quiet" }, text));
  }
}

// ---- keys: j and k move, r, w and u teach

function keyboard(list) {
  const press = (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select, dialog[open]")) return;
    const items = [...list.children];
    const at = items.indexOf(event.target.closest(".hit"));
    if (event.key === "j" || event.key === "k") items[Math.min(items.length - 1, Math.max(0, at + (event.key === "j" ? 1 : -1)))].focus();
    else if (at >= 0) items[at].querySelector(`[data-key="${event.key}"]`)?.click();
  };
  document.addEventListener("keydown", press);
  return () => document.removeEventListener("keydown", press);
}

// Learn: new lessons, a dry run as a preview, publish; and what was refused, with its reason.

import { follow, get, getCandidate, isLayer, may, post, remove } from "./api.js";
import { clip, empty, epochName, failure, figure, fill, h, several, show, toast, when } from "./dom.js";

const STEPS = { waiting: "Waiting for another job", proposing: "Trying it on questions that were held out", publishing: "Publishing" };

export async function open(place) {
  const [stats, { epochs }] = await Promise.all([get("stats"), get("epochs")]);
  const outcome = h("section", { "aria-live": "polite" });
  const preview = h("button", { class: "button", onclick: () => run(true) }, "Preview");
  const publish = h("button", { class: "button primary", onclick: () => run(false) }, "Learn and publish");
  const run = async (dry) => {
    preview.disabled = publish.disabled = true;
    const bar = h("progress", { max: 1, value: 0, "aria-label": "Progress" });
    const text = h("span", {}, "Starting");
    fill(outcome, h("div", { class: "card row" }, bar, text));
    try {
      const job = await follow(await post("evolve", { dry_run: dry }), (told) => {
        bar.value = told.progress;
        text.textContent = `${STEPS[told.state] ?? told.state} …`;
      });
      if (job.report.published) toast(`Epoch ${job.report.epoch} is published.`);
      fill(outcome, report(job, dry && !isLayer() && may("admin") && Object.keys(job.report.choice).length ? () => stage(job) : null));
      if (!dry) await Promise.all([lessons(), attempts()]);
    } catch (error) {
      fill(outcome, failure(error, () => run(dry)));
    } finally {
      preview.disabled = publish.disabled = false;
    }
  };
  const list = h("section", { class: "card", "aria-label": "Lessons" });
  const stage = async (job) => {
    try {
      await post("candidate", { job: job.id });
      toast("It is the candidate now. Search mixes it in where you ask for it.");
      await candidate();
    } catch (error) {
      toast(error.message);
    }
  };
  const tried = h("section", {});
  const attempts = () => show(tried, () => get("jobs"), ({ jobs }) => pastAttempts(jobs));
  const compared = h("section", { "aria-live": "polite" });
  const candidate = async () => {
    try {
      fill(compared, comparing(await getCandidate(), (await get("comparisons")).comparisons, candidate));
    } catch (error) {
      fill(compared, failure(error, candidate));
    }
  };
  const last = epochs.at(-1);
  const lessons = () => show(list, () => get("lessons", { count: 50 }), ({ lessons: found }) => table(found, last.lessons_to));
  const summary = stats.pending
    ? `${several(stats.pending, "new lesson")} since epoch ${stats.epoch}.`
    : stats.lessons ? "No new lessons since the last time." : "Nobody has taught anything yet.";
  fill(place, h("div", { class: "row head" }, h("div", { class: "grow" }, h("h1", {}, "Learn"), h("p", { class: "quiet" }, summary,
      stats.held ? ` ${several(stats.held, "lesson")} on hold.` : "")), may("admin") ? [preview, publish] : h("p", { class: "quiet small" }, "To publish, a key needs the scope admin.")),
    compared, outcome, list, tried);
  if (!stats.lessons) {
    fill(list, empty("No lessons yet", "Search for something, and mark the right documents: each mark is a lesson.", h("a", { class: "button primary", href: "#/search" }, "Search")));
    preview.disabled = publish.disabled = true;
    return;
  }
  await Promise.all([lessons(), attempts(), candidate()]);
}

// ---- the candidate: compared by what people open, before it is published

function comparing(one, comparisons, again) {
  if (!one) return null;
  const run = (work, text) => async () => {
    try {
      await work();
      toast(text);
    } catch (error) {
      toast(error.message);
    }
    await again();
  };
  const found = comparisons.filter((known) => known.other === one.number);
  const result = (known) => h("p", {}, h("b", {}, `${known.mode}: `), `${several(known.impressions, "search").replace("searchs", "searches")}, ${known.losses} speak for it, ${known.wins} for ${epochName(known.epoch)}. `,
    known.winner === null ? h("span", { class: "quiet" }, "It cannot be told yet who wins.") : h("b", {}, `${epochName(known.winner)} wins.`));
  return h("div", { class: "card stack" }, h("h2", {}, "Candidate ", h("span", { class: "badge" }, "not published")),
    h("p", {}, one.report.reason), found.length ? found.map(result) : h("p", { class: "quiet" }, "Nobody has opened a document of a mixed search yet. Search has a box for it; applications send ", h("code", {}, 'compare: "candidate"'), "."),
    may("admin") ? h("div", { class: "row" }, h("button", { class: "button primary", onclick: run(() => post("candidate/publish"), "The candidate is published.") }, "Publish the candidate"),
      h("button", { class: "button", onclick: run(() => remove("candidate", {}), "The candidate is dropped.") }, "Drop it")) : null);
}

// ---- what was tried lately, also by the service itself, and why it was not published

function pastAttempts(jobs) {
  const done = jobs.filter((one) => one.ended !== null && !one.dry_run).slice(0, 8);
  if (!done.length) return null;
  const outcome = (one) => (one.error ? h("span", { class: "badge down" }, "failed") : one.report.published ? h("span", { class: "badge up" }, `epoch ${one.report.epoch}`) : h("span", { class: "badge" }, "not published"));
  return h("section", { class: "card" }, h("h2", {}, "Lately"), h("ul", { class: "list" }, done.map((one) => h("li", {}, outcome(one), " ", one.error ?? one.report.reason, h("span", { class: "quiet small" }, ` ${when(one.ended)}`)))));
}

function table(found, known) {
  const row = (lesson) => h("tr", {},
    h("td", {}, `${lesson.number}`, lesson.held ? h("span", { class: "badge" }, "on hold") : lesson.number > known ? h("span", { class: "badge up" }, "new") : null),
    h("td", {}, h("a", { href: `#/search?${new URLSearchParams({ q: lesson.query })}` }, clip(lesson.query, 90))),
    h("td", {}, Object.entries(lesson.relevant).map(([id, grade]) => h("div", { class: "mono small" }, grade ? "✓ " : "○ ", clip(id, 50))), lesson.irrelevant.map((id) => h("div", { class: "mono small bad" }, "✗ ", clip(id, 50)))),
    h("td", { class: "quiet small" }, lesson.actor ?? "owner", h("br"), when(lesson.time)));
  return [h("h2", {}, "Lessons, the newest first"), h("div", { class: "scroll" }, h("table", {}, h("thead", {}, h("tr", {}, ["Lesson", "Question", "Documents", "By"].map((name) => h("th", { scope: "col" }, name)))), h("tbody", {}, found.map(row))))];
}

// ---- what a dry run, or a publish, says

function report({ report: told, preview, dry_run: dry }, stage) {
  const title = dry ? "Preview: nothing is published" : told.published ? `Published as epoch ${told.epoch}` : "Not published";
  const rows = [["Taught questions", told.taught], ["Similar ones, held out", told.held_out], ["Unrelated questions", told.unrelated]].filter(([, one]) => one);
  return h("div", { class: "card stack" }, h("h2", {}, title), h("p", {}, told.reason.replace(/^dry run: /, "")),
    rows.length ? h("div", { class: "gains" }, rows.map(([name, one]) => gain(name, one))) : null, refused(told), preview && changes(preview),
    stage ? h("div", { class: "row" }, h("button", { class: "button", onclick: (event) => ((event.target.disabled = true), stage()), title: "Keep it beside what is published, and see which of the two people prefer" }, "Compare it first")) : null);
}

function gain(name, { before, after, queries }) {
  const bar = (value, kind) => {
    const inner = h("span", { class: `fill ${kind}` });
    inner.style.width = `${Math.max(1, value * 100)}%`;
    return h("span", { class: "track" }, inner);
  };
  const change = after - before;
  return h("div", { class: "gain" }, h("b", {}, name), h("span", { class: "quiet small" }, several(queries, "question")),
    h("span", { class: "bars" }, bar(before, "was"), bar(after, "is")),
    h("span", { class: "mono" }, `${figure(before)} → ${figure(after)} `, h("span", { class: change < -0.0005 ? "bad" : change > 0.0005 ? "ok" : "quiet" }, `${change >= 0 ? "+" : ""}${change.toFixed(3)}`)));
}

function refused(told) {
  const actors = Object.entries(told.actors_left_out ?? {});
  const documents = Object.entries(told.documents_left_out ?? {});
  if (!actors.length && !documents.length) return null;
  return h("div", { class: "note" }, h("h3", {}, "Refused, because it harms what others ask"),
    h("ul", {}, actors.map(([name, count]) => h("li", {}, `${several(count, "lesson")} by ${name === "null" ? "the owner" : name}`)),
      documents.map(([id, count]) => h("li", {}, `${several(count, "lesson")} on ${id}`))));
}

function changes(preview) {
  const known = preview.queries.filter((one) => one.quality_before !== null);
  const better = known.filter((one) => one.quality_after > one.quality_before + 1e-9);
  const worse = known.filter((one) => one.quality_after < one.quality_before - 1e-9);
  const others = preview.queries.filter((one) => one.quality_before === null);
  const list = (title, found, kind) => found.length > 0 && h("details", { open: kind === "bad" || found.length < 8 }, h("summary", {}, `${title}: ${found.length}`),
    h("ul", { class: "list" }, found.slice(0, 30).map((one) => h("li", {}, h("a", { href: `#/search?${new URLSearchParams({ q: one.query, compare: 1 })}` }, clip(one.query, 90)), " ",
      one.quality_before === null ? h("span", { class: "quiet small" }, `first: ${one.before[0] ?? "nothing"} → ${one.after[0] ?? "nothing"}`) : h("span", { class: `mono small ${kind}` }, `${figure(one.quality_before)} → ${figure(one.quality_after)}`)))));
  return h("div", { class: "stack" }, h("h3", {}, "Who would find something else"),
    preview.queries.length ? [list("Taught, and better", better, "ok"), list("Taught, and worse", worse, "bad"), list("Only searched, with other hits", others, "")]
      : h("p", { class: "quiet" }, `None of ${several(preview.queries_compared, "question")} that were asked again.`));
}

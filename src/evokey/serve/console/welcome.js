// The first steps with an empty memory: add files, ask, say what was right.

import { may, post } from "./api.js";
import { fill, h, several, toast } from "./dom.js";

const KINDS = ".md,.txt,.rst,.html,.htm,.csv,.json,.py,.js,.ts,.java,.go,.c,.h,.cpp,.rs,.toml,.yaml,.yml,.tex,.log";
const AT_ONCE = 50;

export function welcome(place, done) {
  const status = h("p", { class: "quiet", role: "status" });
  const input = h("input", { type: "file", id: "files", multiple: true, accept: KINDS, class: "hidden-file", onchange: () => add([...input.files]) });
  const add = async (files) => {
    if (!files.length) return;
    try {
      const documents = [];
      for (const file of files) documents.push({ id: file.webkitRelativePath || file.name, title: "", text: await file.text() });
      for (let at = 0; at < documents.length; at += AT_ONCE) {
        status.textContent = `Adding ${at} of ${several(documents.length, "file")} …`;
        await post("documents", { documents: documents.slice(at, at + AT_ONCE) });
      }
      toast(`${several(documents.length, "file")} added. Ask your first question.`);
      location.hash = "#/search";
      done();
    } catch (error) {
      status.textContent = error.message;
    }
  };
  const zone = h("label", { class: "drop", for: "files" }, h("b", {}, "Drop text files here, or choose them"),
    h("span", { class: "quiet small" }, "Markdown, plain text, HTML, code. For folders, PDF and Word: "), h("code", {}, "evokey add FOLDER"));
  for (const name of ["dragover", "drop"]) zone.addEventListener(name, (event) => event.preventDefault());
  zone.addEventListener("drop", (event) => add([...event.dataTransfer.files]));
  const step = (number, title, text, ...more) => h("li", { class: "card step" }, h("span", { class: "rank" }, `${number}`), h("div", { class: "grow" }, h("h2", {}, title), h("p", { class: "quiet" }, text), more));
  fill(place, h("div", { class: "narrow stack" },
    h("h1", {}, "Welcome. This memory is empty."),
    h("p", { class: "quiet" }, "Three steps, and it begins to learn."),
    h("ol", { class: "hits" },
      step(1, "Add files", "They are indexed on this machine, in seconds.", may("teach") ? [input, zone, status] : h("p", { class: "quiet" }, "Your key can only read: ask somebody who may teach.")),
      step(2, "Ask a question", "In your own words. No language model is needed."),
      step(3, "Say what was right", "One click on a document. Learn publishes it only if it helps."))));
}

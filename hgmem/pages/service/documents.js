// Documents of a corpus: read, added, deleted; and the jobs that index them.

import { button, listed, make, plural } from "../shared/elements.js";
import { attempt, careful, day, empty, head, here, href, may, paged, say, trouble } from "./place.js";
import { documentHref, reading } from "./passage.js";
import { get, path, query, remove, upload } from "./server.js";

const LOOK = 1500; // milliseconds between looks at jobs that run
const SAID = { index: "Indexing", import: "Importing", build: "Building", retry: "Extracting again" };
const DISMISSED = "hgmem-dismissed"; // failed jobs that somebody has seen, of this browser

const dismissed = () => { try { return JSON.parse(localStorage.getItem(DISMISSED)) ?? []; } catch { return []; } };
const dismiss = (uid) => { try { localStorage.setItem(DISMISSED, JSON.stringify([...dismissed(), uid].slice(-500))); } catch { /* keeps nothing */ } };
const nameOf = (one) => one.arguments?.name ?? one.arguments?.system ?? one.corpus;
const isRunning = (one) => one.state === "running" || one.state === "waiting";

// Of jobs, the newest first: those that run, those that failed and were neither dismissed nor begun again, and else the latest.
const worthShowing = (items) => {
  const running = items.filter(isRunning);
  const again = (one, index) => items.slice(0, index).some((later) => later.kind === one.kind && nameOf(later) === nameOf(one));
  const failed = items.filter((one, index) => one.state === "failed" && !dismissed().includes(one.uid) && !again(one, index));
  const ended = items.filter((one) => one.state === "done" || one.state === "cancelled");
  return [...running.reverse(), ...failed, ...ended.slice(0, running.length ? 0 : 3)];
};

const jobRow = (one, look) => {
  const name = nameOf(one);
  const bar = make("progress", { max: one.total || 1, ariaLabel: `Progress of ${name}`, ...(one.state === "running" && one.total ? { value: one.done } : {}) });
  const told = one.state === "running" && one.total ? `${one.done} of ${one.total}` : one.state;
  const why = one.error ? make("span", { className: "quiet" }, one.error.split(`${name}: `).at(-1)) : ""; // which names the file again
  return make("li", {}, make("div", {}, make("span", {}, `${SAID[one.kind] ?? one.kind} ${name}`), why), isRunning(one) ? bar : "",
    make("span", { className: `quiet state ${one.state}` }, told),
    isRunning(one) && may("write") ? button("Cancel", () => attempt(() => remove(path("jobs", one.uid)))) : make("span", { className: "quiet" }, day(one.ended_at || one.created_at)),
    one.state === "failed" ? button("Dismiss", () => { dismiss(one.uid); look(); }) : "");
};

// The jobs of a corpus, looked at while one runs. `done` is called when one has ended.
export const jobs = (corpus, signal, done) => {
  const box = make("section", { ariaLabel: "Jobs", className: "jobs" });
  let known = null;
  let timer = 0;
  const look = async () => {
    try {
      const { items } = await get(`${path("corpora", corpus)}/jobs?limit=500`, signal);
      const running = items.filter(isRunning).length;
      const shown = worthShowing(items);
      if (known !== null && running < known) {
        say("A job has ended.");
        done();
      }
      known = running;
      box.replaceChildren(...(shown.length ? [make("h2", {}, running ? plural(running, "job runs", "jobs run") : "Latest jobs"),
        listed("ul", { className: "rows" }, shown, (one) => jobRow(one, look), 20)] : []));
      clearTimeout(timer);
      if (running) timer = setTimeout(look, LOOK);
    } catch (error) {
      if (error.name !== "AbortError") trouble(error.message, ["Look again", () => { trouble(); look(); }]);
    }
  };
  look();
  return { box, look };
};

const adding = (corpus, look) => {
  const graph = make("input", { type: "checkbox", checked: true, id: "graph" });
  const told = make("div", { role: "status" });
  const send = async (files) => {
    const refused = [];
    for (const [index, file] of files.entries()) {
      told.replaceChildren(make("p", {}, `Sending ${index + 1} of ${files.length}: ${file.name}`));
      await upload(`${path("corpora", corpus)}/documents${query({ name: file.name, graph: graph.checked })}`, file)
        .catch((error) => refused.push([file, error]));
    }
    const taken = files.filter((file) => !refused.some(([one]) => one === file));
    told.replaceChildren(make("p", {}, taken.length ? `Taken: ${taken.map((file) => file.name).join(", ")}` : "No file was taken."),
      ...(refused.length ? [make("ul", {}, ...refused.map(([file, error]) => make("li", {}, make("strong", {}, `${file.name} was refused: `), error.message)))] : []));
    look();
  };
  const input = make("input", { type: "file", multiple: true, id: "files", className: "unseen", onchange: () => { send([...input.files]); input.value = ""; } });
  const zone = make("div", { className: "adding" }, make("label", { htmlFor: "files", className: "button main" }, "Add files"), input,
    make("span", { className: "quiet" }, "or drop them here: text, Markdown, PDF, HTML, Word, CSV, JSON"),
    make("label", {}, graph, " with entities and relations"), told);
  zone.ondragover = (event) => { event.preventDefault(); zone.classList.add("over"); };
  zone.ondragleave = () => zone.classList.remove("over");
  zone.ondrop = (event) => { event.preventDefault(); zone.classList.remove("over"); send([...event.dataTransfer.files]); };
  return zone;
};

const list = async (corpus, signal) => {
  const row = (one) => {
    const item = make("li", {}, make("div", {}, make("a", { href: documentHref(corpus, one.uid) }, one.title || one.id),
      make("span", { className: "quiet" }, `${plural(one.chunks, "chunk")}${one.conversation ? " · conversation" : ""}${one.status === "done" ? "" : ` · ${one.status}`}`)),
    may("write") ? careful("Delete", "Delete it?", async () => {
      await remove(path("corpora", corpus, "documents", one.uid));
      item.remove();
      say("The document is deleted.");
    }) : "");
    return item;
  };
  return paged({ from: (after) => `${path("corpora", corpus)}/documents${query({ limit: 100, after })}`, row, signal,
    none: empty("There are no documents yet. Add some: they can be asked about as soon as they are indexed.") });
};

const one = async ({ page, signal, given: [document, chunk, place] }) => {
  const { corpus } = here;
  const [start, end] = /^\d+-\d+$/.test(place ?? "") ? place.split("-").map(Number) : [null, null];
  const { box, title, begins } = await reading(corpus, { document, chunk, quote: chunk ? { chunk, start, end, quote: "" } : null }, signal);
  page.replaceChildren(make("main", {}, head(title, make("a", { href: href("c", corpus, "documents") }, "All documents")),
    begins > 0 ? make("p", {}, make("a", { href: documentHref(corpus, document) }, "Read from the beginning")) : "", box));
  (box.querySelector("mark") ?? box.querySelector(".cited"))?.scrollIntoView({ block: "center" });
};

export const show = async ({ page, given, signal }) => {
  if (given.length) return one({ page, given, signal });
  const { corpus } = here;
  let fresh = false;
  const read = async () => {
    try {
      return await list(corpus, signal);
    } catch (error) {
      if (error.status !== 404) throw error;
      fresh = true;
      return empty(`Corpus ${corpus} is new: it begins with its first document.`);
    }
  };
  const box = make("div", {}, await read());
  const { box: running, look } = jobs(corpus, signal, () => attempt(async () => box.replaceChildren(await read())));
  if (fresh && !may("write")) throw Object.assign(new Error(`there is no corpus ${corpus}: choose another`), { status: 404 });
  page.replaceChildren(make("main", {}, head("Documents"), may("write") ? adding(corpus, look) : "", running, box));
  return undefined;
};

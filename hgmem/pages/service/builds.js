// Builds: what systems make of a corpus before they answer, as trees of rows, and what they tell of it.

import { button, make, rich } from "../shared/elements.js";
import { attempt, empty, head, here, href, may, paged, systems, working } from "./place.js";
import { jobs } from "./documents.js";
import { documentHref } from "./passage.js";
import { get, path, post, query } from "./server.js";

const TOLD = { title: 1, subject: 1, content: 1 }; // properties that say a row in a few words
const words = (one) => String(Object.entries(one.properties).find(([name, value]) => TOLD[name] && value)?.[1] ?? one.text);
const when = ({ properties: { begins, said_at: said } }) => String(begins ?? said ?? "").slice(0, 10);

// A row with what it rests on beneath it, which is read when it is opened.
const branch = (corpus, one, signal) => {
  if (one.kind === "Chunk") return make("li", {}, make("p", { className: "text" }, one.text), make("a", { href: documentHref(corpus, one.document, one.uid) }, "Read it in the document"));
  const beneath = make("div");
  const title = make("summary", {}, make("span", { className: "kindname" }, one.kind), when(one) ? make("time", { className: "quiet" }, `${when(one)} `) : "", words(one));
  const rest = one.text.startsWith(words(one)) ? one.text.slice(words(one).length).trim() : one.text;
  const text = rest ? make("div", { className: "text" }, ...rich(rest)) : "";
  const tree = make("details", { ontoggle: () => {
    if (tree.open && !beneath.children.length && one.parts) {
      attempt(async () => beneath.replaceChildren(await paged({ from: (after) => `${path("corpora", corpus, "parts", one.uid)}${query({ after })}`, row: (part) => branch(corpus, part, signal), none: "", signal, className: "tree" })));
    }
  } }, title, text, beneath);
  return make("li", {}, tree);
};

const shownValue = (value) => (Array.isArray(value) ? value.join("; ") : value === null ? "" : String(value)).replace(/^(\d{4}-\d\d-\d\d)T(\d\d:\d\d).*$/, "$1 $2");
const told = (value) => {
  const rows = Array.isArray(value) ? value : [value];
  if (!rows.length) return empty("It tells nothing.");
  const names = Object.keys(rows[0]).filter((name) => rows.some((one) => shownValue(one[name])));
  return make("div", { className: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, ...names.map((name) => make("th", { scope: "col" }, name.replaceAll("_", " "))))),
    make("tbody", {}, ...rows.map((one) => make("tr", {}, ...names.map((name) => make("td", {}, shownValue(one[name]))))))));
};

// What a system tells of its build: a form for each verb that only reads.
const asking = (corpus, system, verb) => {
  const answer = make("div", { ariaLive: "polite" });
  const fields = verb.arguments.map((one) => make("input", { name: one.name, type: typeof one.default === "number" ? "number" : "text", placeholder: one.default === null || one.default === "" ? "" : String(one.default), required: one.required, title: one.help, ariaLabel: `${one.name}: ${one.help}` }));
  const form = make("form", { className: "inline", onsubmit: (event) => {
    event.preventDefault();
    attempt(async () => {
      const found = await get(`${path("corpora", corpus, "verbs", system, verb.name)}${query(Object.fromEntries(fields.map((field) => [field.name, field.value.trim()])))}`);
      answer.replaceChildren(...found.notes.map((note) => make("p", { className: "quiet" }, note)), told(found.value));
    });
  } }, ...fields.map((field) => make("label", {}, make("span", {}, field.name.replaceAll("_", " ")), field)), make("button", { type: "submit" }, "List"));
  return make("details", { className: "verb" }, make("summary", {}, verb.summary), form, answer);
};

const one = async ({ page, signal, system }) => {
  const { corpus } = here;
  const known = (await systems()).find((each) => each.name === system);
  const status = (await get(path("corpora", corpus), signal)).builds.find((each) => each.system === system);
  const kinds = Object.entries(status?.rows ?? {});
  const box = make("div");
  const list = async (kind) => box.replaceChildren(await paged({ from: (after) => `${path("corpora", corpus, "built", system)}${query({ kind, after })}`,
    row: (row) => branch(corpus, row, signal), none: empty("This build has no rows of this kind."), signal, className: "tree" }));
  const choice = make("select", { ariaLabel: "Rows", onchange: () => attempt(() => list(choice.value)) },
    make("option", { value: "" }, "From the top"), ...kinds.map(([kind, count]) => make("option", { value: kind }, `${kind} (${count.toLocaleString("en")})`)));
  await list("");
  page.replaceChildren(make("main", {}, head(system, choice, make("a", { href: href("c", corpus, "builds") }, "All builds")),
    make("p", { className: "quiet" }, known?.summary ?? ""), ...(known?.verbs ?? []).filter((verb) => verb.reads).map((verb) => asking(corpus, system, verb)), box));
};

const card = (corpus, known, status, look) => {
  const rows = Object.entries(status?.rows ?? {}).map(([kind, count]) => `${count.toLocaleString("en")} ${kind}`).join(", ");
  const state = status ? [status.status, status.status === "stale" ? status.change : "", rows].filter(Boolean).join(" · ") : "not made for this corpus";
  const make_ = button(status ? "Make it again" : "Make it", ({ detail }) => detail > 1 || working(make_, "Starting…", async () => {
    await post(`${path("corpora", corpus)}/jobs`, { kind: "build", system: known.name });
    look();
  }));
  return make("li", {}, make("div", {}, status ? make("a", { href: href("c", corpus, "builds", known.name) }, known.name) : make("strong", {}, known.name),
    make("span", { className: "quiet" }, known.summary), make("span", { className: `quiet state ${status?.status ?? ""}` }, state)), may("write") ? make_ : "");
};

export const show = async ({ page, given: [system], signal }) => {
  if (system) return one({ page, signal, system });
  const { corpus } = here;
  const known = await systems();
  const named = [...new Set(known.flatMap((each) => each.builds))];
  const list = make("ul", { className: "rows" });
  const fill = async () => {
    const { builds } = await get(path("corpora", corpus), signal);
    const all = [...new Set([...named, ...builds.map((each) => each.system)])].sort();
    list.replaceChildren(...all.map((name) => card(corpus, known.find((each) => each.name === name) ?? { name, summary: "" }, builds.find((each) => each.system === name), look)));
  };
  const { box, look } = jobs(corpus, signal, () => attempt(fill));
  await fill();
  page.replaceChildren(make("main", {}, head("Builds", make("p", { className: "quiet" }, "What some systems make of the documents before they answer: gists, topics, trails.")), box, list));
  return undefined;
};

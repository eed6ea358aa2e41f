// The beginning: who asks, and which part of the page is shown at which address.

import { addressPath } from "../shared/address.js";
import { listen, stop } from "../shared/controls.js";
import { button, make } from "../shared/elements.js";
import { erase } from "../shared/layout.js";
import { at } from "../shared/memory.js";
import { attempt, empty, here, href, may, trouble } from "./place.js";
import { Problem, get, post, remove } from "./server.js";

const PARTS = { ask: "Ask", memories: "Memories", documents: "Documents", entities: "Entities", builds: "Builds" };
const SCREENS = {
  home: () => import("./home.js"), ask: () => import("./ask.js"), memories: () => import("./memories.js"),
  documents: () => import("./documents.js"), entities: () => import("./entities.js"), builds: () => import("./builds.js"),
  memory: () => import("./memory_screen.js"), compare: () => import("./compare.js"),
};
let visit = new AbortController();
let visited = ""; // its address, up to a "?"

// The address as a screen, what it is of, and a corpus.
const route = () => {
  const [kind = "", ...rest] = addressPath().replace(/^#\/?/, "").split("/").map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  if (kind === "c" && rest[0]) return { corpus: rest[0], screen: rest[1] in PARTS && (rest[1] !== "ask" || may("ask")) ? rest[1] : may("ask") ? "ask" : "documents", given: rest.slice(2) };
  if (kind === "m" && rest[0]) return { screen: "memory", given: rest };
  if (kind === "compare" && rest.length > 1) return { screen: "compare", given: rest };
  return { screen: "home", given: [] };
};

export const navigation = (corpus, screen) => {
  here.corpus = corpus;
  at("nav").hidden = at("choose").hidden = !corpus;
  at("nav").replaceChildren(...Object.entries(PARTS).filter(([name]) => name !== "ask" || may("ask")).map(([name, label]) =>
    make("a", { href: href("c", corpus, name), ariaCurrent: name === screen ? "page" : "false" }, label)));
  const names = [...new Set([...here.corpora, ...(corpus ? [corpus] : [])])];
  at("corpus").replaceChildren(...names.map((name) => make("option", { value: name, selected: name === corpus }, name)));
};

const shown = async () => {
  visit.abort();
  visit = new AbortController();
  const { signal } = visit;
  visited = addressPath();
  here.follow = null;
  trouble();
  stop();
  const { screen, corpus = "", given } = route();
  if (corpus) navigation(corpus, screen);
  if (screen === "home") navigation("", screen);
  erase();
  document.querySelector("dialog")?.remove();
  const page = at("page");
  page.className = screen;
  try {
    const { show } = await SCREENS[screen]().catch(() => { throw new Problem("A part of this page cannot be read: see that the service runs, then load the page again."); });
    if (signal.aborted) return;
    page.replaceChildren(make("p", { className: "empty" }, "Reading…"));
    await show({ page, given, signal, navigation });
    if (signal.aborted) return;
    document.title = `${page.querySelector("h1")?.textContent.slice(0, 80) || "hgmem"} · hgmem`;
    if (document.activeElement === document.body) page.querySelector("h1")?.focus({ preventScroll: true });
  } catch (error) {
    if (error.name === "AbortError" || signal.aborted) return;
    if (error.status === 401) return login(error.message);
    page.className = "";
    const known = error.status && here.corpora.includes(here.corpus);
    const gone = error.status === 404 && (screen === "memory" || screen === "compare");
    page.replaceChildren(make("main", {}, empty(gone ? "This memory is not found: it was deleted, or it is another owner's." : error.message, make("p", {}, button("Try again", shown), " ", known ? make("a", { href: href("c", here.corpus, "memories") }, "Memories of the corpus") : make("a", { href: "#/" }, "All corpora")))));
  }
};

const login = (why = "") => {
  at("nav").hidden = at("choose").hidden = true;
  at("who").replaceChildren();
  const key = make("input", { type: "password", id: "key", autocomplete: "off", required: true, spellcheck: false });
  const form = make("form", { className: "login", onsubmit: (event) => {
    event.preventDefault();
    attempt(async () => {
      await post("/session", { key: key.value });
      key.value = "";
      await start();
    });
  } }, make("h1", { tabIndex: -1 }, "Log in"), make("p", { className: "quiet" }, !why || /missing/.test(why) ? "This service asks for a key." : why),
  make("label", { htmlFor: "key" }, "Key"), key, make("button", { type: "submit", className: "main" }, "Log in"),
  make("p", { className: "quiet" }, "Whoever runs the service makes keys with ", make("code", {}, "hgmem keys make"), ". This browser keeps a session of eight hours, and not the key."));
  at("page").className = "";
  at("page").replaceChildren(make("main", {}, form));
  key.focus();
};

const start = async () => {
  try {
    if (location.hash.startsWith("#/m/")) SCREENS.memory().catch(() => {}); // its modules come meanwhile
    const [session, { items }] = await Promise.all([get("/session"), get("/corpora?limit=500")]);
    Object.assign(here, { session, corpora: items.map((one) => one.corpus) });
  } catch (error) {
    if (error.status === 401) return login(error.message);
    at("page").replaceChildren(make("main", {}, empty(error.message, make("p", {}, button("Try again", start)))));
    return;
  }
  const { owner } = here.session;
  at("who").replaceChildren(...(owner ? [make("span", { className: "quiet" }, owner), " ", button("Log out", () => attempt(async () => {
    await remove("/session");
    location.hash = "#/";
    login("You are logged out.");
  }))] : []));
  await shown();
  for (const load of Object.values(SCREENS)) load().catch(() => {}); // so that they are there if the service goes away
};

listen();
addEventListener("hashchange", () => {
  if (here.session) here.follow && visited === addressPath() ? here.follow() : shown();
});
at("corpus").onchange = () => {
  const { screen } = route();
  location.hash = href("c", at("corpus").value, screen in PARTS ? screen : "");
};
document.querySelector(".skip").onclick = (event) => {
  event.preventDefault();
  at("page").querySelector("h1")?.focus();
};
start();

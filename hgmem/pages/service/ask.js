// Ask: a question, with the system and the recipe that answer it.

import { addressPath } from "../shared/address.js";
import { make, plural } from "../shared/elements.js";
import { ask, isBusy, live } from "./live.js";
import { attempt, empty, here, href, systems, trouble, working } from "./place.js";
import { get, path, Problem } from "./server.js";

const KEPT = "hgmem-choice"; // what was chosen last, of this browser
const drafts = new Map(); // what was typed and not asked yet, by its owner and the corpus or memory

// The fields that say how a question is answered. `chosen()` are their options of a question.
const choices = async (made) => {
  const known = (await systems()).filter((one) => one.answers);
  let kept = {};
  try { kept = JSON.parse(localStorage.getItem(KEPT)) ?? {}; } catch { /* a browser that keeps nothing */ }
  const system = make("select", { id: "system" }, ...known.map((one) => make("option", { value: one.name, selected: one.name === (kept.system ?? "hgmem") }, one.name)));
  const recipe = make("select", { id: "recipe" });
  const steps = make("input", { id: "steps", type: "number", min: "1", max: "100", placeholder: "recipe's", value: kept.steps ?? "" });
  const about = make("p", { className: "quiet", id: "about-system" });
  const offer = () => {
    const one = known.find((each) => each.name === system.value);
    recipe.replaceChildren(make("option", { value: "" }, "default"), ...(one?.recipes ?? []).filter((name) => name !== "default").map((name) => make("option", { value: name, selected: name === kept.recipe }, name)));
    const missing = one?.builds.filter((name) => !made.includes(name)) ?? [];
    about.textContent = [one?.summary, missing.length ? `It reads ${missing.join(", ")}, which is not made yet: make it under Builds.` : ""].filter(Boolean).join(" ");
  };
  system.onchange = offer;
  offer();
  const chosen = () => {
    const options = { system: system.value, ...(recipe.value ? { recipe: recipe.value } : {}), ...(steps.value ? { steps: Number(steps.value) } : {}) };
    try { localStorage.setItem(KEPT, JSON.stringify({ system: system.value, recipe: recipe.value, steps: steps.value })); } catch { /* keeps nothing */ }
    return options;
  };
  const fields = make("details", { className: "choices" }, make("summary", {}, "How it is answered"), make("div", { className: "fields" },
    make("label", {}, make("span", {}, "System"), system), make("label", {}, make("span", {}, "Recipe"), recipe), make("label", {}, make("span", {}, "Most steps"), steps)), about);
  return { fields, chosen };
};

// A field for a question that grows with it, sent by its button or by Enter. What is typed `of` a corpus or memory is kept until it is asked.
export const questionForm = (of, label, placeholder, send, ...more) => {
  const place = `${here.session.owner} ${of}`;
  const field = make("textarea", { id: "asked", rows: 2, placeholder, required: true, ariaLabel: label, value: drafts.get(place) ?? "", oninput: () => drafts.set(place, field.value) });
  const act = make("button", { type: "submit", className: "main" }, "Ask");
  const form = make("form", { className: "question", onsubmit: (event) => {
    event.preventDefault();
    const { value } = field;
    if (value.trim()) working(act, "Asking…", async () => { await send(value.trim()); if (drafts.get(place) === value) drafts.delete(place); });
  } }, field, make("div", { className: "send" }, ...more, act));
  field.onkeydown = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  };
  return form;
};

// Ask, and go to the memory once there is one. Until then one stays, and what was typed stays in its field.
export const begin = async (corpus, body) => {
  if (live.state === "waiting") throw new Problem(`The question before has not begun yet: ask again when it has.${body.question && " What you typed stays here."}`);
  const from = addressPath();
  trouble();
  const memory = await ask(corpus, body, () => trouble("Other tabs are asking: this question begins when one of them is done."));
  const watch = () => { location.hash = href("m", memory); };
  if (addressPath() !== from) return trouble("Your question has begun.", ["Watch it", watch]); // one has gone elsewhere meanwhile
  here.follow = null; // a further question of this memory shows it anew
  const before = location.hash;
  watch();
  if (location.hash === before) dispatchEvent(new HashChangeEvent("hashchange"));
};

export const show = async ({ page, signal }) => {
  const { corpus } = here;
  const status = await get(path("corpora", corpus), signal);
  const { fields, chosen } = await choices(status.builds.map((one) => one.system));
  const recent = (await get(`${path("corpora", corpus)}/memories?limit=5`, signal)).items;
  const holds = [plural(status.documents, "document"), plural(status.entities, "entity", "entities"), plural(status.relations, "relation")].join(", ");
  page.replaceChildren(make("main", { className: "asking" },
    make("h1", { tabIndex: -1 }, `Ask ${corpus}`), make("p", { className: "quiet" }, holds),
    ...(status.documents ? [questionForm(corpus, "Question", "One whole question, in plain words", (question) => begin(corpus, { question, ...chosen() }), fields)]
      : [empty("This corpus has no documents yet.", make("p", {}, make("a", { href: href("c", corpus, "documents") }, "Add the first document")))]),
    ...(isBusy() && live.memory ? [make("p", {}, make("a", { href: href("m", live.memory) }, "A question is being answered: watch it"))] : []),
    ...(recent.length ? [make("h2", {}, "Asked before"), make("ul", { className: "rows" }, ...recent.map((one) =>
      make("li", {}, make("a", { href: href("m", one.uid) }, one.question), make("span", { className: "quiet" }, `${one.system} · ${one.created_at.slice(0, 10)}`))))] : []),
  ));
  attempt(() => page.querySelector("textarea")?.focus({ preventScroll: true }));
};

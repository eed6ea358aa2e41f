// Two memories, or two steps of one, beside each other: what only one has, what became other, what both have.

import { changed, listed, make, plural, rich } from "../shared/elements.js";
import { head, href } from "./place.js";
import { get, path, query } from "./server.js";

const side = (one, sign, name) => make("section", { className: `side ${sign}` }, make("p", { className: "quiet" }, name), make("h2", {}, make("a", { href: href("m", one.memory) }, one.question || one.memory)),
  make("p", { className: "quiet" }, `${one.system}, ${one.model} · step ${one.step}`), make("div", { className: "text" }, ...rich(one.answer || "No answer.")));
// What a memory is of the other one, and when it began.
const role = (one, other, place) => [place, one.forked_from === other.memory ? `fork of the other at step ${one.forked_at}` : other.forked_from === one.memory ? "the original" : "",
  one.created_at.slice(0, 16).replace("T", " ")].filter(Boolean).join(" · ");

const point = (sign, text) => (one) => make("li", { className: sign }, make("span", { className: "sign" }, text), make("span", { className: "text" }, one.description),
  make("span", { className: "quiet" }, one.entities.join(", ")));
const pair = ({ before, after }) => make("li", { className: "revise" }, make("span", { className: "sign" }, "became other"),
  ...changed(before.description, after.description).map((words) => make("p", { className: "text" }, ...words)));

const part = (title, items, row, note) => [make("h2", {}, `${title} (${items.length.toLocaleString("en")})`),
  items.length ? listed("ul", { className: "diff" }, items, row) : make("p", { className: "quiet" }, note)];
const chunks = (title, items) => (items.length ? [make("details", {}, make("summary", {}, `${title}: ${plural(items.length, "passage")}`),
  listed("ul", { className: "diff" }, items, (one) => make("li", {}, make("strong", {}, one.title), " ", one.beginning)))] : []);

// The steps of a memory to choose from. `note` says if it lacks the one that is wanted.
const choice = (memory, wanted, place) => {
  const numbers = memory.steps.map((step) => String(step.number));
  const last = numbers.at(-1) ?? "";
  const chosen = numbers.includes(wanted) ? wanted : last;
  const field = make("select", { ariaLabel: `Step of the ${place}`, disabled: !last },
    ...numbers.map((number) => make("option", { value: number, selected: number === chosen }, number === last ? `${number}, the last` : number)));
  return { field, chosen, note: wanted && wanted !== chosen ? `The ${place} memory has no step ${wanted}: its last one is shown.` : "" };
};

export const show = async ({ page, given: [one, other, step = "", otherStep = ""], signal, navigation }) => {
  const [first_, second_] = await Promise.all([one, other].map((uid) => get(path("memories", uid), signal)));
  navigation(first_.corpus, "memories");
  const [first, second] = [choice(first_, step, "first"), choice(second_, otherStep, "second")];
  const found = await get(`${path("memories", one)}/diff${query({ other: other === one ? "" : other, step: first.chosen, other_step: second.chosen })}`, signal);
  const steps = make("form", { className: "inline", onsubmit: (event) => {
    event.preventDefault();
    location.hash = href("compare", one, other, first.field.value, second.field.value);
  } }, make("label", {}, make("span", {}, "First at step"), first.field), make("label", {}, make("span", {}, "Second at step"), second.field), make("button", { type: "submit" }, "Compare"));
  page.replaceChildren(make("main", {}, head(one === other ? "One memory at two steps" : "Two memories", make("a", { className: "button", href: href("compare", other, one, second.chosen, first.chosen) }, "Swap")), steps,
    ...[first.note, second.note].filter(Boolean).map((note) => make("p", { role: "status" }, note)),
    make("div", { className: "sides" }, side(found.before, "lost", role(first_, second_, "First")), side(found.after, "gained", role(second_, first_, "Second"))),
    ...part("Only in the first", found.lost, point("lost", "only first"), "Nothing that the second lacks."),
    ...part("Only in the second", found.gained, point("gained", "only second"), "Nothing that the first lacks."),
    ...part("Became other", found.revised, pair, "No point was revised or merged from one to the other."),
    ...part("In both", found.kept, ({ after }) => point("kept", "both")(after), "They have no point in common."),
    make("h2", {}, "Evidence"), ...chunks("Only the first read", found.evidence_lost), ...chunks("Only the second read", found.evidence_gained), ...chunks("Both read", found.evidence_kept)));
};

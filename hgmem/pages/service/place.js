// Where one is: the session, the corpora and the systems, addresses within the page, and what is said at its top.

import { button, make } from "../shared/elements.js";
import { at } from "../shared/memory.js";
import { get } from "./server.js";

const PATIENCE = 6000; // milliseconds that a button waits to be pressed a second time
export const here = { session: null, corpora: [], corpus: "", systems: null, follow: null }; // `follow`: what the screen does when its address changes after the "?"
export const may = (scope) => here.session.scopes.includes("admin") || here.session.scopes.includes(scope);
export const href = (...parts) => `#/${parts.map(encodeURIComponent).join("/")}`;
export const systems = async () => (here.systems ??= (await get("/systems")).items);

// Say in one line what is wrong and what to do, with a button to do it.
export const trouble = (text = "", act = null) => {
  at("trouble").hidden = !text;
  at("trouble").replaceChildren(text, " ", act ? button(act[0], act[1]) : "", text ? button("×", () => trouble(), { ariaLabel: "Close", className: "close" }) : "");
};
export const say = (text) => { at("said").textContent = text; }; // to screen readers

// Do what a person asked for, and say what went wrong.
export const attempt = async (work) => {
  try {
    return await work();
  } catch (error) {
    if (error.name !== "AbortError") trouble(error.message);
    return undefined;
  }
};

export const head = (title, ...more) => make("div", { className: "head" }, make("h1", { tabIndex: -1 }, title), ...more);
export const empty = (text, ...more) => make("div", { className: "empty" }, make("p", {}, text), ...more);
export const day = (time) => make("time", { dateTime: time }, time.slice(0, 16).replace("T", " "));

// A list whose pages come from the service as one asks for them. `row` makes an item's element.
export const paged = async ({ from, row, none, signal, tag = "ul", className = "rows" }) => {
  const list = make(tag, { className });
  const box = make("div", {}, list);
  const more = async (after) => {
    const found = await get(from(after), signal);
    list.append(...found.items.map(row));
    if (found.next) {
      const next = button("Show more", async () => {
        next.disabled = true;
        await attempt(async () => {
          await more(found.next);
          next.remove();
        });
        next.disabled = false;
      }, { className: "next" });
      box.append(next);
    }
  };
  await more("");
  if (!list.children.length) box.replaceChildren(none);
  return box;
};

// Do what a button is for. It says so meanwhile, and cannot be pressed again.
export const working = async (one, label, act) => {
  if (one.disabled) return;
  const before = one.textContent;
  Object.assign(one, { disabled: true, textContent: label });
  await attempt(act);
  Object.assign(one, { disabled: false, textContent: before });
};

// A button that asks once more before it does what cannot be undone, and takes that back after some seconds. A double-click
// is one click.
export const careful = (label, sure, act) => {
  let timer = 0;
  const ask = (again) => {
    clearTimeout(timer);
    Object.assign(one, { textContent: again ? sure : label, onclick: again ? ({ detail }) => { if (detail < 2) { ask(false); working(one, "Deleting…", act); } } : () => ask(true) });
    if (again) timer = setTimeout(() => ask(false), PATIENCE);
  };
  const one = button(label, null, { className: "careful", onblur: () => { if (!one.disabled) ask(false); }, onkeydown: (event) => { if (event.key === "Escape") ask(false); } });
  ask(false);
  return one;
};

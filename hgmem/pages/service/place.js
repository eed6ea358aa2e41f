// Where one is: the session, the corpora and the systems, addresses within the page, and what is said at its top.

import { button, make } from "../shared/elements.js";
import { at } from "../shared/memory.js";
import { get } from "./server.js";

export const here = { session: null, corpora: [], corpus: "", systems: null };
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

// A button that asks once more before it does what cannot be undone.
export const careful = (label, sure, act) => {
  const one = button(label, async () => {
    if (one.dataset.sure) {
      one.disabled = true;
      await attempt(act);
      one.disabled = false;
    }
    one.dataset.sure = one.dataset.sure ? "" : "yes";
    one.textContent = one.dataset.sure ? sure : label;
  }, { className: "careful", onblur: () => { one.dataset.sure = ""; one.textContent = label; } });
  return one;
};

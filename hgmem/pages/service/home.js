// All corpora, and a new one.

import { make } from "../shared/elements.js";
import { day, empty, head, href, may } from "./place.js";
import { get } from "./server.js";

export const show = async ({ page, signal }) => {
  const { items } = await get("/corpora?limit=500", signal);
  const name = make("input", { id: "name", required: true, pattern: "[a-z0-9][a-z0-9._\\-]*", title: "Lowercase letters, digits, hyphens", autocomplete: "off" });
  const fresh = make("form", { className: "inline", onsubmit: (event) => {
    event.preventDefault();
    location.hash = href("c", name.value.trim(), "documents");
  } }, make("label", { htmlFor: "name" }, "New corpus"), name, make("button", { type: "submit" }, "Add documents"));
  page.replaceChildren(make("main", {}, head("Corpora"),
    items.length ? make("ul", { className: "rows" }, ...items.map((one) => make("li", {}, make("a", { href: href("c", one.corpus) }, one.corpus),
      make("span", { className: "quiet" }, `${one.status} · ${one.embedding_model} · `, day(one.created_at)))))
      : empty("There is nothing to ask yet. A corpus is a set of documents that are asked together."),
    may("write") ? fresh : ""));
};

// Entities: what the documents name, with the names of one thing together, their passages and what ties them.

import { inAddress, setAddress } from "../shared/address.js";
import { button, link, listed, make, plural, shortened } from "../shared/elements.js";
import { attempt, empty, head, here, href, paged } from "./place.js";
import { documentHref } from "./passage.js";
import { get, path, query } from "./server.js";

const MOST = 600; // characters of a description that are shown at first
const WAIT = 250; // milliseconds after the last letter until it is searched

const others = (one) => one.names.filter((name) => name !== one.name);

// What is said of an entity: the beginning of a long text, and the rest as one asks for it.
const told = (name, text) => {
  const paragraph = make("p", { className: "text" }, make("strong", {}, name), shortened(text, MOST));
  if (text.length <= MOST) return paragraph;
  const all = button("Show all of it", () => { paragraph.replaceChildren(make("strong", {}, name), text); all.remove(); });
  return make("div", {}, paragraph, all);
};

const one = async ({ page, signal, uid }) => {
  const { corpus } = here;
  const found = await get(path("corpora", corpus, "entities", uid), signal);
  const [first] = found.entities;
  const names = found.entities.map((each) => each.name);
  page.replaceChildren(make("main", {}, head(names[0], make("a", { href: href("c", corpus, "entities") }, "All entities")),
    make("p", { className: "quiet" }, [first.type, names.length > 1 ? `one thing with ${names.length} names: ${names.join(", ")}` : ""].filter(Boolean).join(" · ")),
    ...found.entities.filter((each) => each.description).map((each) => told(names.length > 1 ? `${each.name}: ` : "", each.description)),
    make("h2", {}, `Named in ${plural(found.passages.length, "passage")}`),
    listed("div", { className: "passages" }, found.passages, (chunk) => make("details", {}, make("summary", {}, chunk.title || chunk.document),
      make("p", { className: "text" }, chunk.text), make("p", {}, make("a", { href: documentHref(corpus, chunk.document, chunk.uid) }, "Read it in the document"))), 12),
    make("h2", {}, `Related to ${plural(found.ties.length, "entity", "entities")}`),
    found.ties.length ? listed("ul", { className: "rows" }, found.ties, (tie) => make("li", {}, make("div", {}, make("a", { href: href("c", corpus, "entities", tie.entity) }, tie.name), make("span", { className: "quiet brief" }, tie.description))), 12)
      : make("p", { className: "quiet" }, "No relation was extracted.")));
};

export const show = async ({ page, given: [uid], signal }) => {
  if (uid) return one({ page, signal, uid });
  const { corpus } = here;
  const row = (each) => make("li", {}, make("div", {}, link(href("c", corpus, "entities", each.uid), () => { location.hash = href("c", corpus, "entities", each.uid); }, each.name),
    make("span", { className: "quiet" }, [each.type, others(each).length ? `also ${others(each).slice(0, 4).join(", ")}` : ""].filter(Boolean).join(" · "))),
  make("span", { className: "quiet" }, plural(each.chunks, "passage")));
  const box = make("div");
  const seek = async (about) => box.replaceChildren(await paged({
    from: (after) => `${path("corpora", corpus)}/entities${query({ about, after })}`, row, signal,
    none: empty(about ? "No name has these letters." : "No entities were extracted. Index the documents with entities and relations."),
  }));
  let timer = 0;
  const field = make("input", { type: "search", ariaLabel: "Names with", placeholder: "Names with…", value: inAddress("about"), oninput: () => {
    clearTimeout(timer);
    timer = setTimeout(() => {
      if (signal.aborted) return;
      setAddress({ about: field.value.trim() });
      attempt(() => seek(field.value.trim()));
    }, WAIT);
  } });
  await seek(inAddress("about"));
  page.replaceChildren(make("main", {}, head("Entities", field), box));
  return undefined;
};

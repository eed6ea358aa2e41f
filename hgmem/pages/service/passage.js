// Texts of documents: chunks in order, joined where they overlap, with a quote marked; in a window or on a screen.

import { inAddress, setAddress } from "../shared/address.js";
import { keepInAddress } from "../shared/controls.js";
import { button, make } from "../shared/elements.js";
import { attempt, href } from "./place.js";
import { get, path, query } from "./server.js";

const textPath = (corpus, given) => `${path("corpora", corpus)}/text${query(given)}`;

// The pieces of a chunk's text before, in and after the quote, without what the chunk before it had already.
const pieces = (chunk, from, quote) => {
  const letters = Array.from(chunk.text); // offsets count code points
  const begins = chunk.start ?? 0;
  const skip = chunk.start === null ? 0 : Math.max(0, Math.min(letters.length, from - begins));
  let [start, end] = [0, 0];
  if (quote && quote.start !== null && chunk.start !== null) {
    [start, end] = [quote.start - begins, quote.end - begins].map((at) => Math.max(skip, Math.min(letters.length, at)));
  } else if (quote && chunk.uid === quote.chunk && chunk.text.includes(quote.quote)) {
    start = Array.from(chunk.text.slice(0, chunk.text.indexOf(quote.quote))).length;
    end = start + Array.from(quote.quote).length;
  }
  return end > start ? [[skip, start], [start, end], [end, letters.length]].map(([one, other]) => letters.slice(one, other).join(""))
    : [letters.slice(skip).join(""), "", ""];
};

// The text from shortly before a chunk on, which goes on as one asks for it.
export const reading = async (corpus, { document, chunk = "", quote = null }, signal) => {
  const text = make("div", { className: "reading" });
  const box = make("div", {}, text);
  let from = 0;
  const more = async (after) => {
    const found = await get(textPath(corpus, { document, chunk, after, limit: 12 }), signal);
    for (const one of found.items) {
      const [before, marked, rest] = pieces(one, from, quote);
      const [first, last] = [before.replace(/^\n+/, ""), rest.replace(/\n+$/, "")];
      if (first || marked || last) text.append(make("p", { className: `text ${one.uid === chunk ? "cited" : ""}` }, first, marked ? make("mark", {}, marked) : "", last));
      from = Math.max(from, one.end ?? 0);
    }
    if (found.next) {
      const next = button("Read on", () => attempt(async () => { await more(found.next); next.remove(); }), { className: "next" });
      box.append(next);
    }
    return found.items;
  };
  const items = await more("");
  return { box, title: items[0]?.title || document, begins: items[0]?.position ?? 0 };
};

export const documentHref = (corpus, document, chunk = "", quote = null) =>
  href("c", corpus, "documents", document, ...(chunk ? [chunk, ...(quote && quote.start !== null ? [`${quote.start}-${quote.end}`] : [])] : []));

let gone = Promise.resolve(); // the browser is back from the passage that was closed last

// Open a citation's passage in a window over the page, which has an address: the browser's Back closes it.
export const openPassage = (corpus, citation, name, signal) => attempt(async () => {
  const { box, title } = await reading(corpus, { document: citation.document, chunk: citation.chunk, quote: citation }, signal);
  await gone;
  const window_ = make("dialog", { id: `passage-${name}`, ariaLabel: `Passage in ${title}` },
    make("div", { className: "head" }, make("h2", {}, title), button("×", () => window_.close(), { ariaLabel: "Close", className: "close" })),
    box, make("p", {}, make("a", { href: documentHref(corpus, citation.document, citation.chunk, citation) }, "Open the document here")));
  window_.onclose = () => {
    window_.remove();
    if (inAddress("quote") !== name) return;
    if (!history.state?.further) return setAddress({ quote: "" });
    gone = new Promise((back) => addEventListener("popstate", () => { keepInAddress(); back(); }, { once: true })); // keeps what was chosen before the browser is back
    history.back();
  };
  window_.onclick = (event) => { if (event.target === window_) window_.close(); };
  setAddress({ quote: name }, true);
  document.body.append(window_);
  window_.showModal();
  (box.querySelector("mark") ?? box.querySelector(".cited"))?.scrollIntoView({ block: "center" });
});

// Put the text of a chunk into an element of the memory that is shown.
export const readChunk = (scene) => async (uid, element) => {
  element.textContent = "Reading…";
  try {
    const found = await get(textPath(scene.corpus, { document: scene.chunks[uid].document, chunk: uid, limit: 3 }));
    element.textContent = found.items.find((one) => one.uid === uid)?.text ?? "It was deleted since.";
  } catch (error) {
    element.textContent = error.message;
  }
};

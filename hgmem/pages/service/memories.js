// The history: the memories of a corpus, the newest first, and the choice of two to compare.

import { button, make, plural } from "../shared/elements.js";
import { day, empty, head, here, href, paged } from "./place.js";
import { path, query } from "./server.js";

export const show = async ({ page, given: [mode, other], signal }) => {
  const { corpus } = here;
  const chosen = new Set(mode === "with" && other ? [other] : []);
  const listing = []; // the newest first
  const older = (one) => { const place = listing.indexOf(one); return place < 0 ? Infinity : place; };
  const compare = button("Compare the two", () => { location.hash = href("compare", ...[...chosen].sort((one, other) => older(other) - older(one))); }, { className: "main", disabled: true });
  const hint = make("p", { className: "quiet" });
  const count = () => {
    compare.disabled = chosen.size !== 2;
    hint.textContent = chosen.size === 2 ? "" : chosen.size === 1 ? "Choose one more to compare." : "Choose two to compare what they found.";
  };
  const row = (one) => {
    const box = make("input", { type: "checkbox", checked: chosen.has(one.uid), ariaLabel: `Compare: ${one.question}`, onchange: () => {
      if (box.checked) chosen.add(one.uid); else chosen.delete(one.uid);
      count();
    } });
    listing.push(one.uid);
    const told = [one.system, plural(one.steps, "step"), one.points ? plural(one.points, "point") : "", one.forked_from ? "fork" : "", one.owner,
      one.withdrawn ? `${plural(one.withdrawn, "quote")} withdrawn` : ""].filter(Boolean).join(" · ");
    return make("li", { className: "memory" }, box, make("div", {}, make("a", { href: href("m", one.uid) }, one.question || one.uid),
      make("span", { className: "quiet" }, make("span", { className: `state ${one.status}` }, one.status.replace("_", " ")), ` ${told} · `, day(one.created_at))));
  };
  const list = await paged({
    from: (after) => `${path("corpora", corpus)}/memories${query({ limit: 50, after })}`, row, signal,
    none: empty("Nobody has asked this corpus yet. Each question leaves a memory here, which can be looked at, continued and compared.", make("p", {}, make("a", { href: href("c", corpus) }, "Ask the first question"))),
  });
  count();
  page.replaceChildren(make("main", {}, head("Memories", ...(list.querySelector("li") ? [hint, compare] : [])), list));
};

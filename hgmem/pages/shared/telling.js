// What is told beside the picture: of a point, an entity, a step, an answer.

import { addressWith } from "./address.js";
import { SAID, changed, link, listed, make, plural, rich, shortened } from "./elements.js";
import { alive, at, quoteOf, stepOf, view } from "./memory.js";
import { colour } from "./picture.js";
import { calm, choose, go } from "./controls.js";

const BRIEF = 110; // characters of a point that a link to it has
const LONG = 600; // characters of a revised point that are shown at once

const linkTo = (uid, ...words) => link(addressWith({ point: uid, entity: "" }), () => choose("p", uid, true), ...words);
const pointLink = (uid, most = BRIEF) => {
  const point = view.points.get(uid);
  return point ? linkTo(uid, shortened(point.description, most)) : make("span", { className: "quiet" }, uid);
};

const lineage = (uid, seen = new Set()) => {
  const point = view.points.get(uid);
  const parts = point && !seen.has(uid) ? point.parts : [];
  const item = make("li", {},
    make("span", { className: `kind ${point ? point.kind : ""}` }, point ? `${SAID[point.kind]}, step ${point.born}` : "gone"),
    " ", pointLink(uid));
  if (parts.length) item.append(make("ul", {}, ...parts.map((part) => lineage(part, new Set([...seen, uid])))));
  return item;
};

const passage = (uid) => {
  const chunk = view.scene.chunks[uid];
  if (!chunk) return make("p", { className: "quiet" }, "A chunk that was deleted since.");
  const text = make("p", { className: "text" }, chunk.text ?? "");
  const ontoggle = () => { if (!text.textContent) view.read?.(uid, text); };
  return make("details", { ontoggle }, make("summary", {}, chunk.title), text);
};

const cited = (chunks) => view.scene.answers.flatMap((answer) => answer.citations.filter((one) => chunks.includes(one.chunk)));

const withdrawn = (one) => ", withdrawn" + {
  in_document: "; the sentence still stands in the document",
  not_in_document: "; no longer in the document",
  document_deleted: "; the document was deleted",
}[one.status];

const whereFrom = (one) =>
  `[${one.marker}] ${one.title}${one.start === null ? "" : `, characters ${one.start.toLocaleString("en")}–${one.end.toLocaleString("en")}`}` +
  `${one.said ? `, ${one.said}` : ""}${one.withdrawn ? withdrawn(one) : ""}`;

const quoted = (one, id = "") => make("blockquote", { id }, one.quote,
  make("footer", {}, view.follow && one.chunk && !one.withdrawn ? link(addressWith({ quote: quoteOf(one) }), () => view.follow(one), whereFrom(one)) : whereFrom(one)));

const tellPoint = (point) => {
  const becoming = view.successors.get(point.uid);
  const named = (uid) => {
    const entity = view.scene.entities[uid];
    return make("li", { mark: colour(entity) },
      link(addressWith({ entity: uid, point: "" }), () => choose("e", uid, true), entity.name));
  };
  const quotes = cited(point.chunks);
  return [
    make("h2", {}, "Memory point"),
    make("p", { className: "text" }, point.description),
    make("p", { className: "quiet" }, `${point.uid}: `, make("span", { className: `kind ${point.kind}` }, SAID[point.kind]),
      ` in step ${point.born}${point.died === null ? "" : `, ${point.retired ? "retired" : "died"} in step ${point.died}`}` +
      `${point.retired ? `: ${point.retired}` : ""}${point.inferred ? " · inferred from several chunks" : ""}`),
    ...(becoming ? [make("p", {}, make("span", { className: `kind ${becoming.kind}` }, `${SAID[becoming.kind]} into`), " ", pointLink(becoming.uid))] : []),
    make("h3", {}, plural(point.entities.length, "entity", "entities")),
    make("ul", { className: "names" }, ...point.entities.map(named)),
    ...(point.parts.length ? [make("h3", {}, "Lineage"), make("ul", { className: "lineage" }, lineage(point.uid))] : []),
    ...(quotes.length ? [make("h3", {}, "Quoted in the answer"), ...quotes.map((one) => quoted(one))] : []),
    make("h3", {}, `Supported by ${plural(point.chunks.length, "chunk")}` +
      (point.deleted ? `, ${point.deleted} deleted or changed since` : "")),
    listed("div", {}, point.chunks, passage),
  ];
};

const tellEntity = (uid) => {
  const { scene, now } = view;
  const entity = scene.entities[uid];
  const tied = scene.points.filter((point) => point.entities.includes(uid) && alive(point, now));
  return [
    make("h2", {}, entity.name),
    make("p", { className: "quiet" }, [entity.type || "entity", entity.provisional ? "named by the model, not in the corpus" : ""].filter(Boolean).join(" · ")),
    ...(entity.description ? [make("p", { className: "text" }, entity.description)] : []),
    make("h3", {}, `Tied by ${plural(tied.length, "point")} at step ${now}`),
    listed("ul", { className: "plain" }, tied, (point) => make("li", {}, pointLink(point.uid))),
  ];
};

// All points of the step, those with the words that are typed.
const tellPoints = () => {
  const { scene, now } = view;
  const living = scene.points.filter((point) => alive(point, now));
  const found = make("div");
  const seek = (words) => {
    const wanted = living.filter((point) => point.description.toLowerCase().includes(words));
    found.replaceChildren(wanted.length || !words ? listed("ul", { className: "plain" }, wanted, (point) => make("li", {}, pointLink(point.uid, 240)))
      : make("p", { className: "quiet" }, "No point has these words."));
  };
  seek("");
  const field = make("input", { type: "search", ariaLabel: "Words of points", placeholder: "Words of points", oninput: () => seek(field.value.trim().toLowerCase()) });
  const open = !view.cy || (at("points").firstElementChild?.open ?? false);
  return make("details", { open }, make("summary", {}, `All ${plural(living.length, "point")} at step ${now}`), living.length > 8 ? field : "", found);
};

// A point before and after it was revised, in full: a long one is folded.
const tellRevision = (...uids) => {
  const texts = uids.map((uid) => shortened(view.points.get(uid).description, Infinity));
  const [before, after] = changed(...texts).map((words, index) => {
    const whole = linkTo(uids[index], ...words);
    return texts[index].length <= LONG ? whole : make("details", {}, make("summary", {}, shortened(texts[index], BRIEF)), whole);
  });
  return [after, make("ul", { className: "parts" }, make("li", {}, before))];
};

const tellOperation = (operation) => {
  const item = make("li", {}, make("span", { className: `kind ${operation.kind}` }, SAID[operation.kind]), " ");
  const { kind, point, parts } = operation;
  if (kind === "revise" && view.points.has(point) && view.points.has(parts[0])) item.append(...tellRevision(parts[0], point));
  else {
    if (point) item.append(pointLink(point));
    if (parts.length) item.append(make("ul", { className: "parts" }, ...parts.map((part) => make("li", {}, pointLink(part, 70)))));
  }
  if (operation.reason) item.append(make("span", { className: "quiet" }, ` ${operation.reason}`));
  return item;
};

const spent = (cost) => (!cost || !cost.requests ? "" : `${plural(cost.requests, "call")} of the model, ${cost.prompt_tokens.toLocaleString("en")} tokens in, ${cost.completion_tokens.toLocaleString("en")} out`);

const counts = (found) => [
  found.entities ? plural(found.entities, "entity", "entities") : "",
  plural(found.chunks, "chunk"),
  found.built ? plural(found.built, "built row") : "",
].filter(Boolean).join(", ");

const tellSubquery = (one) => {
  const found = one.found
    ? make("span", { className: "quiet" }, counts(one.found) +
        (one.entities.length ? `: ${one.entities.join(", ")}${one.found.entities > one.entities.length ? ", …" : ""}` : ""))
    : null;
  const item = make("li", {}, one.text);
  if (one.concern && one.concern !== one.text) item.append(make("div", { className: "quiet" }, `for: ${one.concern}`));
  if (one.targets.length) item.append(make("div", { className: "quiet" }, "around ", ...one.targets.flatMap((uid, index) => [index ? " · " : "", pointLink(uid, 48)])));
  if (found) item.append(make("div", {}, found));
  if (one.built && one.built.length) item.append(make("ul", {}, ...one.built.map((hit) => make("li", { className: "quiet" }, `${hit.kind}: ${hit.text}`)),
    ...(one.found.built > one.built.length ? [make("li", { className: "quiet" }, `and ${one.found.built - one.built.length} more`)] : [])));
  if (one.chunks) item.append(...one.chunks.map(passage));
  return item;
};

const STRATEGY = { global: "global exploration: where memory has nothing", local: "local investigation: around named points" };
const JUDGED = { sufficient: "memory suffices: answer", local: "go on, around named points", global: "go on, where memory has nothing" };

const tellStep = (step) => {
  const filters = Object.entries(step.filters).map(([name, wanted]) => `${name} = ${wanted.join(" or ")}`);
  return [
    make("h2", {}, `Step ${step.number}`),
    make("p", { className: "quiet" }, [STRATEGY[step.strategy] || step.strategy, ...filters, spent(step.cost)].filter(Boolean).join(" · ")),
    ...(view.scene.steps.some((one) => one.question !== step.question) ? [make("p", {}, step.question)] : []),
    make("h3", {}, "Asked"),
    make("ol", {}, ...step.subqueries.map(tellSubquery)),
    ...(view.scene.points.length || step.operations.length || step.judgement ? [
      make("h3", {}, step.operations.length ? "What became of memory" : "Memory stayed as it was"),
      listed("ul", {}, step.operations, tellOperation)] : []), // not all systems keep points
    ...(step.premise ? [make("h3", {}, "Contradicted by the documents"), make("p", {}, step.premise)] : []),
    ...(step.open.length ? [make("h3", {}, "Still open"), make("ul", {}, ...step.open.map((lacking) => make("li", {}, lacking)))] : []),
    ...(step.judgement ? [make("h3", {}, "Plan"), make("p", {}, JUDGED[step.judgement] || step.judgement)] : []),
    ...(step.planned.length ? [make("ol", {}, ...step.planned.map(tellSubquery))] : []),
    ...(step.notes.length ? [make("details", {}, make("summary", {}, plural(step.notes.length, "note")), make("ul", {}, ...step.notes.map((note) => make("li", {}, note))))] : []),
  ];
};

const marked = (answer) => {
  const known = new Map(answer.citations.map((one) => [one.marker, one]));
  return rich(answer.text, (piece) => {
    const one = known.get(Number(piece.slice(1, -1)));
    return !one ? piece : link(addressWith({ quote: quoteOf(one) }), () => { light(`quote-${quoteOf(one)}`); if (one.chunk && !one.withdrawn) view.follow?.(one); }, piece);
  });
};

const light = (id) => {
  document.querySelectorAll("blockquote.lit").forEach((one) => one.classList.remove("lit"));
  at(id).classList.add("lit");
  at(id).scrollIntoView({ block: "center", behavior: calm.matches ? "auto" : "smooth" });
};

const tellAnswer = (answer, number) => {
  const { scene, numbers, now } = view;
  const open = scene.status === "running" || (scene.status === "interrupted" && scene.question !== answer.question);
  const before = open || number < scene.answers.length - 1;
  const title = make("h2", {}, before ? "An earlier answer" : "Answer");
  const follow = before || scene.answers.length > 1 ? [make("p", { className: "asked" }, answer.question)] : [];
  if (numbers.length && answer.step > now) {
    return [title, ...follow,
      make("button", { type: "button", onclick: () => go(answer.step) }, `Given after step ${answer.step}: go there`)];
  }
  return [
    title, ...follow,
    make("div", { className: "text" }, ...marked(answer)),
    ...answer.citations.map((one) => quoted(one, `quote-${quoteOf(one)}`)),
    make("p", { className: "quiet" }, `after step ${answer.step}, ${answer.model}`),
    ...answer.notes.map((note) => make("p", { className: "quiet" }, note)),
  ];
};

const tellWriting = () => [
  make("h2", {}, "Answer"), make("p", { className: "text", id: "writing" }, view.scene.writing),
  make("p", { className: "quiet" }, "It is being written; its quotes are checked at the end."),
];

export const tell = () => {
  const { scene, points, chosen, now, last, numbers } = view;
  const point = chosen && chosen.kind === "p" ? points.get(chosen.uid) : null;
  const known = chosen && (point || scene.entities[chosen.uid]);
  at("chosen").hidden = !known;
  at("chosen").replaceChildren(...(known
    ? [make("button", { type: "button", className: "close", ariaLabel: "Let go", title: "Let go (Esc)", onclick: () => choose(null) }, "×"),
      ...(point ? tellPoint(point) : tellEntity(chosen.uid))] : []));
  const step = stepOf(now);
  at("step").hidden = !step;
  at("step").replaceChildren(...(step ? tellStep(step) : []));
  at("points").hidden = !scene.points.length;
  at("points").replaceChildren(...(scene.points.length ? [tellPoints()] : []));
  at("answer").hidden = !scene.answers.length && !scene.writing;
  at("answer").replaceChildren(...(scene.writing ? tellWriting() : []), ...scene.answers.map(tellAnswer).reverse().flat()); // the newest first
  const living = scene.points.filter((one) => alive(one, now)).length;
  at("at").textContent = `Step ${now} of ${last}${scene.points.length ? ` · ${plural(living, "point")}` : ""}`;
  at("slider").value = now;
  at("slider").setAttribute("aria-valuetext", at("at").textContent);
  const held = document.activeElement;
  at("back").disabled = !numbers.length || now <= numbers[0];
  at("on").disabled = now >= last;
  if (held && held.disabled) at("slider").focus(); // what can't be pressed any more would lose the keyboard
  at("question").textContent = step && !(scene.status === "running" && now === last) ? step.question : scene.question;
};

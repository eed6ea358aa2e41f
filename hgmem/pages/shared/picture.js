// The picture: what is drawn and how it looks, at each step. Of a large memory the part is drawn that matters most.

import { shortened } from "./elements.js";
import { alive, at, leaving, view } from "./memory.js";
import { paintWalk, places, walkElements, walkLooks } from "./walk.js";

const MOST = 250; // points of a memory that is drawn as a whole
const MANY = 600; // its points and entities
const PART = 90; // points, and as many entities, that are drawn of a larger one

export const dark = matchMedia("(prefers-color-scheme: dark)");
export const COOL = {
  light: ["#8a909b", "#2f6db5", "#1f8a8a", "#5b5fc7", "#3b8f5a", "#0e7fb8", "#7a6aa8", "#4f7d8c"],
  dark: ["#9aa1ad", "#6ba6ea", "#4cc4c0", "#9a9cf5", "#74c792", "#56bdf0", "#b3a4e0", "#8db8c7"],
};

export const colour = (entity) => {
  const cool = COOL[dark.matches ? "dark" : "light"];
  return cool[entity.colour < cool.length ? entity.colour : 0];
};

// Of a large memory: what is chosen with what it ties, what is new or leaves, what the answer quotes, what ties most.
const choice = () => {
  const { scene, points, chosen, now } = view;
  const cited = new Set(scene.answers.flatMap((answer) => answer.citations.map((one) => one.chunk)));
  const near = new Set(chosen ? points.get(chosen.uid)?.entities ?? [chosen.uid] : []);
  const rank = (point) => (chosen && point.uid === chosen.uid ? 1e6 : 0) + (point.entities.some((uid) => near.has(uid)) ? 1e5 : 0)
    + (point.born === now ? 1e4 : 0) + (leaving(point, now) ? 1e3 : 0) + (point.chunks.some((uid) => cited.has(uid)) ? 100 : 0)
    + Math.min(point.entities.length, 99);
  return scene.points.filter((point) => alive(point, now) || leaving(point, now))
    .map((point) => [rank(point), point]).sort(([one], [other]) => other - one).slice(0, PART).map(([, point]) => point);
};

// The points and entities (uids) to draw: of a small memory all that ever were, so that nothing moves.
export const isLarge = () => view.scene.points.length > MOST || view.scene.points.length + Object.keys(view.scene.entities).length > MANY;
export const part = () => {
  const { scene, chosen } = view;
  const whole = !isLarge();
  const drawn = whole ? scene.points : choice();
  const ties = new Map();
  for (const point of drawn) for (const uid of point.entities) ties.set(uid, (ties.get(uid) || 0) + (chosen?.uid === uid ? 99 : 1));
  const uids = whole ? Object.keys(scene.entities) : [...ties.keys()].sort((one, other) => ties.get(other) - ties.get(one)).slice(0, PART);
  return { whole, drawn, entities: new Set(uids) };
};

const elements = ({ drawn, entities }) => {
  const { scene } = view;
  const here = new Set(drawn.map((point) => point.uid));
  const nodes = drawn.map((point) => ({
    group: "nodes", classes: "point", data: { id: `p:${point.uid}`, label: shortened(point.description) },
  }));
  for (const uid of entities) {
    const entity = scene.entities[uid];
    const data = { id: `e:${uid}`, label: shortened(entity.name, 40), size: 14, colour: colour(entity) };
    nodes.push({ group: "nodes", classes: "entity", data });
  }
  const edges = drawn.flatMap((point) => [
    ...point.entities.filter((uid) => entities.has(uid)).map((uid) => ({
      group: "edges", classes: "involves", data: { id: `${point.uid} ${uid}`, source: `p:${point.uid}`, target: `e:${uid}` },
    })),
    ...point.parts.filter((part) => here.has(part)).map((part) => ({
      group: "edges", classes: `became ${point.kind}`,
      data: { id: `${part} ${point.uid} ${point.kind}`, source: `p:${part}`, target: `p:${point.uid}` },
    })),
  ]);
  return [...nodes, ...edges, ...walkElements()];
};

export const looks = () => {
  const css = getComputedStyle(document.documentElement);
  const tone = (name) => css.getPropertyValue(`--${name}`).trim();
  const ring = (kind) => ({
    selector: `node.point.new-${kind}`, style: { "border-width": 5, "border-color": tone(kind), "border-opacity": 1 },
  });
  return [
    { selector: "node", style: {
      label: "data(label)", color: tone("ink"), "font-family": "system-ui, sans-serif", "text-wrap": "wrap",
      "text-outline-color": tone("paper"), "text-outline-width": 2.5, "text-outline-opacity": 0.9,
    } },
    { selector: "node.point", style: {
      shape: "round-diamond", width: 46, height: 46, "background-color": tone("point"), "border-width": 1,
      "border-color": tone("ink"), "border-opacity": 0.35, "text-valign": "bottom", "text-margin-y": 5, "z-index": 2,
    } },
    { selector: "node.entity", style: {
      shape: "ellipse", width: "data(size)", height: "data(size)", "background-color": "data(colour)",
      "text-valign": "center", "text-halign": "right", "text-margin-x": 4, color: tone("faint"),
    } },
    { selector: "edge.involves", style: {
      width: 1.4, "line-color": tone("point"), "line-opacity": 0.5, "curve-style": "haystack", "haystack-radius": 0,
    } },
    { selector: "edge.became", style: {
      width: 3, "line-style": "dashed", "curve-style": "bezier", "target-arrow-shape": "triangle", "arrow-scale": 1.4,
      "line-color": tone("revise"), "target-arrow-color": tone("revise"), "z-index": 3,
    } },
    { selector: "edge.became.merge", style: { "line-color": tone("merge"), "target-arrow-color": tone("merge") } },
    { selector: "node.point.leaving", style: {
      "background-opacity": 0.25, "border-style": "dashed", "border-width": 2, "text-opacity": 0.55,
    } },
    ring("insert"), ring("revise"), ring("merge"), ...walkLooks(tone),
    { selector: ".away", style: { display: "none" } },
    { selector: ".coming", style: { visibility: "hidden" } },
    { selector: ".dim", style: { opacity: 0.2 } },
    { selector: ".mute", style: { "text-opacity": 0 } },
    { selector: "node.chosen", style: {
      "outline-width": 3, "outline-color": tone("ink"), "outline-offset": 4, "z-index": 9, // apart from the mark of what happened to it
    } },
  ];
};

const canDraw = () => typeof cytoscape === "function" && Boolean(document.createElement("canvas").getContext("2d"));

// Begin a picture in #graph. Without a canvas there is none, and the lists beside it have everything.
export const draw = () => {
  const drawable = canDraw();
  at("undrawn").hidden = drawable;
  at("graph").hidden = !drawable;
  if (!drawable) return;
  view.cy = cytoscape({
    container: at("graph"), elements: [], style: looks(), layout: { name: "preset" }, minZoom: 0.05, maxZoom: 4,
    boxSelectionEnabled: false, autounselectify: true, hideEdgesOnViewport: view.scene.points.length > 150,
  });
};

// Put into the picture what it lacks, and take out what it should not have.
export const fill = () => {
  const { cy, scene } = view;
  const chosen = part();
  const wanted = elements(chosen);
  const ids = new Set(wanted.map((one) => one.data.id));
  const gone = cy.elements().filter((one) => !ids.has(one.id()));
  const fresh = wanted.filter((one) => cy.getElementById(one.data.id).empty());
  if (gone.nonempty()) gone.remove();
  const added = cy.add(fresh);
  if (added.nodes().nonempty()) added.addClass("coming");
  at("partly").hidden = chosen.whole;
  at("partly").textContent = chosen.whole ? "" : `${chosen.drawn.length} of ${scene.points.length.toLocaleString("en")} points are drawn: what is new in this step, quoted or ties most. Choose a point in the list to draw what is around it.`;
};

export const paint = () => {
  const { cy, scene, points, now, chosen } = view;
  cy.batch(() => {
    const shared = new Map();
    cy.nodes(".point").forEach((node) => {
      const point = points.get(node.id().slice(2));
      const here = alive(point, now);
      const ghost = leaving(point, now);
      node.toggleClass("away", !here && !ghost);
      node.toggleClass("leaving", ghost);
      for (const kind of ["insert", "revise", "merge"]) {
        node.toggleClass(`new-${kind}`, here && point.born === now && point.kind === kind);
      }
      if (here) point.entities.forEach((uid) => shared.set(uid, (shared.get(uid) || 0) + 1));
      if (ghost) point.entities.forEach((uid) => shared.set(uid, shared.get(uid) || 0));
    });
    cy.nodes(".entity").not(".place").forEach((node) => {
      const uid = node.id().slice(2);
      node.toggleClass("away", !shared.has(uid));
      node.data({ size: 14 + 5 * Math.min(shared.get(uid) || 0, 6), colour: colour(scene.entities[uid]) });
    });
    paintWalk();
    cy.elements().removeClass("dim chosen");
    const picked = chosen ? cy.getElementById(`${chosen.kind}:${chosen.uid}`) : cy.collection();
    if (picked.nonempty() && !picked.hasClass("away")) {
      picked.addClass("chosen");
      cy.elements().difference(picked.closedNeighborhood()).addClass("dim");
    }
  });
  at("none").hidden = cy.nodes().not(".away").nonempty() || !view.numbers.length;
};
export const isEmpty = () => !view.scene.points.length && !places().size;

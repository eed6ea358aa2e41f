// The picture: what is drawn and how it looks, at each step.

const dark = matchMedia("(prefers-color-scheme: dark)");
const COOL = {
  light: ["#8a909b", "#2f6db5", "#1f8a8a", "#5b5fc7", "#3b8f5a", "#0e7fb8", "#7a6aa8", "#4f7d8c"],
  dark: ["#9aa1ad", "#6ba6ea", "#4cc4c0", "#9a9cf5", "#74c792", "#56bdf0", "#b3a4e0", "#8db8c7"],
};

const colour = (entity) => {
  const cool = COOL[dark.matches ? "dark" : "light"];
  return cool[entity.colour < cool.length ? entity.colour : 0];
};

const elements = () => {
  const nodes = scene.points.map((point) => ({
    group: "nodes", classes: "point", data: { id: `p:${point.uid}`, label: shortened(point.description) },
  }));
  for (const [uid, entity] of Object.entries(scene.entities)) {
    const data = { id: `e:${uid}`, label: shortened(entity.name, 40), size: 14, colour: colour(entity) };
    nodes.push({ group: "nodes", classes: "entity", data });
  }
  const edges = scene.points.flatMap((point) => [
    ...point.entities.map((uid) => ({
      group: "edges", classes: "involves", data: { id: `${point.uid} ${uid}`, source: `p:${point.uid}`, target: `e:${uid}` },
    })),
    ...point.parts.filter((part) => points.has(part)).map((part) => ({
      group: "edges", classes: `became ${point.kind}`,
      data: { id: `${part} ${point.uid}`, source: `p:${part}`, target: `p:${point.uid}` },
    })),
  ]);
  return [...nodes, ...edges, ...walkElements()];
};

const looks = () => {
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
    { selector: ".dim", style: { opacity: 0.2 } },
    { selector: ".mute", style: { "text-opacity": 0 } },
    { selector: "node.chosen", style: {
      "border-width": 6, "border-color": tone("link"), "border-opacity": 1, "border-style": "solid", "z-index": 9,
    } },
  ];
};

const cy = cytoscape({
  container: at("graph"), elements: elements(), style: looks(), layout: { name: "preset" }, minZoom: 0.05, maxZoom: 4,
  boxSelectionEnabled: false, autounselectify: true, hideEdgesOnViewport: scene.points.length > 150,
});

const paint = () => {
  cy.batch(() => {
    const shared = new Map();
    for (const point of scene.points) {
      const node = cy.getElementById(`p:${point.uid}`);
      const here = alive(point, now);
      const ghost = leaving(point, now);
      node.toggleClass("away", !here && !ghost);
      node.toggleClass("leaving", ghost);
      for (const kind of ["insert", "revise", "merge"]) {
        node.toggleClass(`new-${kind}`, here && point.born === now && point.kind === kind);
      }
      if (here) point.entities.forEach((uid) => shared.set(uid, (shared.get(uid) || 0) + 1));
      if (ghost) point.entities.forEach((uid) => shared.set(uid, shared.get(uid) || 0));
    }
    for (const [uid, entity] of Object.entries(scene.entities)) {
      const node = cy.getElementById(`e:${uid}`);
      node.toggleClass("away", !shared.has(uid));
      node.data({ size: 14 + 5 * Math.min(shared.get(uid) || 0, 6), colour: colour(entity) });
    }
    paintWalk();
    cy.elements().removeClass("dim chosen");
    const picked = chosen ? cy.getElementById(`${chosen.kind}:${chosen.uid}`) : cy.collection();
    if (picked.nonempty() && !picked.hasClass("away")) {
      picked.addClass("chosen");
      cy.elements().difference(picked.closedNeighborhood()).addClass("dim");
    }
  });
  at("none").hidden = cy.nodes().not(".away").nonempty() || !numbers.length;
};

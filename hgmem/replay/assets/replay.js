"use strict";
(() => {
  const scene = JSON.parse(document.getElementById("scene").textContent);
  const at = (id) => document.getElementById(id);
  const points = new Map(scene.points.map((point) => [point.uid, point]));
  const successors = new Map(scene.points.flatMap((point) => point.parts.map((part) => [part, point])));
  const numbers = scene.steps.map((step) => step.number);
  const last = numbers.length ? numbers[numbers.length - 1] : 0;
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const COOL = {
    light: ["#8a909b", "#2f6db5", "#1f8a8a", "#5b5fc7", "#3b8f5a", "#0e7fb8", "#7a6aa8", "#4f7d8c"],
    dark: ["#9aa1ad", "#6ba6ea", "#4cc4c0", "#9a9cf5", "#74c792", "#56bdf0", "#b3a4e0", "#8db8c7"],
  };
  const SAID = { insert: "inserted", revise: "revised", merge: "merged", drop: "dropped" };
  const BEAT = 2200; // milliseconds a step while it plays
  const CAPTION = 64; // characters of a point that its caption has
  const MARGIN = innerWidth < 760 ? 24 : 64; // pixels around the whole picture
  const ROOMY = 60; // points up to which captions get room of their own
  let now = last;
  let chosen = null;
  let timer = null;

  // What is alive -------------------------------------------------------------------------------------------------

  const alive = (point, step) => point.born <= step && (point.died === null || point.died > step);
  const leaving = (point, step) => point.died === step && point.born < step;
  const origin = (point) => {
    while (point.kind === "revise" && points.has(point.parts[0])) point = points.get(point.parts[0]);
    return point;
  };
  const stepOf = (number) => scene.steps.find((step) => step.number === number);
  const colour = (entity) => {
    const cool = COOL[dark.matches ? "dark" : "light"];
    return cool[entity.colour < cool.length ? entity.colour : 0];
  };

  // Elements, always made by hand: text of documents is never read as markup --------------------------------------

  const make = (tag, properties = {}, ...children) => {
    const { mark, ...rest } = properties;
    const element = Object.assign(document.createElement(tag), rest);
    if (mark) element.style.setProperty("--mark", mark);
    element.append(...children.filter((child) => child !== null && child !== ""));
    return element;
  };
  const shortened = (text, most = CAPTION) => (text.length <= most ? text : `${text.slice(0, most - 1).trimEnd()}…`);
  const plural = (count, one, many = `${one}s`) => `${count} ${count === 1 ? one : many}`;
  const link = (href, act, ...children) =>
    make("a", { href, onclick: (event) => { event.preventDefault(); act(); } }, ...children);
  const pointLink = (uid, most = 110) => {
    const point = points.get(uid);
    if (!point) return make("span", { className: "quiet" }, uid);
    return link(`#${uid}`, () => choose("p", uid, true), shortened(point.description, most));
  };

  // The picture ---------------------------------------------------------------------------------------------------

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
    return [...nodes, ...edges];
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
      ring("insert"), ring("revise"), ring("merge"),
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

  // Places are found once, for everything that ever was: from step to step nothing moves. What was revised is said of
  // the same things, so its versions stand together.
  const place = () => {
    const firsts = new Set(scene.points.map((point) => `p:${origin(point).uid}`));
    const later = cy.nodes(".point").filter((node) => !firsts.has(node.id()));
    const counted = cy.elements().difference(later).difference(later.connectedEdges());
    counted.nodes().forEach((node, index) => { // a spiral: the same memory is the same picture each time
      node.position({ x: 600 + 30 * Math.sqrt(index) * Math.cos(2.4 * index), y: 400 + 30 * Math.sqrt(index) * Math.sin(2.4 * index) });
    });
    counted.layout({
      name: "cose", animate: false, randomize: false, fit: false, nodeDimensionsIncludeLabels: true, componentSpacing: 90,
      nodeRepulsion: () => 90000, idealEdgeLength: () => 70, edgeElasticity: () => 80, gravity: 0.6,
      numIter: Math.max(150, Math.min(700, Math.round(120000 / counted.nodes().length))),
      boundingBox: { x1: 0, y1: 0, w: 1200, h: 800 },
    }).run();
    for (let round = 0; scene.points.length <= ROOMY && round < 3; round += 1) {
      cy.fit(counted, MARGIN); // captions keep their size on the screen, so they take more room the farther one is
      spread(counted.nodes().toArray(), Math.max(1, Math.min(2, 1 / cy.zoom())));
    }
    for (const node of later) {
      const point = points.get(node.id().slice(2));
      const first = cy.getElementById(`p:${origin(point).uid}`).position();
      const version = point.born - origin(point).born;
      node.position({ x: first.x + 16 * version, y: first.y + 26 * version });
    }
  };

  // Nodes and captions that lie on each other are pushed apart, each along the shorter way; pages are wider than high.
  const spread = (nodes, scale) => {
    const boxes = nodes.map((node) => ({ node, ...node.position(), ...extent(node, scale) }));
    for (let round = 0, moved = true; moved && round < 60; round += 1) {
      moved = false;
      boxes.forEach((one, index) => boxes.slice(index + 1).forEach((other) => {
        const x = Math.min(one.x + one.right, other.x + other.right) - Math.max(one.x - one.left, other.x - other.left);
        const y = Math.min(one.y + one.down, other.y + other.down) - Math.max(one.y - one.up, other.y - other.up);
        if (x <= 0 || y <= 0) return;
        moved = true;
        const [along, by] = x < 1.8 * y ? ["x", x / 2 + 1] : ["y", y / 2 + 1];
        const sign = one[along] <= other[along] ? 1 : -1;
        one[along] -= sign * by;
        other[along] += sign * by;
      }));
    }
    for (const { node, x, y } of boxes) node.position({ x, y });
  };
  const extent = (node, scale) => {
    const { width, height } = lettering(node);
    return node.hasClass("point")
      ? { left: (scale * width) / 2, right: (scale * width) / 2, up: 26, down: 32 + scale * height }
      : { left: 14, right: 20 + scale * width, up: 10 * scale, down: 10 * scale };
  };

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
      cy.elements().removeClass("dim chosen");
      const picked = chosen ? cy.getElementById(`${chosen.kind}:${chosen.uid}`) : cy.collection();
      if (picked.nonempty() && !picked.hasClass("away")) {
        picked.addClass("chosen");
        cy.elements().difference(picked.closedNeighborhood()).addClass("dim");
      }
    });
    at("none").hidden = cy.nodes(":visible").nonempty() || !numbers.length;
  };

  // Captions keep one size on the screen, and where there is no room for all, those that matter most are shown: of
  // what is chosen, of what is new in this step, of what ties most.
  const WIDTH = { point: 150, entity: 120 }; // pixels of a line
  const LETTER = { point: 12, entity: 11 }; // pixels of a font
  const weight = (node) => (node.hasClass("chosen") ? 1e6 : node.hasClass("dim") ? -1e6 : 0)
    + (node.is(".new-insert, .new-revise, .new-merge") ? 1e3 : 0) + (node.hasClass("point") ? 100 : 0) + node.degree(false);
  const lettering = (node) => {
    const kind = node.hasClass("point") ? "point" : "entity";
    const letters = node.data("label").length * LETTER[kind] * 0.56;
    return {
      width: Math.min(letters, WIDTH[kind] * 0.95), // lines rarely reach the edge
      height: Math.ceil(letters / (WIDTH[kind] * 0.9)) * LETTER[kind] * 1.15,
    };
  };
  const room = (node, zoom) => {
    const { width, height } = lettering(node);
    const { x, y } = node.renderedPosition();
    const radius = (node.width() / 2) * zoom;
    return node.hasClass("point")
      ? { x1: x - width / 2, x2: x + width / 2, y1: y - radius, y2: y + radius + 5 + height }
      : { x1: x - radius, x2: x + radius + 4 + width, y1: y - height / 2, y2: y + height / 2 };
  };
  const caption = () => {
    const zoom = cy.zoom();
    const seen = cy.nodes().filter((node) => !node.hasClass("away"));
    const ranked = seen.toArray().map((node) => [weight(node), node]).sort(([one], [other]) => other - one);
    const taken = [];
    cy.batch(() => {
      for (const kind of ["point", "entity"]) {
        seen.filter(`.${kind}`).style({ "font-size": LETTER[kind] / zoom, "text-max-width": WIDTH[kind] / zoom });
      }
      for (const [, node] of ranked) {
        const box = room(node, zoom);
        const free = !taken.some((one) => box.x1 < one.x2 && one.x1 < box.x2 && box.y1 < one.y2 && one.y1 < box.y2);
        node.toggleClass("mute", !free);
        if (free) taken.push(box);
      }
    });
  };
  let captioning = null;
  const captionSoon = () => {
    clearTimeout(captioning);
    captioning = setTimeout(caption, 80);
  };

  const whole = () => {
    const seen = cy.elements(":visible");
    if (seen.empty()) return;
    cy.fit(seen, MARGIN);
    cy.panBy({ x: 0, y: -MARGIN / 3 }); // captions hang below their points
  };
  const zoom = (factor) => cy.zoom({ level: cy.zoom() * factor, renderedPosition: { x: cy.width() / 2, y: cy.height() / 2 } });

  // What is told beside it ----------------------------------------------------------------------------------------

  const lineage = (uid, seen = new Set()) => {
    const point = points.get(uid);
    const parts = point && !seen.has(uid) ? point.parts : [];
    const item = make("li", {},
      make("span", { className: `kind ${point ? point.kind : ""}` }, point ? `${SAID[point.kind]}, step ${point.born}` : "gone"),
      " ", pointLink(uid));
    if (parts.length) item.append(make("ul", {}, ...parts.map((part) => lineage(part, new Set([...seen, uid])))));
    return item;
  };

  const passage = (uid) => {
    const chunk = scene.chunks[uid];
    if (!chunk) return make("p", { className: "quiet" }, "A chunk that was deleted since.");
    return make("details", {}, make("summary", {}, chunk.title), make("p", { className: "text" }, chunk.text));
  };

  const cited = (chunks) => scene.answers.flatMap((answer) => answer.citations.filter((one) => chunks.includes(one.chunk)));

  const whereFrom = (one) =>
    `[${one.marker}] ${one.title}${one.start === null ? "" : ` (${one.start}–${one.end})`}${one.withdrawn ? ", withdrawn" : ""}`;

  const quoted = (one, id = "") => make("blockquote", { id }, one.quote, make("footer", {}, whereFrom(one)));

  const tellPoint = (point) => {
    const becoming = successors.get(point.uid);
    const named = (uid) => {
      const entity = scene.entities[uid];
      return make("li", { mark: colour(entity) },
        link(`#${uid}`, () => choose("e", uid, true), entity.name));
    };
    const quotes = cited(point.chunks);
    return [
      make("h2", {}, "Memory point"),
      make("p", { className: "text" }, point.description),
      make("p", { className: "quiet" }, `${point.uid}: `, make("span", { className: `kind ${point.kind}` }, SAID[point.kind]),
        ` in step ${point.born}${point.died === null ? "" : `, died in step ${point.died}`}`),
      ...(becoming ? [make("p", {}, make("span", { className: `kind ${becoming.kind}` }, `${SAID[becoming.kind]} into`), " ", pointLink(becoming.uid))] : []),
      make("h3", {}, plural(point.entities.length, "entity", "entities")),
      make("ul", { className: "names" }, ...point.entities.map(named)),
      ...(point.parts.length ? [make("h3", {}, "Lineage"), make("ul", { className: "lineage" }, lineage(point.uid))] : []),
      ...(quotes.length ? [make("h3", {}, "Quoted in the answer"), ...quotes.map((one) => quoted(one))] : []),
      make("h3", {}, `Supported by ${plural(point.chunks.length, "chunk")}`),
      ...point.chunks.map(passage),
    ];
  };

  const tellEntity = (uid) => {
    const entity = scene.entities[uid];
    const tied = scene.points.filter((point) => point.entities.includes(uid) && alive(point, now));
    return [
      make("h2", {}, entity.name),
      make("p", { className: "quiet" }, [entity.type || "entity", entity.provisional ? "named by the model, not in the corpus" : ""].filter(Boolean).join(" · ")),
      ...(entity.description ? [make("p", { className: "text" }, entity.description)] : []),
      make("h3", {}, `Tied by ${plural(tied.length, "point")} at step ${now}`),
      make("ul", { className: "plain" }, ...tied.map((point) => make("li", {}, pointLink(point.uid)))),
    ];
  };

  const tellOperation = (operation) => {
    const item = make("li", {}, make("span", { className: `kind ${operation.kind}` }, SAID[operation.kind]), " ");
    if (operation.point) item.append(pointLink(operation.point));
    if (operation.parts.length) {
      item.append(make("ul", { className: "parts" }, ...operation.parts.map((part) => make("li", {}, pointLink(part, 70)))));
    }
    if (operation.reason) item.append(make("span", { className: "quiet" }, ` ${operation.reason}`));
    return item;
  };

  const tellSubquery = (one) => {
    const found = one.found
      ? make("span", { className: "quiet" }, `${plural(one.found.entities, "entity", "entities")}, ${plural(one.found.chunks, "chunk")}` +
          (one.entities.length ? `: ${one.entities.join(", ")}${one.found.entities > one.entities.length ? ", …" : ""}` : ""))
      : null;
    const item = make("li", {}, one.text);
    if (one.concern && one.concern !== one.text) item.append(make("div", { className: "quiet" }, `for: ${one.concern}`));
    if (one.targets.length) item.append(make("div", { className: "quiet" }, "around ", ...one.targets.flatMap((uid, index) => [index ? " · " : "", pointLink(uid, 48)])));
    if (found) item.append(make("div", {}, found));
    return item;
  };

  const STRATEGY = { global: "global exploration: where memory has nothing", local: "local investigation: around named points" };
  const JUDGED = { sufficient: "memory suffices: answer", local: "go on, around named points", global: "go on, where memory has nothing" };

  const tellStep = (step) => {
    const filters = Object.entries(step.filters).map(([name, wanted]) => `${name} = ${wanted.join(" or ")}`);
    return [
      make("h2", {}, `Step ${step.number}`),
      make("p", { className: "quiet" }, STRATEGY[step.strategy] || step.strategy, filters.length ? ` · ${filters.join(", ")}` : ""),
      ...(scene.steps.some((one) => one.question !== step.question) ? [make("p", {}, step.question)] : []),
      make("h3", {}, "Asked"),
      make("ol", {}, ...step.subqueries.map(tellSubquery)),
      make("h3", {}, step.operations.length ? "What became of memory" : "Memory stayed as it was"),
      make("ul", {}, ...step.operations.map(tellOperation)),
      ...(step.judgement ? [make("h3", {}, "Plan"), make("p", {}, JUDGED[step.judgement] || step.judgement)] : []),
      ...(step.planned.length ? [make("ol", {}, ...step.planned.map(tellSubquery))] : []),
      ...(step.notes.length ? [make("details", {}, make("summary", {}, plural(step.notes.length, "note")), make("ul", {}, ...step.notes.map((note) => make("li", {}, note))))] : []),
    ];
  };

  const marked = (answer, number) => {
    const known = new Set(answer.citations.map((one) => one.marker));
    const target = (marker) => `quote-${number}-${marker}`;
    return answer.text.split(/(\[\d+\])/).map((piece) => {
      const marker = Number((piece.match(/^\[(\d+)\]$/) || [])[1]);
      if (!known.has(marker)) return make("bdi", {}, piece);
      return link(`#${target(marker)}`, () => light(target(marker)), piece);
    });
  };

  const light = (id) => {
    document.querySelectorAll("blockquote.lit").forEach((one) => one.classList.remove("lit"));
    at(id).classList.add("lit");
    at(id).scrollIntoView({ block: "center", behavior: calm.matches ? "auto" : "smooth" });
  };

  const tellAnswer = (answer, number) => {
    const follow = scene.answers.length > 1 ? [make("p", {}, answer.question)] : [];
    if (numbers.length && answer.step > now) {
      return [make("h2", {}, "Answer"), ...follow,
        make("button", { type: "button", onclick: () => go(answer.step) }, `Given after step ${answer.step}: go there`)];
    }
    return [
      make("h2", {}, "Answer"), ...follow,
      make("p", { className: "text" }, ...marked(answer, number)),
      ...answer.citations.map((one) => quoted(one, `quote-${number}-${one.marker}`)),
      make("p", { className: "quiet" }, `after step ${answer.step}, ${answer.model}`),
      ...answer.notes.map((note) => make("p", { className: "quiet" }, note)),
    ];
  };

  const tell = () => {
    const point = chosen && chosen.kind === "p" ? points.get(chosen.uid) : null;
    at("chosen").hidden = !chosen;
    at("chosen").replaceChildren(...(chosen
      ? [make("button", { type: "button", className: "close", ariaLabel: "Let go", title: "Let go (Esc)", onclick: () => choose(null) }, "×"),
        ...(point ? tellPoint(point) : tellEntity(chosen.uid))] : []));
    const step = stepOf(now);
    at("step").hidden = !step;
    at("step").replaceChildren(...(step ? tellStep(step) : []));
    at("answer").hidden = !scene.answers.length;
    at("answer").replaceChildren(...scene.answers.map(tellAnswer).reverse().flat()); // the newest first
    const living = scene.points.filter((one) => alive(one, now)).length;
    at("at").textContent = `Step ${now} of ${last} · ${plural(living, "point")}`;
    at("slider").value = now;
    at("slider").setAttribute("aria-valuetext", at("at").textContent);
    const held = document.activeElement;
    at("back").disabled = !numbers.length || now <= numbers[0];
    at("on").disabled = now >= last;
    if (held && held.disabled) at("slider").focus(); // what can't be pressed any more would lose the keyboard
    at("question").textContent = step ? step.question : scene.question;
  };

  // What one does -------------------------------------------------------------------------------------------------

  const show = () => { paint(); caption(); tell(); };
  const go = (step) => { now = Math.max(numbers[0] || 0, Math.min(last, step)); show(); };
  const choose = (kind, uid, by = false) => { // `by`: a link that is gone once its target is shown
    chosen = kind ? { kind, uid } : null;
    if (kind === "p" && !alive(points.get(uid), now) && !leaving(points.get(uid), now)) now = points.get(uid).born;
    show();
    at("side").scrollTop = 0;
    if (kind && by) at("chosen").focus({ preventScroll: true });
    if (kind && innerWidth < 760) at("chosen").scrollIntoView({ block: "start", behavior: calm.matches ? "auto" : "smooth" });
  };
  const stop = () => {
    clearInterval(timer);
    timer = null;
    at("play").textContent = "▶";
    at("play").setAttribute("aria-label", "Play");
  };
  const play = () => {
    if (timer) return stop();
    if (now >= last) go(numbers[0]);
    at("play").textContent = "❚❚";
    at("play").setAttribute("aria-label", "Pause");
    timer = setInterval(() => (now >= last ? stop() : go(now + 1)), BEAT);
  };
  const neighbour = (by) => {
    const living = scene.points.filter((point) => alive(point, now));
    if (!living.length) return;
    const held = living.findIndex((point) => chosen && point.uid === chosen.uid);
    choose("p", living[(held < 0 ? (by > 0 ? 0 : -1) : held + by + living.length) % living.length]?.uid ?? living[living.length - 1].uid);
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const own = event.target.closest("button, a, summary, input");
    const act = {
      ArrowLeft: () => go(now - 1), ArrowRight: () => go(now + 1), Home: () => go(numbers[0]), End: () => go(last),
      " ": play, p: () => neighbour(1), P: () => neighbour(-1), f: whole, Escape: () => choose(null),
    }[event.key];
    if (!act || numbers.length < 2 && [" ", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
    if ((own && [" ", "Home", "End"].includes(event.key)) || (own && own.tagName === "INPUT" && event.key.startsWith("Arrow"))) return;
    event.preventDefault();
    stopUnless(event.key === " ");
    act();
  });
  const stopUnless = (playing) => { if (timer && !playing) stop(); };

  cy.on("tap", (event) => {
    if (event.target === cy) return choose(null);
    if (event.target.isNode()) choose(event.target.id()[0], event.target.id().slice(2));
  });
  cy.on("viewport resize", captionSoon);
  cy.on("drag", captionSoon);
  at("slider").addEventListener("input", () => { stop(); go(Number(at("slider").value)); });
  at("back").onclick = () => { stop(); go(now - 1); };
  at("on").onclick = () => { stop(); go(now + 1); };
  at("play").onclick = play;
  at("closer").onclick = () => zoom(1.3);
  at("farther").onclick = () => zoom(1 / 1.3);
  at("whole").onclick = whole;
  dark.addEventListener("change", () => { cy.style(looks()); show(); legend(); });

  const legend = () => {
    const types = new Map();
    for (const entity of Object.values(scene.entities)) {
      if (entity.colour > 0 && entity.colour < COOL.light.length) types.set(entity.type, entity);
    }
    const cool = [...types.values()].sort((one, other) => one.colour - other.colour).slice(0, 5);
    const css = getComputedStyle(document.documentElement);
    at("legend").replaceChildren(
      make("li", { className: "star", mark: "var(--point)" }, "memory point"),
      ...["insert", "revise", "merge"].map((kind) => make("li", { className: "ring", mark: css.getPropertyValue(`--${kind}`) }, SAID[kind])),
      ...cool.map((entity) => make("li", { mark: colour(entity) }, entity.type)));
  };

  const begin = () => {
    const state = { answered: "", no_evidence: "", unanswered: "no answer was wanted", pruned: "pruned, its answers alone are kept" }[scene.status] ?? scene.status;
    at("about").textContent = `${state ? `${state} · ` : ""}${scene.corpus} · memory ${scene.memory} · ${plural(scene.steps.length, "step")} · ${plural(scene.points.length, "point")} ever · ${scene.system}, ${scene.model} · ${scene.created.slice(0, 10)}`;
    document.querySelector("body > footer").hidden = !numbers.length;
    at("stage").hidden = !scene.points.length;
    Object.assign(at("slider"), { min: numbers[0] || 0, max: last, disabled: numbers.length < 2 });
    at("play").disabled = numbers.length < 2;
    place();
    legend();
    go(last);
    whole();
    caption();
    window.hgmem = cy; // for those who look at it with the browser's own tools
    document.documentElement.dataset.ready = "true";
  };
  begin();
})();

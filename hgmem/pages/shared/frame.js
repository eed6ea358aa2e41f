// The frame that a memory is shown in: picture, legend, what happened, and the bar with the steps; and its beginning.

import { attend, recall, show, stop } from "./controls.js";
import { make, SAID } from "./elements.js";
import { erase } from "./layout.js";
import { at, take, view } from "./memory.js";
import { colour, draw, isEmpty } from "./picture.js";
import { places } from "./walk.js";

const control = (id, sign, label, title = label) => make("button", { type: "button", id, ariaLabel: label, title }, sign);

// The two parts of the frame: what is shown, and the bar.
export const frame = (tag) => [
  make(tag, { id: "memory" },
    make("section", { id: "stage", ariaLabel: "Memory" },
      make("div", { id: "graph", role: "application", tabIndex: 0,
        ariaLabel: "Hypergraph: arrow keys go from step to step, P from point to point, Escape lets go" }),
      make("p", { id: "undrawn", hidden: true }, "This browser does not draw pictures here: the lists have all that they would show."),
      make("div", { id: "zoom", role: "group", ariaLabel: "View" },
        control("closer", "+", "Closer"), control("farther", "−", "Farther"), control("whole", "⤢", "Show all", "Show all (F)")),
      make("p", { id: "none", hidden: true }, "No points at this step."),
      make("p", { id: "partly", className: "quiet", hidden: true }),
      make("ul", { id: "legend", ariaLabel: "Legend" })),
    make("aside", { id: "side", tabIndex: -1, ariaLabel: "What happened" },
      make("section", { id: "chosen", tabIndex: -1, hidden: true }),
      make("section", { id: "answer" }), make("section", { id: "step" }), make("section", { id: "points" }))),
  make("footer", { className: "bar" },
    control("play", "▶", "Play", "Play (Space)"), control("back", "‹", "Step back", "Step back (←)"),
    make("input", { type: "range", id: "slider", min: "1", step: "1", ariaLabel: "Step" }),
    control("on", "›", "Step on", "Step on (→)"), make("output", { id: "at" })),
];

const legend = () => {
  const { scene } = view;
  const types = new Map();
  for (const entity of Object.values(scene.entities)) if (entity.colour) types.set(entity.type, [...types.get(entity.type) ?? [], entity]);
  const cool = [...types.values()].sort((one, other) => other.length - one.length).slice(0, 5).map(([entity]) => entity);
  at("legend").replaceChildren(
    ...(scene.points.length ? [
      make("li", { className: "star", mark: "var(--point)" }, "memory point"),
      ...["insert", "revise", "merge"].map((kind) => make("li", { className: "ring", mark: `var(--${kind})` }, SAID[kind])),
    ] : []),
    ...(places().size ? [
      make("li", { mark: "var(--faint)" }, "entity"),
      make("li", { mark: "var(--point)" }, "passage that was read, trail that was followed"),
      make("li", { mark: "var(--revise)" }, "passage"),
      make("li", { className: "ring", mark: "var(--ink)" }, "where it began"),
      make("li", { className: "ring", mark: "var(--insert)" }, "entered in this step"),
    ] : []),
    ...cool.map((entity) => make("li", { mark: colour(entity) }, entity.type)));
};

// Show a memory, or what it has become, at its end, and resolve when it is drawn.
export const present = (scene, { again = false } = {}) => {
  const follows = !again || view.now >= view.last;
  take(scene);
  const { numbers, last } = view;
  if (!again) {
    stop();
    erase();
    draw();
    attend();
  }
  document.querySelector("footer.bar").hidden = !numbers.length;
  at("stage").hidden = isEmpty();
  Object.assign(at("slider"), { min: numbers[0] || 0, max: last, disabled: numbers.length < 2 });
  at("play").disabled = numbers.length < 2;
  legend();
  if (!again) recall();
  else if (follows) view.now = last;
  view.cy?.resize();
  return show(true, follows);
};

// The beginning of a replay: the memory that the page was made of.

import { followAddress, listen } from "../shared/controls.js";
import { plural } from "../shared/elements.js";
import { frame, present } from "../shared/frame.js";
import { at, view } from "../shared/memory.js";

const begin = () => {
  const scene = JSON.parse(at("scene").textContent);
  at("scene").before(...frame("main"));
  listen();
  addEventListener("hashchange", followAddress);
  const state = { answered: "", no_evidence: "", unanswered: "no answer was wanted", pruned: "pruned, its answers alone are kept" }[scene.status] ?? scene.status;
  at("about").textContent = `${state ? `${state} · ` : ""}${scene.corpus} · memory ${scene.memory} · ${plural(scene.steps.length, "step")} · ${scene.points.length ? `${plural(scene.points.length, "point")} ever · ` : ""}${scene.system}, ${scene.model} · ${scene.created.slice(0, 10)}`;
  present(scene).then(() => { document.documentElement.dataset.ready = "true"; });
  window.hgmem = view.cy; // for those who look at it with the browser's own tools
};
begin();

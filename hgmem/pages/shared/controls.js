// What one does: slider, buttons, keys, clicks into the picture.

import { addressWith, inAddress, setAddress } from "./address.js";
import { caption, captionSoon } from "./captions.js";
import { place, whole, zoom } from "./layout.js";
import { alive, at, leaving, view } from "./memory.js";
import { dark, fill, isLarge, looks, paint } from "./picture.js";
import { tell } from "./telling.js";

const BEAT = 2200; // milliseconds a step while it plays
export const calm = matchMedia("(prefers-reduced-motion: reduce)");
let timer = null;

// What is looked at, as the address says it.
const looked = ({ now, last, chosen } = view) =>
  ({ step: now === last ? "" : now, point: chosen?.kind === "p" ? chosen.uid : "", entity: chosen?.kind === "e" ? chosen.uid : "" });
export const keepInAddress = () => setAddress(looked());
export const recall = () => {
  const [step, point, entity] = ["step", "point", "entity"].map(inAddress);
  view.now = view.numbers.includes(Number(step)) ? Number(step) : view.last;
  view.chosen = view.points.has(point) ? { kind: "p", uid: point } : view.scene.entities[entity] ? { kind: "e", uid: entity } : null;
};
export const followAddress = () => {
  if (addressWith(looked()) === location.hash) return;
  recall();
  show();
};

// Show the step that is looked at. `grown`: the memory has more than the picture; `all`: the picture is to have all in view.
export const show = async (grown = false, all = false) => {
  const { cy } = view;
  const filled = cy && (grown || isLarge());
  if (filled) fill();
  if (cy) paint();
  keepInAddress();
  tell(); // with links to addresses beside this one
  if (filled) await place();
  if (!cy || cy !== view.cy) return;
  if (all) whole();
  caption();
};
export const go = (step) => { view.now = Math.max(view.numbers[0] || 0, Math.min(view.last, step)); show(); };
export const choose = (kind, uid, by = false) => { // `by`: a link that is gone once its target is shown
  view.chosen = kind ? { kind, uid } : null;
  const point = kind === "p" ? view.points.get(uid) : null;
  if (point && !alive(point, view.now) && !leaving(point, view.now)) view.now = point.born;
  show();
  at("side").scrollTop = 0;
  if (kind && by) at("chosen").focus({ preventScroll: true });
  if (kind && innerWidth < 760) at("chosen").scrollIntoView({ block: "start", behavior: calm.matches ? "auto" : "smooth" });
};
export const stop = () => {
  clearInterval(timer);
  timer = null;
  if (!at("play")) return;
  at("play").textContent = "▶";
  at("play").setAttribute("aria-label", "Play");
};
const play = () => {
  if (timer) return stop();
  if (view.now >= view.last) go(view.numbers[0]);
  at("play").textContent = "❚❚";
  at("play").setAttribute("aria-label", "Pause");
  timer = setInterval(() => (view.now >= view.last ? stop() : go(view.now + 1)), BEAT);
};
const neighbour = (by) => {
  const { chosen, now } = view;
  const living = view.scene.points.filter((point) => alive(point, now));
  if (!living.length) return;
  const held = living.findIndex((point) => chosen && point.uid === chosen.uid);
  choose("p", living[(held < 0 ? (by > 0 ? 0 : -1) : held + by + living.length) % living.length]?.uid ?? living[living.length - 1].uid);
};

const pressed = (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || !at("slider") || document.querySelector("dialog[open]")) return;
  const own = event.target.closest("button, a, summary, input, textarea, select");
  if (own && own.matches("textarea, select, input:not([type=range])")) return;
  const act = {
    ArrowLeft: () => go(view.now - 1), ArrowRight: () => go(view.now + 1), Home: () => go(view.numbers[0]), End: () => go(view.last),
    " ": play, p: () => neighbour(1), P: () => neighbour(-1), f: whole, Escape: () => choose(null),
  }[event.key];
  if (!act || view.numbers.length < 2 && [" ", "ArrowLeft", "ArrowRight", "Home", "End"].includes(event.key)) return;
  if ((own && [" ", "Home", "End"].includes(event.key)) || (own && own.tagName === "INPUT" && event.key.startsWith("Arrow"))) return;
  event.preventDefault();
  if (event.key !== " ") pause();
  act();
};
const pause = () => { if (timer) stop(); };

// Let the page's controls act. The page has those of `frame`.
export const listen = () => {
  document.addEventListener("keydown", pressed);
  dark.addEventListener("change", () => {
    if (!at("slider")) return;
    view.cy?.style(looks());
    show();
  });
};
export const attend = () => {
  view.cy?.on("tap", (event) => {
    if (event.target === view.cy) return choose(null);
    if (event.target.isNode() && !event.target.hasClass("place")) choose(event.target.id()[0], event.target.id().slice(2));
  });
  view.cy?.on("viewport resize drag", captionSoon);
  at("slider").addEventListener("input", () => { stop(); go(Number(at("slider").value)); });
  at("back").onclick = () => { stop(); go(view.now - 1); };
  at("on").onclick = () => { stop(); go(view.now + 1); };
  at("play").onclick = play;
  at("closer").onclick = () => zoom(1.3);
  at("farther").onclick = () => zoom(1 / 1.3);
  at("whole").onclick = whole;
};

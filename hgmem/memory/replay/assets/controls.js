// What one does: slider, buttons, keys, clicks into the picture.

const BEAT = 2200; // milliseconds a step while it plays
let timer = null;

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
  if (event.target.isNode() && !event.target.hasClass("place")) choose(event.target.id()[0], event.target.id().slice(2));
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

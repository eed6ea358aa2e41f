// The legend, and the beginning.

const legend = () => {
  const types = new Map();
  for (const entity of Object.values(scene.entities)) {
    if (entity.colour > 0 && entity.colour < COOL.light.length) types.set(entity.type, entity);
  }
  const cool = [...types.values()].sort((one, other) => one.colour - other.colour).slice(0, 5);
  const css = getComputedStyle(document.documentElement);
  at("legend").replaceChildren(
    ...(scene.points.length ? [
      make("li", { className: "star", mark: "var(--point)" }, "memory point"),
      ...["insert", "revise", "merge"].map((kind) => make("li", { className: "ring", mark: css.getPropertyValue(`--${kind}`) }, SAID[kind])),
    ] : []),
    ...(places.size ? [
      make("li", { mark: "var(--faint)" }, "entity"),
      make("li", { mark: "var(--point)" }, "passage that was read, trail that was followed"),
      make("li", { mark: "var(--revise)" }, "passage"),
      make("li", { className: "ring", mark: "var(--ink)" }, "where it began"),
      make("li", { className: "ring", mark: "var(--insert)" }, "entered in this step"),
    ] : []),
    ...cool.map((entity) => make("li", { mark: colour(entity) }, entity.type)));
};

const begin = () => {
  const state = { answered: "", no_evidence: "", unanswered: "no answer was wanted", pruned: "pruned, its answers alone are kept" }[scene.status] ?? scene.status;
  at("about").textContent = `${state ? `${state} · ` : ""}${scene.corpus} · memory ${scene.memory} · ${plural(scene.steps.length, "step")} · ${scene.points.length ? `${plural(scene.points.length, "point")} ever · ` : ""}${scene.system}, ${scene.model} · ${scene.created.slice(0, 10)}`;
  document.querySelector("body > footer").hidden = !numbers.length;
  at("stage").hidden = !scene.points.length && !places.size;
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

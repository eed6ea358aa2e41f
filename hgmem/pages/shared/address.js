// What the address says after its "?" of what is looked at, such as a step: so it survives a reload, and can be sent.

export const addressPath = () => location.hash.split("?")[0];
export const inAddress = (name) => new URLSearchParams(location.hash.split("?")[1]).get(name) ?? "";

// The address with other values. An empty one is left out.
export const addressWith = (values) => {
  const query = new URLSearchParams(location.hash.split("?")[1]);
  for (const [name, value] of Object.entries(values)) {
    if (value) query.set(name, value);
    else query.delete(name);
  }
  return `${addressPath() || "#"}${String(query) && `?${query}`}`;
};
// `further`: the browser's Back leads to the address before.
export const setAddress = (values, further = false) => {
  const address = addressWith(values);
  if (address === (location.hash || "#")) return;
  try {
    if (further) history.pushState({ further }, "", address);
    else history.replaceState(history.state, "", address);
  } catch { /* a browser that refuses it for a while, after many */ }
};

// Texts whose contrast is below 4.5 to 1 (WCAG 2.2, 1.4.3), each with its ratio.
() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const pixel = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    pixel.clearRect(0, 0, 1, 1);
    pixel.fillStyle = colour;
    pixel.fillRect(0, 0, 1, 1);
    return [...pixel.getImageData(0, 0, 1, 1).data];
  };
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const luminance = ([red, green, blue]) =>
    0.2126 * linear(red / 255) + 0.7152 * linear(green / 255) + 0.0722 * linear(blue / 255);
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const found = rgba(getComputedStyle(at).backgroundColor);
      if (found[3] === 255) return found;
    }
    return [255, 255, 255, 255];
  };
  const ratio = (element) => {
    const ink = luminance(rgba(getComputedStyle(element).color));
    const paper = luminance(ground(element));
    return (Math.max(ink, paper) + 0.05) / (Math.min(ink, paper) + 0.05);
  };
  const texts = "h1, h2, h3, p, li, button:not(:disabled), blockquote, summary, a, output, span";
  return [...document.querySelectorAll(texts)]
    .filter((element) => element.offsetParent && element.textContent.trim())
    .map((element) => [element.textContent.slice(0, 40), ratio(element)])
    .filter(([, found]) => found < 4.5);
}

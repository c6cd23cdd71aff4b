/* Every text in sight with the ratio of its luminance to that of what lies behind it, as WCAG 2 has it. */
() => {
  const canvas = Object.assign(document.createElement("canvas"), { width: 1, height: 1 });
  const drawing = canvas.getContext("2d", { willReadFrequently: true });
  const rgba = (colour) => {
    drawing.clearRect(0, 0, 1, 1);
    drawing.fillStyle = colour;
    drawing.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = drawing.getImageData(0, 0, 1, 1).data;
    return [r, g, b, a / 255];
  };
  const over = (top, under) => under.map((part, k) => top[k] * top[3] + part * (1 - top[3]));
  const linear = (part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((part) => linear(part / 255));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const behind = (element) => {
    const layers = [];
    for (let each = element; each; each = each.parentElement) layers.unshift(rgba(getComputedStyle(each).backgroundColor));
    return layers.reduce((under, top) => over(top, under), [255, 255, 255]);
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const found = [];
  for (let node = texts.nextNode(); node; node = texts.nextNode()) {
    const element = node.parentElement, style = getComputedStyle(element);
    const unseen = style.visibility === "hidden" || !element.getClientRects().length;
    if (unseen || !node.textContent.trim() || element.closest("script, style, noscript, .unseen, :disabled")) continue;
    const under = behind(element), ink = rgba(element.closest("svg") ? style.fill : style.color);
    const [one, other] = [luminance(over(ink, under)), luminance(under)].sort((a, b) => b - a);
    const size = parseFloat(style.fontSize), bold = Number(style.fontWeight) >= 700;
    found.push({ text: node.textContent.trim().slice(0, 40), ratio: (one + 0.05) / (other + 0.05), large: size >= 24 || (bold && size >= 18.66) });
  }
  return found;
}

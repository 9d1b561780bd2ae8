// What is wrong with a page for people with other eyes and hands: run in the page, by browser.py.
() => {
  const found = [];
  const say = (what, element) => found.push(`${what}: ${element.outerHTML.slice(0, 120)}`);
  const seen = (element) => element.checkVisibility({visibilityProperty: true, opacityProperty: true})
    && element.getClientRects().length > 0 && !element.closest(".sr, .skip, dialog:not([open])");
  const numbers = (color) => color.match(/[\d.]+/g).map(Number);
  const light = ([r, g, b]) => [r, g, b].map((one) => one / 255)
    .map((one) => one <= 0.04045 ? one / 12.92 : ((one + 0.055) / 1.055) ** 2.4)
    .reduce((sum, one, index) => sum + one * [0.2126, 0.7152, 0.0722][index], 0);
  const ground = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const color = numbers(getComputedStyle(one).backgroundColor);
      if (color.length === 3 || color[3] === 1) return color;
      if (color[3] > 0) return null;
    }
    return [255, 255, 255];
  };
  for (const element of document.querySelectorAll("body *")) {
    const own = [...element.childNodes].some((one) => one.nodeType === 3 && one.data.trim());
    if (!(own || element.matches("input, select")) || !seen(element)) continue;
    const style = getComputedStyle(element), size = parseFloat(style.fontSize), back = ground(element);
    if (back === null) { say("a ground that shines through", element); continue; }
    const [a, b] = [light(numbers(style.color)), light(back)].sort((x, y) => y - x);
    const wanted = size >= 24 || (size >= 18.66 && style.fontWeight >= 700) ? 3 : 4.5;
    const ratio = (a + 0.05) / (b + 0.05);
    if (ratio < wanted) say(`contrast ${ratio.toFixed(2)}`, element);
  }
  const named = (element) => (element.getAttribute("aria-label") || element.textContent.trim()
    || [...element.querySelectorAll("img[alt]")].map((one) => one.alt).join("")
    || (element.labels && [...element.labels].map((one) => one.textContent).join("").trim()));
  for (const element of document.querySelectorAll("a, button, input:not([type=hidden]), select, meter, progress, dialog, nav"))
    if (!named(element) && !element.getAttribute("aria-labelledby")) say("no name", element);
  for (const element of document.querySelectorAll("img:not([alt])")) say("no text for an image", element);
  for (const element of document.querySelectorAll("svg:not([role=img][aria-label])")) say("no text for a picture", element);
  for (const element of document.querySelectorAll("th:not([scope])")) say("a heading of a table without its scope", element);
  const ids = [...document.querySelectorAll("[id]")].map((one) => one.id);
  for (const id of ids) if (ids.indexOf(id) !== ids.lastIndexOf(id)) found.push(`two elements are ${id}`);
  for (const element of document.querySelectorAll("[aria-labelledby]"))
    if (!document.getElementById(element.getAttribute("aria-labelledby"))) say("a label that is not there", element);
  if (!document.documentElement.lang) found.push("no language");
  if (document.querySelectorAll("h1").length !== 1) found.push("not one h1");
  if (document.querySelectorAll("main").length !== 1) found.push("not one main");
  if (document.documentElement.scrollWidth > innerWidth) found.push(`wider than the window: ${document.documentElement.scrollWidth}`);
  for (const element of document.querySelectorAll("a, button, input, select")) {
    const box = element.getBoundingClientRect();
    if (seen(element) && element.tabIndex < 0) say("no key leads there", element);
    if (seen(element) && box.height > 0 && box.height < 14) say("too small to be hit", element);
  }
  return found;
}

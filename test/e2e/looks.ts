import type { Page } from "playwright-core";

/** Whether the page is light or dark, by its background. */
export function brightness(page: Page): Promise<string> {
  return page.evaluate(() => {
    const channels = getComputedStyle(document.documentElement).backgroundColor.match(/[\d.]+/g) ?? [];
    return channels.slice(0, 3).reduce((sum, channel) => sum + Number(channel), 0) > 384 ? "light" : "dark";
  });
}

/** Elements that stick out of the window to the side. */
export function overflow(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    const wide = [...document.querySelectorAll("body *")].filter((one) => {
      if (!(one instanceof HTMLElement) || !one.checkVisibility()) return false;
      const { left, right, width } = one.getBoundingClientRect();
      return width > 0 && left >= 0 && left < innerWidth && right > innerWidth + 1;
    });
    const scrolls = document.documentElement.scrollWidth > innerWidth ? ["the page scrolls sideways"] : [];
    return [...scrolls, ...wide.map((one) => `${one.tagName.toLowerCase()}.${one.className}`)];
  });
}

/** Texts with less contrast to their background than WCAG AA asks for: 4.5, or 3 if large. Placeholders and what is disabled do not count. */
export function faint(page: Page): Promise<string[]> {
  return page.evaluate(() => {
    type Colour = [number, number, number, number];
    const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
    const rgba = (colour: string): Colour => {
      if (canvas === null) throw new Error("no canvas");
      canvas.clearRect(0, 0, 1, 1);
      canvas.fillStyle = colour;
      canvas.fillRect(0, 0, 1, 1);
      const [red = 0, green = 0, blue = 0, alpha = 0] = canvas.getImageData(0, 0, 1, 1).data;
      return [red, green, blue, alpha / 255];
    };
    const over = (top: Colour, below: Colour): Colour =>
      [0, 1, 2, 3].map((i) => (i === 3 ? 1 : (top[i] ?? 0) * top[3] + (below[i] ?? 0) * (1 - top[3]))) as Colour;
    const background = (element: Element | null): Colour =>
      element === null
        ? rgba(getComputedStyle(document.documentElement).backgroundColor)
        : over(rgba(getComputedStyle(element).backgroundColor), background(element.parentElement));
    const light = (colour: Colour): number => {
      const [red = 0, green = 0, blue = 0] = colour.slice(0, 3).map((value) => {
        const part = value / 255;
        return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
      });
      return 0.2126 * red + 0.7152 * green + 0.0722 * blue;
    };
    const found: string[] = [];
    for (const element of document.querySelectorAll("body *")) {
      const own = [...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.textContent?.trim() !== "");
      if (!own || !element.checkVisibility({ opacityProperty: true, visibilityProperty: true }) || element.closest(":disabled, noscript") !== null) continue;
      const style = getComputedStyle(element);
      const below = background(element);
      const [a, b] = [light(over(rgba(style.color), below)), light(below)];
      const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
      const size = Number.parseFloat(style.fontSize);
      const large = size >= 24 || (size >= 18.66 && Number(style.fontWeight) >= 700);
      if (contrast < (large ? 3 : 4.5)) found.push(`${contrast.toFixed(2)} "${element.textContent?.trim().slice(0, 40)}" (${element.className})`);
    }
    return [...new Set(found)];
  });
}

// Elements from names, properties and children. Whatever models or people write becomes text, never HTML.

export const byId = (id) => document.getElementById(id);

export function el(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined));
  return made;
}

export function svg(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// Names in any script keep their direction.
export const name = (label) => el("bdi", {}, String(label));

export const percent = (share, digits = 1) =>
  share === undefined || share === null ? "–" : `${(100 * share).toFixed(digits)} %`;

export const count = (number) => (number === null ? "–" : number.toLocaleString("en"));

export function say(message) {
  byId("status").textContent = message;
}

export function trouble(message) {
  const place = byId("trouble");
  place.textContent = message;
  place.hidden = !message;
}

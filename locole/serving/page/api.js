// Requests to the server, with the token if it asks for one.

import { byId, el, trouble } from "/page/dom.js";

const RETRIES = 30;

export class Refused extends Error {}

export async function ask(path, { body, signal } = {}) {
  for (let attempt = 0; ; attempt++) {
    const response = await fetch(path, {
      method: body === undefined ? "GET" : "POST",
      headers: headers(body !== undefined),
      body: body === undefined ? undefined : JSON.stringify(body),
      signal,
    });
    if (response.ok) {
      trouble("");
      return response.json();
    }
    if (response.status === 401) {
      await newToken();
    } else if (response.status === 503 && attempt < RETRIES) {
      await pause(1000 * Number(response.headers.get("Retry-After") || 1));
    } else {
      throw new Refused(await reason(response));
    }
  }
}

export const model = () => byId("model").value;
export const place = (rest = "") => `/api/models/${encodeURIComponent(model())}${rest}`;

function headers(hasBody) {
  const token = sessionStorage.getItem("token");
  return {
    ...(hasBody ? { "Content-Type": "application/json" } : {}),
    ...(token ? { Authorization: `Bearer ${token}` } : {}),
  };
}

async function reason(response) {
  try {
    return (await response.json()).detail;
  } catch {
    return `The server answered with ${response.status}.`;
  }
}

let waiting = null;

// All requests that were refused wait for the same token.
function newToken() {
  waiting ??= new Promise((resolve) => {
    const field = el("input", { id: "token", type: "password", required: true, autocomplete: "off" });
    const form = el("form", { className: "panel" },
      el("label", { htmlFor: "token" }, "This server asks for a token"),
      el("div", { className: "row" }, field, el("button", { className: "main-button" }, "Use it")));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      sessionStorage.setItem("token", field.value);
      form.remove();
      waiting = null;
      resolve();
    });
    byId("token-place").replaceChildren(form);
    field.focus();
  });
  return waiting;
}

const pause = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

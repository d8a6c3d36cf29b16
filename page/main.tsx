// The program of the page: signs in, then shows the views.
import { render } from "preact";
import type { PageJson } from "../src/page/json.ts";
import { signIn } from "./api.ts";
import { App, SignedOut, Unreachable } from "./app.tsx";

const root = document.getElementById("app")!;

function start(): void {
  signIn().then(
    (page: PageJson) => {
      root.replaceChildren();
      render(<App page={page} />, root);
    },
    (error: { readonly status?: number; readonly message: string }) => {
      root.replaceChildren();
      if (error.status === 401) render(<SignedOut />, root);
      else {
        render(<Unreachable reason={error.message} />, root);
        setTimeout(start, 1_000);
      }
    },
  );
}

start();
// Opening the printed address in a tab that already shows the page changes only the part after `#`.
addEventListener("hashchange", () => location.hash.startsWith("#token=") && start());

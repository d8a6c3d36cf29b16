// A Frontend as short text: `clusterIP 172.30.0.1:80/tcp`, `nodePort *:30080/tcp`.
import { joinHostPort } from "../model/address.ts";
import type { Frontend } from "./routes.ts";

export function printFrontend(frontend: Frontend): string {
  const place =
    frontend.kind === "nodePort" ? `*:${frontend.port}` : joinHostPort(frontend.address, frontend.port);
  return `${frontend.kind} ${place}/${frontend.protocol}`;
}

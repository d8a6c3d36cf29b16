// Two Services that claim the same Frontend: the one that does not hold it gets a Problem.
import type { Problem } from "../model/problem.ts";
import { portLabel } from "../model/snapshot.ts";
import { printFrontend } from "./print-frontend.ts";
import type { PortRoutes, Routes } from "./routes.ts";

/** A Problem for every Frontend of a ServicePort that another one holds. */
export function conflicts(routes: Routes, { port, lost }: PortRoutes): Problem[] {
  return lost.map(({ frontend, holder }) => ({
    kind: "conflict",
    object: `Service ${port.service}`,
    field: frontend.kind,
    message: `${printFrontend(frontend)} is held by ${portLabel(routes.servicePorts.get(holder)!)}; ${portLabel(port)} is not served there`,
  }));
}

// Two Services that claim the same Frontend: the one that does not hold it gets a Problem.
import type { Problem } from "../model/problem.ts";
import { portLabel } from "../model/snapshot.ts";
import { printFrontend } from "./print-frontend.ts";
import type { PortRoutes, Routes } from "./routes.ts";

/** Two Services with the same thousand addresses have a thousand conflicts, which nobody would read one by one. */
const listedAtMost = 20;

/** A Problem for each Frontend of a ServicePort that another one holds; of many, the first ones and the number of the others. */
export function conflicts(routes: Routes, { port, lost }: PortRoutes): Problem[] {
  const object = `Service ${port.service}`;
  const listed = lost.slice(0, listedAtMost).map(
    ({ frontend, holder }): Problem => ({
      kind: "conflict",
      object,
      field: frontend.kind,
      message: `${printFrontend(frontend)} is held by ${portLabel(routes.servicePorts.get(holder)!)}; ${portLabel(port)} is not served there`,
    }),
  );
  const more = lost.length - listed.length;
  if (more === 0) return listed;
  const message = `${portLabel(port)} is not served at ${more} more addresses that other Services hold`;
  return [...listed, { kind: "conflict", object, field: "", message }];
}

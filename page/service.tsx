// One Service: what it is, where its packets go as a picture, why, and what the kernel holds for it.
import type { ServiceView } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { Arrows } from "./arrows.tsx";
import { Flows } from "./flows.tsx";
import { History } from "./history.tsx";
import { useView } from "./live.ts";
import { Message, NoData, State } from "./parts.tsx";
import { Picture } from "./picture.tsx";
import { hrefOf, withQuery } from "./route.ts";
import { StickyPicture } from "./sticky.tsx";
import { Traffic } from "./traffic.tsx";
import { Why } from "./why.tsx";

type Port = ServiceView["ports"][number];

export function ServicePanel(props: ViewProps & { readonly service: string }) {
  const { route, node, revision, service } = props;
  const { value, error } = useView<ServiceView>("service", { node, name: service }, revision);
  const close = hrefOf(withQuery(route, { service: "", port: "", path: "", tab: "" }));
  if (value === null)
    return (
      <section class="panel detail" aria-label={service}>
        <a class="back" href={close}>
          ← all Services
        </a>
        <NoData
          error={error}
          title={error?.status === 404 ? "This Service is gone" : "Cannot show the Service"}
        />
        {error?.status === 404 && <History {...props} />}
      </section>
    );
  const port = value.ports.find((each) => portId(each) === route.query.port) ?? value.ports[0]!;
  return (
    <section class="panel detail" aria-label={service}>
      <a class="back" href={close}>
        ← all Services
      </a>
      <Title view={value} port={port} />
      <Ports ports={value.ports} selected={port} route={props.route} />
      <Problems view={value} port={port} />
      <Body {...props} port={port} />
      <Tabs {...props} port={port} />
    </section>
  );
}

function Title({ view: { row }, port }: { readonly view: ServiceView; readonly port: Port }) {
  const isExternal = port.frontends.some(({ kind }) => kind !== "clusterIP");
  return (
    <div class="title">
      <h2>
        <bdi>{row.service}</bdi>
      </h2>
      <span class="badge">{row.type}</span>
      <span class="badge">internal: {policies[port.internalPolicy]}</span>
      {isExternal && <span class="badge">external: {policies[port.externalPolicy]}</span>}
      {port.affinitySeconds !== null && <span class="badge">sticky for {port.affinitySeconds} s</span>}
      {port.healthCheckNodePort !== 0 && <span class="badge">health check :{port.healthCheckNodePort}</span>}
      {row.reasons.length > 0 && <State level={row.level} reasons={row.reasons} />}
    </div>
  );
}

const policies = { cluster: "Cluster", local: "Local" } as const;

function portId({ family, name, protocol, port }: Port): string {
  return `${family}/${protocol}/${name || port}`;
}

function Ports({
  ports,
  selected,
  route,
}: {
  readonly ports: readonly Port[];
  readonly selected: Port;
  readonly route: ViewProps["route"];
}) {
  if (ports.length < 2) return <p class="ports single">{portText(selected)}</p>;
  return (
    <nav class="ports" aria-label="Ports">
      {ports.map((port) => (
        <a
          key={portId(port)}
          href={hrefOf(withQuery(route, { port: portId(port), path: "" }))}
          aria-current={port === selected ? "true" : undefined}
        >
          {portText(port)}
        </a>
      ))}
    </nav>
  );
}

function portText({ name, port, protocol, family }: Port): string {
  const label = name === "" ? `${port}/${protocol}` : `${name} ${port}/${protocol}`;
  return `${label} · ${family === "ipv4" ? "IPv4" : "IPv6"}`;
}

function Problems({ view, port }: { readonly view: ServiceView; readonly port: Port }) {
  const lines = [
    ...view.problems,
    ...port.lost.map(({ place, holder }) => `${place} is held by ${holder}, which came first`),
  ];
  if (lines.length === 0) return null;
  return (
    <ul class="problems">
      {lines.map((line) => (
        <li key={line}>
          <bdi>{line}</bdi>
        </li>
      ))}
    </ul>
  );
}

function Body(props: ViewProps & { readonly service: string; readonly port: Port }) {
  const { port, route, names, service } = props;
  const selected = selectedPath(port, route);
  const path = port.paths[selected];
  if (path === undefined)
    return <Message title="No frontends">Another Service holds all addresses of this port.</Message>;
  const picture = {
    port,
    names,
    selected,
    hrefOfPath: (i: number) => hrefOf(withQuery(route, { path: String(i) })),
  };
  return (
    <>
      {port.affinitySeconds === null ? (
        <Picture {...picture} />
      ) : (
        <StickyPicture key={`${service} ${portId(port)}`} {...props} picture={picture} />
      )}
      {props.head?.kernel === true && (
        <Arrows key={`${props.node} ${path.from} ${path.to}`} {...props} path={path} />
      )}
    </>
  );
}

function selectedPath({ paths }: Port, { query }: ViewProps["route"]): number {
  return Math.min(Math.max(0, Number(query.path ?? 0) || 0), paths.length - 1);
}

const tabs = { why: "Why", traffic: "Traffic", flows: "Flows", history: "History" } as const;

function Tabs(props: ViewProps & { readonly service: string; readonly port: Port }) {
  const { route, port } = props;
  const shown =
    (Object.keys(tabs) as (keyof typeof tabs)[]).find((name) => name === route.query.tab) ?? "why";
  const path = port.paths[selectedPath(port, route)];
  return (
    <>
      <nav class="tabs" aria-label="About this Service">
        {Object.entries(tabs).map(([name, label]) => (
          <a
            key={name}
            href={hrefOf(withQuery(route, { tab: name === "why" ? "" : name }))}
            aria-current={name === shown ? "true" : undefined}
          >
            {label}
          </a>
        ))}
      </nav>
      {shown === "why" && path !== undefined && <Why {...props} path={path} endpoints={port.endpoints} />}
      {shown === "traffic" && <Traffic key={`${props.service} ${portId(port)}`} {...props} />}
      {shown === "flows" && <Flows key={props.service} {...props} />}
      {shown === "history" && <History key={props.service} {...props} />}
    </>
  );
}

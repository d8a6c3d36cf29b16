// The picture of a Service with session affinity, and which clients the kernel keeps at which endpoint.
import type { StickyEndpoint, StickyView } from "../src/page/json.ts";
import type { ViewProps } from "./app.tsx";
import { span } from "./format.ts";
import { usePolled } from "./live.ts";
import { Picture, type PictureProps } from "./picture.tsx";

const readMs = 3_000;

type StickyProps = ViewProps & { readonly service: string; readonly picture: PictureProps };

export function StickyPicture({ node, service, paused, picture }: StickyProps) {
  const { value, error } = usePolled<StickyView>("sticky", { node, name: service }, readMs, !paused);
  const { family, port, protocol } = picture.port;
  const own = (value?.endpoints ?? []).filter(
    (each) => each.family === family && each.port === port && each.protocol === protocol,
  );
  return (
    <>
      <Picture {...picture} pinned={new Map(own.map(({ endpoint, count }) => [endpoint, count]))} />
      <div class="pins">
        <h3>Sticky clients</h3>
        {error !== null && <p class="bad">{error.message}</p>}
        {value !== null && <Pins endpoints={own} note={value.note} />}
      </div>
    </>
  );
}

function Pins({
  endpoints,
  note,
}: {
  readonly endpoints: readonly StickyEndpoint[];
  readonly note: string | null;
}) {
  if (note !== null) return <p class="dim">{note}</p>;
  if (endpoints.length === 0) return <p class="dim">none now</p>;
  return (
    <ul>
      {endpoints.map(({ endpoint, set, count, clients }) => (
        <li key={endpoint} title={`set ${set}`}>
          <code>{endpoint}</code> ←{" "}
          {clients.map(({ address, seconds }) => `${address} for ${span(seconds * 1000)}`).join(", ")}
          {count > clients.length && ` and ${(count - clients.length).toLocaleString("en")} more`}
        </li>
      ))}
    </ul>
  );
}

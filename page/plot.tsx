// A chart that follows the width of its place and the colours of the page.
import { useEffect, useRef } from "preact/hooks";
import uPlot from "uplot";

type PlotProps = {
  /** What it shows, for those who do not see it. */
  readonly label: string;
  readonly height: number;
  readonly data: uPlot.AlignedData;
  /** Read once. */
  readonly options: (colour: (name: string) => string) => Omit<uPlot.Options, "width" | "height">;
};

export function Plot({ label, height, data, options }: PlotProps) {
  const frame = useRef<HTMLDivElement>(null);
  const chart = useRef<uPlot | null>(null);
  useEffect(() => {
    const element = frame.current!;
    const style = getComputedStyle(element);
    const size = () => ({ width: element.clientWidth, height });
    const colour = (name: string) => style.getPropertyValue(name).trim();
    const plot = new uPlot({ ...options(colour), ...size() }, data, element);
    chart.current = plot;
    const observer = new ResizeObserver(() => plot.setSize(size()));
    observer.observe(element);
    return () => {
      observer.disconnect();
      plot.destroy();
    };
  }, []);
  useEffect(() => chart.current?.setData(data), [data]);
  return <div ref={frame} class="chart" role="img" aria-label={label} />;
}

export function axisOf(colour: (name: string) => string): uPlot.Axis {
  return {
    stroke: colour("--dim"),
    grid: { stroke: colour("--line") },
    ticks: { stroke: colour("--line") },
  };
}

export function fromZero(_: uPlot, __: number, most: number): [number, number] {
  return [0, Math.max(1, most * 1.1)];
}

// Another program that owns the IPv4 table of kube-proxy for a while.
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Namespace } from "../kernel/netns.ts";
import { eventually } from "../kernel/site.ts";

/** The kernel refuses changes of a table by other processes than its owner, and removes it when the owner exits. */
export async function takeTable(netns: Namespace): Promise<{ end(): Promise<void> }> {
  const owner = spawn("ip", ["netns", "exec", netns.name, "nft", "-i"], {
    stdio: ["pipe", "ignore", "ignore"],
  });
  const gone = once(owner, "exit");
  const end = async () => {
    owner.kill();
    await gone;
  };
  owner.stdin.write("delete table ip kube-proxy; add table ip kube-proxy { flags owner; }\n");
  const isTaken = () => netns.run("nft", "list table ip kube-proxy").includes("flags owner");
  await eventually(isTaken, "an owned table").catch(async (error: unknown) => {
    await end();
    throw error;
  });
  return { end };
}

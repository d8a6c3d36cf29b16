// The effective configuration, or its errors, of flags and the text of a file.
import { type Completed, completeConfig } from "../../src/config/complete.ts";
import type { ValidConfig } from "../../src/config/config.ts";
import { readFlags } from "../../src/config/flags/read.ts";

export const header = "apiVersion: kubeproxy.config.k8s.io/v1alpha1\nkind: KubeProxyConfiguration\n";

export function complete(argv: readonly string[], body: string | null = null): Completed {
  const read = readFlags(argv);
  if (!read.ok) throw new Error(read.reason);
  return completeConfig(read.value.given, body === null ? null : { name: "proxy.yaml", text: header + body });
}

export function configOf(argv: readonly string[], body: string | null = null): ValidConfig {
  const completed = complete(argv, body);
  if (!completed.ok) throw new Error(completed.error);
  return completed.config;
}

export function errorOf(argv: readonly string[], body: string | null = null): string {
  const completed = complete(argv, body);
  return completed.ok ? "no error" : completed.error;
}

export const fromFile = (body: string, argv: readonly string[] = []) => configOf(argv, body);
export const fileError = (body: string) => errorOf([], body);
